"""The whole engine with backend "cuda": on the emulator, and with a GPU that fails."""

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import cuda_rasterizer
from cuda_rasterizer.cuda.launches import use_launcher
from engine import messages as m
from engine.messages import State
from engine.training.densification import Edit
from tests.cuda_emulator.launcher import EmulatedLauncher
from tests.engine.driving import Driver, quick

pytestmark = pytest.mark.emulator

ON_CUDA = quick(
    backend="cuda", iterations=1_000, densify_start=1, densify_interval=2, gradient_threshold=1e-6
)


class Failing:
    """A launcher that refuses the kernels that `refuses` names, as a driver would."""

    device_type = "cpu"

    def __init__(self, launcher: EmulatedLauncher) -> None:
        self._launcher = launcher
        self.refuses: dict[str, Exception] = {}

    def launch(self, kernel: str, params: ctypes.Structure, **words: Any) -> None:
        if kernel in self.refuses:
            raise self.refuses[kernel]
        self._launcher.launch(kernel, params, **words)


@pytest.fixture
def failing(emulated: EmulatedLauncher) -> Iterator[Failing]:
    launcher = Failing(emulated)
    with use_launcher(launcher):
        yield launcher


def test_a_run_on_cuda_trains_draws_measures_saves_and_goes_on_on_the_cpu(
    emulated: EmulatedLauncher, driver: Driver, scene: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    driver.open_paused(scene, folder, ON_CUDA)
    assert "CUDA" in driver.all(m.RunStarted)[-1].device
    assert driver.all(m.Refined)[0].cloned + driver.all(m.Refined)[0].split > 0
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.until(lambda: len(driver.frames) == 1)
    assert driver.frames[0].pixels[..., :3].std() > 0
    scores = driver.ask(m.Evaluate(), m.Evaluated)
    driver.ask(m.Save(), m.Saved)

    driver.ask(m.ResumeRun(folder, (("backend", "cpu"),), start=False), m.RunStarted)
    assert driver.all(m.RunStarted)[-1].device.startswith("CPU")
    driver.reach(State.PAUSED)
    again = driver.ask(m.Evaluate(), m.Evaluated)
    # The same model drawn by other kernels: pictures differ by rounding.
    assert again.psnr == pytest.approx(scores.psnr, abs=0.01)
    driver.post(m.StepN(2))
    driver.until(lambda: driver.steps == 5)


def test_memory_that_runs_out_while_densifying_pauses_and_a_lower_cap_goes_on(
    emulated: EmulatedLauncher,
    driver: Driver,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver.open_paused(scene, tmp_path / "run", ON_CUDA)
    emptied: list[bool] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(True))

    def refuse(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    with monkeypatch.context() as patch:
        patch.setattr(Edit, "parameters", refuse)
        failed = driver.ask(m.Start(), m.Failed)
    driver.reach(State.PAUSED)
    assert "Memory ran out in step 4" in failed.message
    assert "Lower the resolution or the splat cap" in failed.message
    assert emptied
    driver.ask(m.SetSetting("max_splats", 1_000), m.SettingApplied)
    driver.post(m.StepN(1))
    driver.until(lambda: driver.steps == 4)


def test_memory_that_runs_out_while_a_view_is_drawn_leaves_training_alone(
    failing: Failing, driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open_paused(scene, tmp_path / "run", ON_CUDA)
    failing.refuses["to_rgba8"] = torch.OutOfMemoryError("CUDA out of memory. Tried 2.00 GiB.")
    driver.engine.request_view(m.View(1, driver.camera()))
    driver.until(lambda: any("Memory ran out" in e.message for e in driver.all(m.Noticed)))
    assert driver.state is State.PAUSED
    failing.refuses.clear()
    driver.post(m.StepN(1))
    driver.until(lambda: driver.steps == 4)


def test_a_kernel_that_fails_keeps_the_model_and_is_named(
    failing: Failing, driver: Driver, scene: Path, tmp_path: Path
) -> None:
    driver.open_paused(scene, tmp_path / "run", ON_CUDA)
    error = cuda_rasterizer.RasterizerError("kernel blend (grid 4, block 256): illegal address")
    failing.refuses["blend"] = error
    failed = driver.ask(m.Start(), m.Failed)
    driver.reach(State.FAILED)
    assert "kernel blend" in failed.message
    assert driver.ask(m.Save(), m.Saved).step == 3


# --- compiling the kernels ------------------------------------------------------------------------


def compiling(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Kernels that take their time to compile."""

    def prepare(backend: str, progress: Callable[[str, int, int], None]) -> None:
        assert backend == "cuda"
        progress("compiling the kernels for sm_89", 0, 3)
        meanwhile()
        progress("compiled blend for sm_89", 3, 3)  # the last one is always told

    monkeypatch.setattr(cuda_rasterizer, "prepare", prepare)


def test_compiling_is_told_while_a_scene_loads(
    emulated: EmulatedLauncher,
    driver: Driver,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiling(monkeypatch, lambda: None)
    driver.open(scene, tmp_path / "run", ON_CUDA, start=False)
    told = [event for event in driver.all(m.LoadingProgressed) if "Compiling" in event.stage]
    assert told[0].stage == "Compiling kernels for the GPU"
    assert [(event.file, event.done, event.total) for event in told] == [
        ("compiling the kernels for sm_89", 0, 3),
        ("compiled blend for sm_89", 3, 3),
    ]


def test_a_load_is_cancelled_while_kernels_compile(
    emulated: EmulatedLauncher,
    driver: Driver,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cancel() -> None:
        driver.engine.post(m.CancelLoading())
        driver.until(lambda: driver.state is State.EMPTY)

    compiling(monkeypatch, cancel)
    driver.post(m.OpenScene(scene, ON_CUDA, True, tmp_path / "run"))
    driver.reach(State.LOADING)
    driver.until(lambda: driver.state is State.EMPTY)
    assert not driver.all(m.RunStarted)
    assert not driver.all(m.Failed)


def test_kernels_that_do_not_compile_end_the_load_with_the_compiler_s_words(
    emulated: EmulatedLauncher,
    driver: Driver,
    scene: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def break_off() -> None:
        raise cuda_rasterizer.RasterizerError("blend.cu does not compile for sm_89: line 7")

    compiling(monkeypatch, break_off)
    failed = driver.ask(m.OpenScene(scene, ON_CUDA, True, tmp_path / "run"), m.Failed)
    assert "blend.cu does not compile for sm_89" in failed.message
    driver.reach(State.EMPTY)
