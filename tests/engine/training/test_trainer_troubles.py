"""Steps that cannot be done, or lead nowhere: the run stays what it was and says why."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from cuda_rasterizer.cpu_backend import BlendBackward
from engine.errors import TrainingError
from engine.training import trainer as trainer_module
from engine.training.step_check import ZERO_GRADIENT_STEPS
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import (
    BACKEND,
    CALM,
    MemoryPhotos,
    bits,
    camera_at,
    changed_photo,
    make_trainer,
    photo_of,
    pictures,
    quick,
    step_until,
    tiny_scene,
)


def test_a_photo_that_shows_no_splat_is_skipped_and_counted() -> None:
    scene = changed_photo(tiny_scene(), 3, photo_of("03.png", camera_at(1.8, away=True)))
    trainer = make_trainer(scene, **CALM)
    results = [trainer.step_once() for _ in range(16)]
    unseen = [result for result in results if result.unseen]
    assert {result.photo for result in unseen} == {"03.png"}
    assert len(unseen) == 2
    assert all(math.isfinite(result.loss) for result in unseen)
    assert trainer.unseen == {"03.png": 2}
    assert [len(result.notices) for result in unseen] == [1, 0]
    assert "03.png" in unseen[0].notices[0]
    assert trainer.optimizer.groups["means"].steps == 14


def test_with_no_splat_in_any_photo_schedules_go_on_and_nothing_breaks() -> None:
    away = tuple(photo_of(f"{place}.png", camera_at(place * 0.6, away=True)) for place in range(3))
    trainer = make_trainer(tiny_scene(away))
    results = [trainer.step_once() for _ in range(16)]
    assert results[-1].step == 16
    assert results[14].refined is not None
    assert len(trainer.model) == 30


@pytest.mark.parametrize(
    ("incoming", "told"),
    [
        ("means_2d", "gradient of means is"),
        ("conics", "gradients of means, rotations and log_scales are"),
        ("opacities", "gradient of opacity_logits is"),
        ("colors", "gradients of means, sh_dc and sh_rest are"),
    ],
)
def test_a_gradient_that_is_not_finite_stops_before_anything_is_spoilt(
    incoming: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compositing hands a NaN on to projection, in the gradient of one of its inputs."""
    trainer = make_trainer(**CALM)
    step_until(trainer, 9)
    before = bits(trainer)
    original = BlendBackward.run

    def poisoned(way_back: BlendBackward, *arguments: Any) -> None:
        original(way_back, *arguments)
        seen = int((way_back.wanted.opacities != 0).to(torch.int32).argmax())
        getattr(way_back.wanted, incoming).view(len(trainer.model), -1)[seen, 0] = math.nan

    with monkeypatch.context() as patch:
        patch.setattr(BlendBackward, "run", poisoned)
        with pytest.raises(TrainingError, match=f"{told} not finite at step 10"):
            trainer.step_once()
    assert bits(trainer) == before
    assert trainer.step_once().step == 10


def test_a_loss_that_is_not_finite_names_step_and_photo(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(**CALM)
    step_until(trainer, 2)
    before = bits(trainer)
    original = trainer_module.l1_ssim_with_gradient

    def broken(*arguments: Any, **named: Any) -> Any:
        values, gradient = original(*arguments, **named)
        trainer.guard.note_loss(values[0] * math.nan)
        return values * math.nan, gradient * math.nan

    monkeypatch.setattr(trainer_module, "l1_ssim_with_gradient", broken)
    with pytest.raises(TrainingError, match=r"loss of step 3 is nan on photo 0\d.png"):
        trainer.step_once()
    assert bits(trainer) == before


def test_a_parameter_that_is_not_finite_is_refused_at_the_start() -> None:
    model = make_trainer().model
    with torch.no_grad():
        model.log_scales[2, 1] = math.inf
    scene = tiny_scene()
    photos = MemoryPhotos(list(pictures()), [None] * 10)
    with pytest.raises(TrainingError, match="log_scales"):
        Trainer(scene, photos, quick(), backend=BACKEND, model=model)


def test_extreme_splats_stay_finite() -> None:
    trainer = make_trainer(**CALM)
    camera = trainer.scene.training[0].camera
    with torch.no_grad():
        trainer.model.log_scales[0] = 20.0
        trainer.model.opacity_logits[1] = 50.0
        just_ahead = camera.center + 1e-6 * camera.forward
        trainer.model.means[2] = torch.as_tensor(just_ahead, dtype=torch.float32)
        trainer.model.rotations[3] = 0.0
    step_until(trainer, 10)
    assert trainer.model.non_finite() is None


def test_a_thousand_points_in_a_millimetre_are_finite_after_a_step() -> None:
    points = np.random.default_rng(0).uniform(0.0, 1e-3, (1000, 3))
    colors = np.full((1000, 3), 90, np.uint8)
    dense = dataclasses.replace(tiny_scene(), points=points, point_colors=colors)
    trainer = make_trainer(dense, **CALM)
    assert trainer.step_once().splats == 1000
    assert trainer.model.non_finite() is None


def test_a_splat_whose_children_would_not_be_finite_stops_the_refine_and_is_kept() -> None:
    trainer = make_trainer(gradient_threshold=1e-6)
    step_until(trainer, 14)
    with torch.no_grad():
        trainer.model.log_scales[:] = 100.0  # exp of it is beyond float32
    with pytest.raises(TrainingError, match=r"not finite"):
        trainer.densify_now()
    assert len(trainer.model) == 30
    assert trainer.model.non_finite() is None


def test_memory_running_out_is_told_in_words_and_the_step_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = make_trainer(**CALM)
    step_until(trainer, 3)
    before = bits(trainer)
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):

        def fails(*arguments: Any, error: Exception = error, **named: Any) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(trainer_module, "l1_ssim_with_gradient", fails)
            with pytest.raises(TrainingError, match="Memory ran out in step 4 with 30 splats"):
                trainer.step_once()
        assert bits(trainer) == before


def test_gradients_that_are_always_zero_are_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(**CALM)
    original = trainer_module.l1_ssim_with_gradient

    def silent(*arguments: Any, **named: Any) -> Any:
        values, gradient = original(*arguments, **named)
        return values, gradient * 0.0

    monkeypatch.setattr(trainer_module, "l1_ssim_with_gradient", silent)
    results = [trainer.step_once() for _ in range(ZERO_GRADIENT_STEPS + 5)]
    told = [result.step for result in results if result.notices]
    assert told == [ZERO_GRADIENT_STEPS]
    assert "exactly zero" in results[ZERO_GRADIENT_STEPS - 1].notices[0]


def test_a_photo_of_another_size_than_its_camera_is_named() -> None:
    shown = [picture[:-1] for picture in pictures()]
    trainer = Trainer(tiny_scene(), MemoryPhotos(shown, [None] * 10), quick(), backend=BACKEND)
    with pytest.raises(TrainingError, match=r"decoded to 24x19 pixels; its camera expects 24x20"):
        trainer.step_once()


def test_a_scene_without_training_photos_is_refused() -> None:
    held_out = (photo_of("a.png", camera_at(0.0), held_out=True),)
    with pytest.raises(TrainingError, match="no photo to train on"):
        make_trainer(tiny_scene(held_out))


def test_a_single_photo_survives_resets_and_prunes_with_a_warning() -> None:
    one = tiny_scene((photo_of("0.png", camera_at(0.0)),))
    trainer = make_trainer(one, opacity_reset_interval=20, prune_opacity=0.02)
    results = [trainer.step_once() for _ in range(60)]
    assert len(trainer.model) > 0
    assert trainer.extent > 0
    notices = [notice for result in results for notice in result.notices]
    assert any("no more than 1 training photo to" in notice for notice in notices)
    assert any("most opaque were kept" in notice for notice in notices)


@pytest.mark.parametrize("from_cloud", [True, False])
def test_a_refine_that_removes_most_splats_says_so_unless_the_start_was_random(
    from_cloud: bool,
) -> None:
    trainer = make_trainer(gradient_threshold=0.1, prune_size=10.0)
    step_until(trainer, 14)
    with torch.no_grad():
        trainer.model.opacity_logits[:18] = -8.0
    if not from_cloud:
        none = np.zeros((0, 3))
        trainer.scene = dataclasses.replace(trainer.scene, points=none)
    result = trainer.step_once()
    assert result.splats == 12
    told = "removed 18 splats and left 12" in " ".join(result.notices)
    assert told is from_cloud
