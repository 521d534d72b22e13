import math

import numpy as np
import pytest
import torch

from engine.photo_score import PhotoScore
from engine.settings import Settings
from engine.training.evaluation import evaluation_background, mean_score
from engine.training.metrics import psnr_and_ssim
from engine.training.photos import PhotoOrder, target_picture
from engine.training.random_streams import RandomStreams
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import (
    BACKEND,
    HEIGHT,
    WIDTH,
    MemoryPhotos,
    camera_at,
    make_trainer,
    photo_of,
    pictures,
    quick,
    tiny_scene,
    truth,
)

PHOTO = photo_of("a.png", camera_at(0.0))


def test_an_opaque_photo_stays_in_bytes() -> None:
    values = np.arange(HEIGHT * WIDTH * 3, dtype=np.uint8).reshape(HEIGHT, WIDTH, 3)
    values.flags.writeable = False  # as a store may serve it
    target = target_picture(MemoryPhotos([values], [None]), 0, PHOTO, torch.zeros(3))
    assert target.dtype == torch.uint8
    assert torch.equal(target, torch.tensor(values))


def test_a_transparent_photo_lies_on_the_background() -> None:
    rgb = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    alpha = np.zeros((HEIGHT, WIDTH), np.uint8)
    alpha[0, 0], alpha[0, 1] = 255, 51
    background = torch.tensor([0.0, 0.5, 1.0])
    target = target_picture(MemoryPhotos([rgb], [alpha]), 0, PHOTO, background)
    assert target[0, 0].tolist() == [1.0, 1.0, 1.0]
    torch.testing.assert_close(target[0, 1], 0.2 + 0.8 * background)
    assert torch.equal(target[5, 5], background)


def test_render_and_photo_share_the_background_of_the_step() -> None:
    # splats far away from a fully transparent photo: nothing to learn, whatever the background
    clear = [np.zeros((HEIGHT, WIDTH), np.uint8)] * 10
    scene = tiny_scene(tuple(photo_of(f"{n}.png", camera_at(n, away=True)) for n in range(10)))
    settings = quick(background="random")
    trainer = Trainer(scene, MemoryPhotos(list(pictures()), clear), settings, backend=BACKEND)
    for _ in range(4):
        assert trainer.step_once().l1 == pytest.approx(0.0, abs=1e-6)  # float32 rounding


def test_photos_are_drawn_without_replacement_and_reshuffled() -> None:
    order = PhotoOrder([4, 7, 9], torch.Generator().manual_seed(0))
    rounds = [tuple(order.draw() for _ in range(3)) for _ in range(30)]
    assert all(sorted(drawn) == [4, 7, 9] for drawn in rounds)
    assert len(set(rounds)) == 6  # every order turns up in 30 rounds (missing one: under 3 %)


def test_streams_of_one_seed_differ_from_each_other_and_repeat() -> None:
    first, second = RandomStreams(5), RandomStreams(5)
    drawn = [torch.rand(4, generator=first[name]) for name in first.purposes]
    assert len({tuple(values.tolist()) for values in drawn}) == len(drawn)
    assert torch.equal(drawn[0], torch.rand(4, generator=second[first.purposes[0]]))


def test_psnr_is_of_the_clamped_render() -> None:
    photo = torch.full((4, 4, 3), 255, dtype=torch.uint8)
    psnr, _ = psnr_and_ssim(torch.full((4, 4, 3), 3.0), photo, BACKEND)
    assert psnr == math.inf
    # every channel off by 0.1: -10 log10(0.01) = 20 dB
    psnr, _ = psnr_and_ssim(torch.full((4, 4, 3), 0.9), photo, BACKEND)
    assert psnr == pytest.approx(20.0, abs=1e-4)


def test_ssim_of_equal_pictures_is_one_and_clamps_the_render() -> None:
    picture = torch.rand(16, 16, 3, generator=torch.Generator().manual_seed(0)).round()
    for render in (picture, picture * 5.0 - 1.0):
        _, ssim = psnr_and_ssim(render, picture, BACKEND)
        assert ssim == pytest.approx(1.0, abs=1e-5)


def test_evaluation_scores_each_held_out_photo_by_name() -> None:
    photos = MemoryPhotos(list(pictures()), [None] * 10)
    trainer = Trainer(tiny_scene(), photos, quick(), backend=BACKEND, model=truth())
    scores = list(trainer.evaluate())
    assert [score.name for score in scores] == ["00.png", "05.png"]
    # the true splats against their own pictures, rounded to 8 bits: error at most 1/510
    assert all(score.psnr > -20 * math.log10(1 / 510) for score in scores)
    assert all(score.ssim > 0.99 for score in scores)


def test_the_mean_score_is_the_mean_of_the_photos_own() -> None:
    scores = [PhotoScore("a", 20.0, 0.5), PhotoScore("b", 30.0, 0.7)]
    assert mean_score(scores) == pytest.approx((25.0, 0.6))
    with pytest.raises(ValueError, match="no photo"):
        mean_score([])


@pytest.mark.parametrize(("background", "level"), [("black", 0), ("white", 1), ("random", 0)])
def test_evaluation_has_a_fixed_background(background: str, level: int) -> None:
    assert evaluation_background(Settings().changed("background", background)) == (level,) * 3


def test_an_evaluation_draws_no_random_number() -> None:
    trainer = make_trainer(background="random")
    before = trainer.export_state()[0]
    list(trainer.evaluate())
    after = trainer.export_state()[0]
    assert all(torch.equal(before[name], after[name]) for name in before)
