"""The faster steps on a GPU that only pretends to be one."""

from collections.abc import Iterator

import pytest

from tests.engine.pretend_gpu import GPU, Counts, PretendTensor, pretend_gpu
from tests.engine.training.test_training_on_a_gpu import CPU, of_the_engine, trainer_on
from tests.engine.training.tiny_scene import bits, step

ALL = {
    "coarse_halvings": 1,
    "coarse_steps": 2,
    "sh_rest_interval": 2,
    "sh_interval": 1,
    "visible_only": True,
    "morton_interval": 3,
}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    with pretend_gpu(monkeypatch) as counts:
        yield counts


def test_a_run_with_all_of_them_on_a_gpu_is_that_on_the_cpu(gpu: Counts) -> None:
    here, there = (trainer_on(device, alpha=True, **ALL) for device in (CPU, GPU))
    for _ in range(4):  # small and full photos, a refine that sorts at 3
        assert there.step_once().loss == here.step_once().loss
    assert bits(there) == bits(here)
    assert all(isinstance(tensor, PretendTensor) for _, tensor in there.model.items())


def test_a_step_on_a_small_photo_reads_nothing_and_waits_for_no_upload(gpu: Counts) -> None:
    trainer = trainer_on(GPU, alpha=True, coarse_halvings=1, visible_only=True)
    trainer.step_once()
    gpu.clear()
    step(trainer)
    assert of_the_engine(gpu.reads) == []
    assert gpu.event_waits == []
    assert of_the_engine(gpu.plain_uploads) == []
