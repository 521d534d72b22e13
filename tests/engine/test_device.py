import os
import threading

import pytest
import torch

import cuda_rasterizer
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
    def refuse(name: str) -> str:
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
