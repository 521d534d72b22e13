"""A whole run on a GPU that only pretends to be one: nothing is left behind in main memory.

The reference draws, since it is plain torch; the numbers must be those of the CPU to the bit.
"""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.settings import Settings
from engine.training.device_photos import DevicePhotos
from engine.training.evaluation import evaluate
from engine.training.render import RenderMode
from engine.training.trainer import Trainer
from tests.engine.pretend_gpu import GPU, Counts, PretendTensor, pretend_gpu
from tests.engine.training.tiny_scene import (
    MemoryPhotos,
    bits,
    pictures,
    quick,
    step,
    tiny_scene,
)

CPU = torch.device("cpu")
STEPS = 4  # with a refine at 3 that clones, splits and prunes, and a reset at 4


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    with pretend_gpu(monkeypatch) as counts:
        yield counts


def trainer_on(device: torch.device, *, alpha: bool = False, **values: object) -> Trainer:
    scene = tiny_scene()
    shown = list(pictures())
    alphas = [np.full(p.shape[:2], 200, np.uint8) if alpha else None for p in shown]
    settings: Settings = quick(
        gradient_threshold=1e-6,
        densify_start=1,
        densify_interval=3,
        opacity_reset_interval=4,
        **values,
    )
    return Trainer(scene, MemoryPhotos(shown, alphas), settings, backend="reference", device=device)


def of_the_engine(modules: list[str]) -> list[str]:
    """Without those of the reference, which is plain torch and waits as it likes."""
    return [module for module in modules if module.startswith("engine.")]


def test_a_run_on_a_gpu_is_that_on_the_cpu_with_everything_on_the_gpu(gpu):
    here, there = trainer_on(CPU), trainer_on(GPU)
    grown = []
    for _ in range(STEPS):
        result = there.step_once()
        assert result.loss == here.step_once().loss
        grown.append(result.refined)
    assert grown[2].cloned + grown[2].split > 0
    assert bits(there) == bits(here)
    for name, tensor in there.model.items():
        assert isinstance(tensor, PretendTensor), name
    for group in there.optimizer.groups.values():
        assert isinstance(group.exp_avg, PretendTensor)
    assert all(isinstance(t, PretendTensor) for t in there.strategy.export_state().values())


def test_a_step_reads_nothing_and_waits_for_no_upload(gpu):
    trainer = trainer_on(GPU, background="random", alpha=True)
    trainer.step_once()
    assert not trainer.unseen
    gpu.clear()
    step(trainer)
    assert of_the_engine(gpu.reads) == []
    assert of_the_engine(gpu.plain_uploads) == []
    assert gpu.event_waits == []
    assert trainer.take_results() == []
    trainer.settle()
    assert gpu.event_waits == ["engine.transfers"]
    assert [result.step for result in trainer.take_results()] == [2]


def test_everything_done_by_hand_works_on_a_gpu(gpu):
    trainer = trainer_on(GPU)
    trainer.step_once()
    trainer.densify_now()
    trainer.prune_now()
    trainer.reset_opacity()
    trainer.apply_setting("sh_degree_max", 0)
    picture = trainer.render(trainer.scene.photos[0].camera, (0.0, 0.0, 0.0))
    assert isinstance(picture, PretendTensor)
    scores = list(trainer.evaluate())
    assert len(scores) == 2
    trainer.step_once()


@pytest.mark.parametrize(("source", "target"), [(CPU, GPU), (GPU, CPU)])
def test_a_checkpoint_of_one_device_goes_on_exactly_on_another(gpu, source, target):
    first = trainer_on(source)
    for _ in range(2):
        first.step_once()
    tensors, header = first.export_state()
    second = Trainer.from_state(
        first.scene,
        MemoryPhotos(list(pictures()), [None] * 10),
        tensors,
        header,
        backend="reference",
        device=target,
    )
    for _ in range(2):
        first.step_once()
        second.step_once()
    assert bits(first) == bits(second)


def test_a_model_from_disk_is_measured_on_a_gpu(gpu):
    trainer = trainer_on(CPU)
    expected = list(trainer.evaluate())
    trainer.model.move_to(GPU)
    photos = MemoryPhotos(list(pictures()), [None] * 10)
    scores = evaluate(
        trainer.model,
        trainer.scene,
        photos,
        background=(0.0, 0.0, 0.0),
        sh_degree=0,
        mode=RenderMode("reference"),
    )
    assert list(scores) == expected


def test_a_photo_that_shows_nothing_moves_nothing(gpu):
    trainer = trainer_on(GPU)
    with torch.no_grad():
        trainer.model.means += 1e4
    result = trainer.step_once()
    assert result.unseen
    assert trainer.optimizer.groups["means"].steps == 0


# --- where photos are kept ------------------------------------------------------------------------


class Asked(MemoryPhotos):
    """Counts what was asked of it."""

    def __init__(self, count: int) -> None:
        random = np.random.default_rng(1)
        shape = (4, 5, 3)
        super().__init__(
            [random.integers(0, 256, shape).astype(np.uint8) for _ in range(count)], [None] * count
        )


def test_photos_stay_on_the_gpu_as_far_as_the_budget_goes_then_page_locked(gpu):
    # Photos of 60 bytes, of which torch takes 64 where it locks pages.
    photos = DevicePhotos(Asked(4), GPU, device_budget=130, locked_budget=127)
    for index in range(4):
        assert torch.equal(photos.rgb(index).cpu(), torch.from_numpy(photos._source.rgb(index)))
    kept = [photos.rgb(index) is photos.rgb(index) for index in range(4)]
    assert kept == [True, True, False, False]
    assert [key[1] for key in photos._locked] == [2]


def test_photos_make_room_and_are_then_copied(gpu):
    photos = DevicePhotos(Asked(2), GPU, device_budget=1000, locked_budget=0)
    before = [photos.rgb(index).cpu() for index in range(2)]
    assert photos.make_room() == 120
    after = [photos.rgb(index) for index in range(2)]
    assert all(torch.equal(a.cpu(), b) for a, b in zip(after, before, strict=True))
    assert photos.make_room() == 0


def test_memory_that_runs_out_in_a_refine_keeps_the_model_and_gives_up_the_photos(gpu, monkeypatch):
    trainer = trainer_on(GPU)
    for _ in range(2):
        trainer.step_once()
    before = bits(trainer)

    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")

    with monkeypatch.context() as patch:
        patch.setattr(trainer.optimizer, "gathered", refuse)
        with pytest.raises(Exception, match="Memory ran out in step 3") as caught:
            trainer.step_once()
    assert "Lower the resolution or the splat cap" in str(caught.value)
    assert "The photos left the GPU" in str(caught.value)
    assert bits(trainer) == before
    assert trainer.step_once().refined is not None
