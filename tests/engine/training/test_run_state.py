import json

import pytest
import torch

from engine.dataset.scene import Scene
from engine.errors import CheckpointError
from engine.training.trainer import Trainer
from tests.engine.training.tiny_scene import (
    BACKEND,
    MemoryPhotos,
    bits,
    camera_at,
    changed_photo,
    make_trainer,
    photo_of,
    step_until,
    tiny_scene,
    with_photos,
)

SETTINGS = {"gradient_threshold": 2e-3, "background": "random", "opacity_reset_interval": 12}


def resumed(trainer: Trainer) -> Trainer:
    tensors, header = trainer.export_state()
    text = json.dumps(header, allow_nan=False)  # as the checkpoint file has it
    photos = with_photos(trainer)
    return Trainer.from_state(tiny_scene(), photos, tensors, json.loads(text), backend=BACKEND)


# 3: mid-epoch; 11: before a reset; 12: where one waits; 14: before a refine, statistics full;
# 15: right after one
@pytest.mark.parametrize("taken_at", [3, 11, 12, 14, 15])
def test_a_run_taken_up_again_gives_the_bits_of_one_never_stopped(taken_at: int) -> None:
    whole, first = make_trainer(**SETTINGS), make_trainer(**SETTINGS)
    step_until(whole, 21)
    step_until(first, taken_at)
    second = resumed(first)
    assert second.step == taken_at
    assert second.seconds == first.seconds
    step_until(second, 21)
    assert bits(second) == bits(whole)


def without_first_photo(trainer: Trainer) -> tuple[Scene, MemoryPhotos]:
    """The scene of a trainer, whose first photo, a held-out one, is gone."""
    photos = with_photos(trainer)
    left = MemoryPhotos(photos.pictures[1:], photos.alphas[1:])
    return tiny_scene(trainer.scene.photos[1:]), left


def test_a_run_goes_on_with_the_same_photos_when_a_held_out_one_is_gone() -> None:
    whole = make_trainer(**SETTINGS)
    step_until(whole, 3)
    tensors, header = whole.export_state()
    scene, photos = without_first_photo(whole)
    second = Trainer.from_state(scene, photos, tensors, header, backend=BACKEND)
    for _ in range(8):
        assert second.step_once().photo == whole.step_once().photo


def test_a_photo_order_of_photos_that_are_not_trained_on_is_refused() -> None:
    trainer = make_trainer()
    trainer.step_once()
    tensors, header = trainer.export_state()
    del header["training_indices"]  # as the first checkpoints were
    scene, photos = without_first_photo(trainer)
    with pytest.raises(CheckpointError, match="names photo 9, which is none to train on"):
        Trainer.from_state(scene, photos, tensors, header, backend=BACKEND)


def test_settings_come_back_with_the_state() -> None:
    trainer = make_trainer(**SETTINGS)
    trainer.apply_setting("iterations", 50_000)
    trainer.apply_setting("opacity_lr", 0.033)
    assert resumed(trainer).settings == trainer.settings


def test_settings_put_into_the_header_are_those_of_the_resumed_run() -> None:
    trainer = make_trainer(sh_interval=1)
    step_until(trainer, 5)
    tensors, header = trainer.export_state()
    wanted = trainer.settings.updated({"iterations": 77, "sh_degree_max": 1})
    header["settings"] |= {"iterations": 77, "sh_degree_max": 1}
    second = Trainer.from_state(
        tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND
    )
    assert second.settings == wanted
    assert second.sh_degree == 1
    kept = second.model.sh_rest[:, 3:].detach().clone()
    second.step_once()
    assert torch.equal(second.model.sh_rest[:, 3:], kept)


def test_an_exported_state_is_a_copy_that_training_does_not_touch() -> None:
    trainer = make_trainer(**SETTINGS)
    step_until(trainer, 2)
    tensors, _ = trainer.export_state()
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    trainer.step_once()
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)
    shared, _ = trainer.export_state(copy=False)
    assert shared["model.means"].data_ptr() == trainer.model.means.data_ptr()


def test_two_resumed_runs_do_not_share_memory() -> None:
    trainer = make_trainer(**SETTINGS)
    step_until(trainer, 2)
    tensors, header = trainer.export_state()
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    second = Trainer.from_state(
        tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND
    )
    step_until(second, 4)
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)


@pytest.mark.parametrize("name", ["adam.means.exp_avg", "statistics.visits", "random.split"])
def test_a_missing_tensor_is_named(name: str) -> None:
    trainer = make_trainer()
    tensors, header = trainer.export_state()
    del tensors[name]
    with pytest.raises(CheckpointError, match=name):
        Trainer.from_state(tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND)


@pytest.mark.parametrize("name", ["step", "adam_steps", "settings", "sh_reached"])
def test_a_missing_entry_of_the_header_is_named(name: str) -> None:
    trainer = make_trainer()
    tensors, header = trainer.export_state()
    del header[name]
    with pytest.raises(CheckpointError, match=name):
        Trainer.from_state(tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND)


@pytest.mark.parametrize(
    ("entry", "value"),
    [("step", {}), ("seconds", None), ("adam_steps", {"means": []}), ("unseen", [1])],
)
def test_a_header_with_other_types_in_it_is_called_damaged(entry: str, value: object) -> None:
    trainer = make_trainer()
    tensors, header = trainer.export_state()
    header[entry] = {**header[entry], **value} if entry == "adam_steps" else value
    with pytest.raises(CheckpointError, match="header of the checkpoint is damaged"):
        Trainer.from_state(tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND)


def test_random_numbers_that_are_none_are_called_damaged() -> None:
    trainer = make_trainer()
    tensors, header = trainer.export_state()
    tensors["random.split"] = torch.full_like(tensors["random.split"], 255)
    with pytest.raises(CheckpointError, match="random numbers of the checkpoint are damaged"):
        Trainer.from_state(tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND)


def test_statistics_of_another_count_are_refused() -> None:
    trainer = make_trainer()
    tensors, header = trainer.export_state()
    tensors["statistics.visits"] = torch.zeros(29)
    with pytest.raises(CheckpointError, match=r"statistics.visits .* \(29,\); expected \(30,\)"):
        Trainer.from_state(tiny_scene(), with_photos(trainer), tensors, header, backend=BACKEND)


def test_a_checkpoint_of_other_photos_is_refused_by_their_names() -> None:
    trainer = make_trainer()
    tensors, header = trainer.export_state()
    other = changed_photo(tiny_scene(), 4, photo_of("new.png", camera_at(2.4)))
    with pytest.raises(CheckpointError, match=r"04.png in the run, new.png in the scene"):
        Trainer.from_state(other, with_photos(trainer), tensors, header, backend=BACKEND)
