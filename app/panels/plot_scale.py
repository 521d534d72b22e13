"""Which step and which value lies where in a plot. No Qt here."""

import dataclasses
from typing import TypeVar

import numpy as np

Range = tuple[float, float]
Number = TypeVar("Number", float, np.ndarray)


@dataclasses.dataclass(frozen=True)
class PlotScale:
    """The ranges in view, and the place of their rectangle in logical pixels of its widget.

    `heights` are values, or their base-ten logarithms. Neither range is empty.
    """

    steps: Range = (0.0, 1.0)
    heights: Range = (0.0, 1.0)
    left: float = 0.0
    top: float = 0.0
    width: float = 1.0
    height: float = 1.0

    def x(self, step: Number) -> Number:
        """Where a step lies, in px."""
        low, high = self.steps
        return self.left + (step - low) * (self.width / (high - low))

    def y(self, value: Number) -> Number:
        """Where a value lies, in px; great ones lie above."""
        low, high = self.heights
        return self.top + (high - value) * (self.height / (high - low))

    def step_at(self, x: float) -> float:
        """The step at so many px."""
        low, high = self.steps
        return low + (x - self.left) * (high - low) / self.width

    def holds(self, x: float, y: float) -> bool:
        """Whether a place lies within the rectangle."""
        return 0 <= x - self.left <= self.width and 0 <= y - self.top <= self.height
