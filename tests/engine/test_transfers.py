"""What goes between main memory and a device, on the CPU and on a GPU that only pretends."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.memory import give_back_memory
from engine.transfers import PictureCopy, to_device
from tests.engine.pretend_gpu import GPU, Counts, PretendTensor, pretend_gpu


class Event:
    """A mark on a stream that has passed when the test says so."""

    has_passed = False

    def __init__(self, enable_timing: bool = False) -> None:
        self.recorded = False

    def record(self, stream: object) -> None:
        self.recorded = True

    def query(self) -> bool:
        return self.recorded and Event.has_passed

    def synchronize(self) -> None:
        Event.has_passed = True

    def elapsed_time(self, other: "Event") -> float:
        assert self.recorded
        assert other.recorded
        return 12.5


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    monkeypatch.setattr(Event, "has_passed", False)
    with pretend_gpu(monkeypatch) as counts:
        monkeypatch.setattr(torch.cuda, "Event", Event)
        yield counts


PIXELS = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 4)


def test_on_the_cpu_nothing_is_copied():
    values = torch.ones(3)
    assert to_device(values, torch.device("cpu")) is values
    copy = PictureCopy(torch.device("cpu"))
    copy.send(PIXELS)
    assert copy.is_there()
    assert copy.seconds() >= 0
    assert copy.pixels().tolist() == PIXELS.tolist()


def test_an_upload_does_not_wait(gpu):
    there = to_device(torch.ones(3), GPU)
    assert isinstance(there, PretendTensor)
    assert gpu.plain_uploads == []
    torch.ones(3).to(GPU)
    assert len(gpu.plain_uploads) == 1


def test_a_picture_of_a_gpu_arrives_later_with_the_time_it_took_there(gpu):
    copy = PictureCopy(GPU)
    copy.send(PIXELS.to(GPU))
    assert not copy.is_there()
    Event.has_passed = True
    assert copy.is_there()
    assert copy.seconds() == 0.0125
    pixels = copy.pixels()
    assert np.array_equal(pixels, PIXELS.numpy())
    assert not pixels.flags.writeable
    assert not gpu.reads


def test_what_the_device_still_had_to_draw_when_the_host_went_on_is_known(gpu, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("engine.transfers.time.perf_counter", lambda: clock[0])
    copy = PictureCopy(GPU)
    clock[0] += 0.004  # the host has drawn, of 12.5 ms on the device
    copy.send(PIXELS.to(GPU))
    assert copy.seconds_behind() == pytest.approx(0.0085)
    clock[0] += 1.0
    slow = PictureCopy(GPU)
    clock[0] += 0.5
    slow.send(PIXELS.to(GPU))
    assert slow.seconds_behind() == 0.0


def test_a_picture_that_is_needed_now_is_waited_for(gpu):
    copy = PictureCopy(GPU)
    copy.send(PIXELS.to(GPU))
    assert np.array_equal(copy.pixels(), PIXELS.numpy())
    assert Event.has_passed


def test_a_picture_that_was_never_sent_is_a_mistake():
    with pytest.raises(RuntimeError, match="before it was sent"):
        PictureCopy(torch.device("cpu")).pixels()


def test_a_failed_attempt_gives_its_memory_back(monkeypatch):
    emptied: list[bool] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))
    alive: list[bool] = []

    class Large:
        def __del__(self) -> None:
            alive.clear()

    def attempt() -> None:
        held = Large()
        alive.append(True)
        raise torch.OutOfMemoryError(f"no room for {type(held).__name__}")

    def retell() -> None:
        try:
            attempt()
        except torch.OutOfMemoryError as error:
            raise ValueError("memory ran out") from error

    with pytest.raises(ValueError, match="ran out") as caught:
        retell()
    assert alive
    give_back_memory(caught.value)
    assert not alive
    assert emptied
