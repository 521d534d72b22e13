import os
import threading
import types
from collections.abc import Callable

import pytest
import torch

import cuda_rasterizer
from cuda_rasterizer.cuda import availability
from cuda_rasterizer.cuda.launches import use_launcher
from engine import device
from engine.errors import BackendError, SettingError
from engine.settings import Settings


@pytest.fixture
def priorities(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """What would have been set, by thread; a test must not really lower its own priority."""
    changed: dict[int, int] = {}
    monkeypatch.setattr(
        os, "setpriority", lambda which, thread, value: changed.update({thread: value})
    )
    return changed


def test_torch_runs_one_thread() -> None:
    assert torch.get_num_threads() == 1


def test_the_backend_of_the_settings_is_resolved_and_described() -> None:
    backend = device.choose_backend(Settings())
    assert backend in {"cpu", "reference", "cuda"}
    assert device.describe(backend)


def test_a_backend_that_cannot_be_had_is_an_error_and_no_quiet_fall_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(name: str, gpu: int | None) -> str:
        raise cuda_rasterizer.RasterizerError(f"{name}: no NVIDIA driver was found")

    monkeypatch.setattr(cuda_rasterizer, "resolve_backend", refuse)
    with pytest.raises(BackendError, match="no NVIDIA driver") as caught:
        device.choose_backend(Settings().changed("backend", "cuda"))
    assert caught.value.value == "cuda"


def test_threads_and_priority_of_the_settings_are_put_into_force(
    monkeypatch: pytest.MonkeyPatch, priorities: dict[int, int]
) -> None:
    counts: list[int] = []
    monkeypatch.setattr(cuda_rasterizer, "set_threads", counts.append)
    settings = Settings().updated({"threads": 3, "low_priority": True})
    device.choose_backend(settings)
    assert not counts  # a load may still be given up
    assert not priorities
    assert device.put_into_force(settings) is None
    assert counts == [3]
    assert set(priorities.values()) == {max(10, device.START_PRIORITY)}


def test_a_run_after_one_of_low_priority_asks_for_the_old_one_and_tells_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def refuse(which: int, thread: int, value: int) -> None:
        asked.append(value)
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    monkeypatch.setattr(cuda_rasterizer, "set_threads", lambda count: None)
    assert device.put_into_force(Settings()) is None
    assert not asked  # nothing was lowered, so nothing is to be said
    monkeypatch.setattr(os, "getpriority", lambda which, who: device.START_PRIORITY + 10)
    message = device.put_into_force(Settings())
    assert asked == [device.START_PRIORITY]
    assert message is not None
    assert "stays low" in message


def test_threads_that_the_system_does_not_give_are_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(count: int) -> None:
        raise cuda_rasterizer.RasterizerError("the system gave 5 threads")

    monkeypatch.setattr(cuda_rasterizer, "set_threads", refuse)
    with pytest.raises(SettingError, match="threads cannot be 200: the system gave 5"):
        device.set_threads(200)


def test_low_priority_reaches_every_thread(priorities: dict[int, int]) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert device.set_low_priority(True) is None
        assert thread.native_id in priorities
        assert threading.get_native_id() in priorities
        assert device.set_low_priority(False) is None
        assert set(priorities.values()) == {device.START_PRIORITY}
    finally:
        stop.set()
        thread.join()


def test_a_system_that_does_not_raise_a_priority_again_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(which: int, thread: int, value: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    message = device.set_low_priority(False)
    assert message is not None
    assert "stays low" in message


# --- where tensors live ---------------------------------------------------------------------------


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"Card {index}")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("index", [0, 1])
def test_the_gpu_of_the_settings_holds_everything_of_a_cuda_run(index: int) -> None:
    found = device.tensor_device("cuda", Settings().changed("gpu", index))
    assert found == torch.device("cuda", index)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_other_backends_stay_on_the_cpu(backend: str) -> None:
    assert device.tensor_device(backend, Settings()) == torch.device("cpu")


@pytest.mark.usefixtures("two_gpus")
def test_cuda_is_judged_by_the_gpu_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {None: "the GPU in use is too old", 0: "GPU 0 is too old", 1: None}
    monkeypatch.setattr(availability, "unavailable_reason", reasons.__getitem__)
    settings = Settings().changed("backend", "cuda")
    assert device.choose_backend(settings.changed("gpu", 1)) == "cuda"
    with pytest.raises(BackendError, match="GPU 0 is too old"):
        device.choose_backend(settings)
    with pytest.raises(BackendError, match="the GPU in use is too old"):
        device.choose_backend(settings.changed("gpu", 5))  # which there is not: `tensor_device`


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(BackendError, match=r"no GPU 5; torch sees 2 \(0: Card 0, 1: Card 1\)"):
        device.tensor_device("cuda", Settings().changed("gpu", 5))


def test_kernels_on_the_emulator_take_tensors_of_the_cpu() -> None:
    launcher = types.SimpleNamespace(device_type="cpu")
    with use_launcher(launcher):
        assert device.tensor_device("cuda", Settings()) == torch.device("cpu")


def test_the_gpu_is_made_that_of_the_thread(
    monkeypatch: pytest.MonkeyPatch, priorities: dict[int, int]
) -> None:
    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(cuda_rasterizer, "set_threads", lambda count: None)
    device.put_into_force(Settings(), torch.device("cpu"))
    assert not chosen
    device.put_into_force(Settings(), torch.device("cuda", 1))
    assert chosen == [torch.device("cuda", 1)]


def compile_two(backend: str, progress: Callable[[str, int, int], None]) -> None:
    assert backend == "cuda"
    progress("compiling the kernels for sm_89", 0, 2)
    progress("compiled blend for sm_89", 1, 2)


def test_compiling_the_kernels_is_told_as_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_rasterizer, "prepare", compile_two)
    told: list[tuple[str, str, int, int]] = []
    device.prepare_kernels("cuda", lambda *what: told.append(what))
    assert told == [
        ("Compiling kernels for the GPU", "compiling the kernels for sm_89", 0, 2),
        ("Compiling kernels for the GPU", "compiled blend for sm_89", 1, 2),
    ]


def test_kernels_that_do_not_compile_are_an_error_with_the_compiler_s_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(backend: str, progress: Callable[[str, int, int], None]) -> None:
        raise cuda_rasterizer.RasterizerError("blend.cu(7): error")

    monkeypatch.setattr(cuda_rasterizer, "prepare", refuse)
    with pytest.raises(BackendError, match=r"blend\.cu\(7\)"):
        device.prepare_kernels("cuda", lambda *what: None)


def test_nothing_is_compiled_for_the_cpu() -> None:
    device.prepare_kernels("reference", lambda *what: pytest.fail("told"))
