"""A GPU that is not there: tensors that say they are on it and keep their numbers in main memory.

As on a real one, an operation on tensors of both places is an error (but for single numbers of the
CPU), and numpy cannot look into them. Reads that would wait for the device are counted, and so are
uploads that would wait because they do not go through page-locked memory.
"""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

GPU = torch.device("meta")  # torch without CUDA has no autograd for devices called cuda
_READS = ("aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::equal")


class Counts:
    """What would have waited for the device since the test began, by the module that did it."""

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.plain_uploads: list[str] = []
        self.event_waits: list[str] = []  # for events that had not passed

    def clear(self) -> None:
        self.reads.clear()
        self.plain_uploads.clear()
        self.event_waits.clear()


class Timeline:
    """What is queued on the device, and how far the host knows it to have come.

    The device is as slow as can be: it does nothing before somebody waits for it.
    """

    queued = 0
    done = 0

    @classmethod
    def wait(cls) -> None:
        cls.done = cls.queued


class PretendEvent:
    """A mark on the stream."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._place: int | None = None

    def record(self, stream: object = None) -> None:
        Timeline.queued += 1
        self._place = Timeline.queued

    def query(self) -> bool:
        return self._place is not None and self._place <= Timeline.done

    def synchronize(self) -> None:
        assert self._place is not None
        if not self.query():
            COUNTS.event_waits.append(_module())
            Timeline.done = self._place

    def elapsed_time(self, other: "PretendEvent") -> float:
        return 0.0


def _module() -> str:
    """The nearest caller that is a module of ours, and no test's."""
    frame = sys._getframe()
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith(("engine.", "cuda_rasterizer.")):
            return name
        frame = frame.f_back
    return "elsewhere"


COUNTS = Counts()


def _count_read() -> None:
    COUNTS.reads.append(_module())
    Timeline.wait()


class PretendTensor(Tensor):
    """A tensor of the GPU; `numbers` is what it holds."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "PretendTensor":
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            numbers.size(),
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            layout=numbers.layout,
            requires_grad=numbers.requires_grad,
            device=GPU,
        )

    def __init__(self, numbers: Tensor) -> None:
        self.numbers = numbers

    def __repr__(self, **_: Any) -> str:
        return f"PretendTensor({self.numbers!r})"

    def data_ptr(self) -> int:
        return self.numbers.data_ptr()

    def tolist(self) -> Any:
        _count_read()
        return self.numbers.detach().tolist()

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, arguments: Any = (), words: Any = None):
        return run_on_gpu(function, arguments, words or {})


def run_on_gpu(function: Any, arguments: Any, words: dict[str, Any]) -> Any:
    """Carry out one operation that has to do with the GPU."""
    flat, _ = tree_flatten((arguments, words))
    tensors = [value for value in flat if isinstance(value, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, PretendTensor)]
    here = [tensor for tensor in tensors if not isinstance(tensor, PretendTensor)]
    name = function._schema.name
    wanted = words.get("device")
    is_copy = name in ("aten::_to_copy", "aten::copy_")
    if there and not is_copy and any(tensor.dim() > 0 for tensor in here):
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, found two")
    Timeline.queued += 1
    if there and name in _READS:
        _count_read()
    if wanted is not None and torch.device(wanted).type == GPU.type:
        if here and not words.get("non_blocking", False):
            COUNTS.plain_uploads.append(_module())
        words = {**words, "device": torch.device("cpu")}
        back_to_main = False
    else:
        back_to_main = wanted is not None and torch.device(wanted).type == "cpu"
        if back_to_main and there:
            _count_read()
    bare_arguments, bare_words = tree_map(
        lambda value: value.numbers if isinstance(value, PretendTensor) else value,
        (arguments, words),
    )
    if "pin_memory" in bare_words:
        bare_words = {**bare_words, "pin_memory": False}
    result = function(*bare_arguments, **bare_words)
    if back_to_main or name == "aten::_local_scalar_dense":
        return result

    def wrapped(value: Any) -> Any:
        return PretendTensor(value) if isinstance(value, Tensor) else value

    wrapped_result = tree_map(wrapped, result)
    return return_and_correct_aliasing(function, arguments, words, wrapped_result)


class _PretendMode(TorchDispatchMode):
    """Catches what makes tensors on the GPU out of nothing or out of those in main memory."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), words: Any = None):
        words = words or {}
        device = words.get("device")
        if device is not None and torch.device(device).type == GPU.type:
            return run_on_gpu(function, arguments, words)
        flat, _ = tree_flatten((arguments, words))
        if any(isinstance(value, PretendTensor) for value in flat):
            return run_on_gpu(function, arguments, words)
        if words.get("pin_memory"):
            words = {**words, "pin_memory": False}
        return function(*arguments, **words)


_plain_tensor = torch.tensor


def _tensor(values: Any, *, device: Any = None, **words: Any) -> Tensor:
    """`torch.tensor`, which would put numbers on the GPU where no dispatch sees it."""
    made = _plain_tensor(values, **words)
    return made if device is None else made.to(device)


def _new_tensor(self: Tensor, values: Any, *, dtype: torch.dtype | None = None) -> Tensor:
    return _plain_tensor(values, dtype=dtype or self.dtype).to(self.device)


@contextlib.contextmanager
def pretend_gpu(monkeypatch: pytest.MonkeyPatch, *, free_bytes: int = 2**30) -> Iterator[Counts]:
    """Meanwhile `GPU` can be used, with so much memory free."""
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "mem_get_info", lambda device=None: (free_bytes, 2 * free_bytes))
        patch.setattr(torch.cuda, "Event", PretendEvent)
        patch.setattr(torch.cuda, "current_stream", lambda device=None: None)
        patch.setattr(Tensor, "pin_memory", lambda self, device=None: self)
        patch.setattr(torch, "tensor", _tensor)
        patch.setattr(Tensor, "new_tensor", _new_tensor)
        COUNTS.clear()
        with _PretendMode():
            yield COUNTS
