"""Views and urgent commands that come while a kernel of a step is under way."""

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cuda_rasterizer import native
from cuda_rasterizer.native_structs import BlendBackwardParams, BlendParams
from engine import messages as m
from engine.messages import State
from engine.training.trainer import Trainer
from tests.engine.driving import ENDLESS, SECONDS, Driver

VIEW = (100, 75)


class Kernels:
    """Notes every kernel, and holds the engine's thread at the next one that `hold` names."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._hold: str | None = None
        self._held = threading.Event()
        self._go_on = threading.Event()
        self._call = native.call

    def call(self, kernel: native.KernelName, dtype: torch.dtype, params: ctypes.Structure) -> None:
        in_pieces = isinstance(params, BlendParams | BlendBackwardParams) and params.pieces
        name = f"{kernel} in pieces" if in_pieces else kernel
        self.names.append(name)
        if name == self._hold:
            self._hold = None
            self.names[:] = [name]
            self._held.set()
            assert self._go_on.wait(SECONDS)
        self._call(kernel, dtype, params)

    def meanwhile(self, kernel: str, do: Callable[[], None]) -> None:
        """Do something while the engine is about to enter the kernel; keep the names from there."""
        self._hold = kernel
        assert self._held.wait(SECONDS)
        do()
        self._go_on.set()


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    kernels = Kernels()
    monkeypatch.setattr(native, "call", kernels.call)
    return kernels


@pytest.fixture
def driver(driver: Driver, scene: Path, tmp_path: Path) -> Driver:
    """A run that trains without end, on one thread."""
    driver.open(scene, tmp_path / "run", ENDLESS)
    driver.until(lambda: driver.steps >= 3)
    return driver


@pytest.mark.parametrize("kernel", ["blend", "blend_backward"])
def test_a_view_asked_for_within_a_kernel_is_drawn_before_the_kernel_ends(
    driver: Driver, kernels: Kernels, kernel: str
) -> None:
    view = m.View(7, driver.camera().resized(*VIEW))
    kernels.meanwhile(f"{kernel} in pieces", lambda: driver.engine.request_view(view))
    driver.until(lambda: len(driver.frames) == 1)
    assert driver.frames[0].view_id == 7
    driver.ask(m.Pause(), m.StateChanged)
    assert driver.state is State.PAUSED
    again = kernels.names.index(f"{kernel} in pieces", 1)
    assert kernels.names[1:again] == ["project", "bin_count", "bin_fill", "blend", "to_rgba8"]


def test_a_stop_within_a_kernel_drops_the_step_there(driver: Driver, kernels: Kernels) -> None:
    kernels.meanwhile("blend_backward in pieces", lambda: driver.post(m.Stop()))
    finished = driver.next(m.Finished)
    assert kernels.names.count("blend_backward in pieces") == 1
    assert "adam" not in kernels.names
    assert finished.step == driver.steps
    assert finished.checkpoint.exists()


def test_a_stop_within_an_evaluation_gives_it_up_there(driver: Driver, kernels: Kernels) -> None:
    driver.ask(m.Pause(), m.StateChanged)
    driver.post(m.Evaluate())
    kernels.meanwhile("blend in pieces", lambda: driver.post(m.Stop()))
    driver.next(m.Finished)
    assert kernels.names == ["blend in pieces"]
    assert driver.all(m.Evaluated) == []


def test_a_view_that_fails_within_a_kernel_is_told_and_keeps_the_model(
    driver: Driver, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("no such colour")

    def ask() -> None:
        monkeypatch.setattr(Trainer, "render", fail)
        driver.engine.request_view(m.View(1, driver.camera()))

    kernels.meanwhile("blend_backward in pieces", ask)
    failed = driver.next(m.Failed)
    assert "no such colour" in failed.message
    assert kernels.names == ["blend_backward in pieces"]
    driver.reach(State.FAILED)
    monkeypatch.undo()
    assert driver.ask(m.Save(), m.Saved).step == failed.step
