"""Numbers on their way between main memory and a GPU, without waiting for the work queued there.

A plain copy waits until everything before it is done. Through page-locked memory it only queues
behind it. On the CPU nothing is copied at all.
"""

import time

import numpy as np
import torch
from torch import Tensor


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """`values`, which are in main memory, on `device`."""
    if device.type == "cpu":
        return values
    return values.pin_memory().to(device, non_blocking=True)


class NumbersCopy:
    """A few numbers on their way to main memory; on the CPU they are there at once."""

    def __init__(self, *numbers: Tensor) -> None:
        """Queue the copy behind what makes them, in the type of the first."""
        device, dtype = numbers[0].device, numbers[0].dtype
        self._values: list[float] = []
        self._arrival: torch.cuda.Event | None = None
        if device.type == "cpu":
            self._values = [value for tensor in numbers for value in tensor.tolist()]
            return
        together = torch.cat([tensor.to(dtype) for tensor in numbers])
        self._arriving = torch.empty(together.shape, dtype=dtype, pin_memory=True)
        self._arriving.copy_(together, non_blocking=True)
        self._arrival = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._arrival.record(torch.cuda.current_stream(device))

    def read(self) -> list[float]:
        """The numbers; waits for them where they are not there yet."""
        if self._arrival is not None:
            self._arrival.synchronize()
            self._values = self._arriving.tolist()
        return self._values


class PictureCopy:
    """A picture on its way to main memory, and how long it took to make.

    Begun before the picture is drawn: `PictureCopy(device)`, drawing, `send`. On the CPU it is
    there as soon as it is sent.
    """

    def __init__(self, device: torch.device) -> None:
        self._start = time.perf_counter()
        self._end = self._start
        self._pixels: Tensor | None = None
        self._marks: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        if device.type != "cpu":
            self._marks = (_event(), _event())
            self._marks[0].record(torch.cuda.current_stream(device))

    def send(self, pixels: Tensor) -> None:
        """Queue the copy behind the drawing of `pixels`."""
        if self._marks is None:
            self._pixels = pixels
            self._end = time.perf_counter()
            return
        stream = torch.cuda.current_stream(pixels.device)
        self._pixels = torch.empty(pixels.shape, dtype=pixels.dtype, pin_memory=True)
        self._pixels.copy_(pixels, non_blocking=True)
        self._marks[1].record(stream)
        self._end = time.perf_counter()

    def is_there(self) -> bool:
        """Whether `pixels` can be had without waiting."""
        return self._marks is None or bool(self._marks[1].query())  # type: ignore[no-untyped-call]

    def pixels(self) -> np.ndarray:
        """The picture, which nobody writes again; waits for it where it is not there yet."""
        if self._pixels is None:
            raise RuntimeError("a picture was asked for before it was sent")
        if self._marks is not None:
            self._marks[1].synchronize()
        array: np.ndarray = self._pixels.numpy()
        array.flags.writeable = False
        return array

    def seconds(self) -> float:
        """How long drawing and copying took the device; only when it is there."""
        if self._marks is None:
            return self._end - self._start
        return float(self._marks[0].elapsed_time(self._marks[1])) / 1e3

    def seconds_behind(self) -> float:
        """How much of that was still to be done when the host went on; only when it is there."""
        if self._marks is None:
            return 0.0
        return max(0.0, self.seconds() - (self._end - self._start))


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
