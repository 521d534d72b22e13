"""How long the view takes to follow the hand: from a view's request to its picture. No Qt here."""

import statistics
from collections import deque

REMEMBERED = 8  # the median of so many answers is told
WORTH_TELLING_S = 0.12  # a hand does not notice less


class AnswerTime:
    """Times views of a moving camera; a picture answers all views up to its own."""

    def __init__(self) -> None:
        self._asked: dict[int, float] = {}  # view_id -> seconds, oldest first
        self._answers: deque[float] = deque(maxlen=REMEMBERED)

    def ask(self, view_id: int, now: float) -> None:
        """A view of the moving camera is asked for at `now` seconds."""
        self._asked[view_id] = now

    def answer(self, view_id: int, now: float) -> None:
        """A picture of view `view_id` is there: the oldest view it answers has waited longest."""
        answered = [number for number in self._asked if number <= view_id]
        if answered:
            self._answers.append(now - self._asked[answered[0]])
        for number in answered:
            del self._asked[number]

    def rest(self) -> None:
        """The camera is at rest, and what comes now refines the picture: time it no more."""
        self._asked.clear()
        self._answers.clear()

    @property
    def worth_telling(self) -> float | None:
        """The median seconds of the last answers where a hand would notice them; else None."""
        if not self._answers:
            return None
        seconds = statistics.median(self._answers)
        return seconds if seconds > WORTH_TELLING_S else None
