"""What the log says about events, and the bounded list of its lines. No Qt here."""

import dataclasses
import logging
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from engine.messages import (
    CommandRefused,
    Evaluated,
    Event,
    Exported,
    Failed,
    Finished,
    Noticed,
    OpacitiesReset,
    PhotosGrew,
    Refined,
    RunStarted,
    Saved,
    SceneOpened,
    SettingApplied,
    ShDegreeRaised,
    StateChanged,
)

LINE_LIMIT = 2_000
WORST_KEPT = 20
LEVEL_WORDS = {
    logging.DEBUG: "detail",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
}


@dataclasses.dataclass(frozen=True)
class LogLine:
    """One entry; `level` is a level of the logging module, `when` seconds since the epoch."""

    level: int
    text: str
    when: float = dataclasses.field(default_factory=time.time)

    def __str__(self) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(self.when))
        return f"{clock}  {level_word(self.level):<7}  {self.text}"


def level_word(level: int) -> str:
    """The word for a logging level."""
    known = [word for value, word in LEVEL_WORDS.items() if value <= level]
    return known[-1] if known else LEVEL_WORDS[logging.DEBUG]


class LogLines:
    """The latest lines, and the latest errors even when they have scrolled away."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._lines: deque[LogLine] = deque(maxlen=limit)
        self._errors: deque[LogLine] = deque(maxlen=WORST_KEPT)

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: LogLine) -> None:
        """Append a line; the oldest goes when there are too many."""
        self._lines.append(line)
        if line.level >= logging.ERROR:
            self._errors.append(line)

    def at_least(self, level: int) -> Iterator[LogLine]:
        """The lines of this level and above, the oldest first."""
        return (line for line in self._lines if line.level >= level)

    @property
    def errors(self) -> tuple[LogLine, ...]:
        """The latest errors."""
        return tuple(self._errors)

    def tail(self, count: int) -> list[LogLine]:
        """The latest lines, the oldest first."""
        return list(self._lines)[-count:]


def line_for(event: Event) -> LogLine | None:
    """What the log says about an event; None for those that come too often."""
    match event:
        case StateChanged():
            return LogLine(logging.DEBUG, f"{event.new.value} at step {event.step:,}")
        case SceneOpened():
            photos, points = len(event.photos), len(event.points)
            words = f"scene {event.name}: {photos:,} photos, {points:,} sparse points"
            return LogLine(logging.INFO, words)
        case RunStarted():
            return LogLine(logging.INFO, f"run {event.folder.name} on {event.device}")
        case SettingApplied():
            until = " waits for a restart" if event.held else ""
            words = f"step {event.step:,}: {event.name} {event.old} → {event.new}{until}"
            return LogLine(logging.INFO, words)
        case CommandRefused():
            return LogLine(logging.WARNING, event.reason)
        case PhotosGrew():
            return LogLine(logging.INFO, event.message)
        case Noticed():
            return LogLine(logging.WARNING, event.message)
        case Failed():
            return LogLine(logging.ERROR, event.message)
        case _:
            return _line_for_deed(event)


def _line_for_deed(event: Event) -> LogLine | None:
    match event:
        case Refined():
            words = (
                f"step {event.step:,}: {event.cloned:,} cloned, {event.split:,} split, "
                f"{event.pruned:,} pruned, {event.splats:,} splats"
            )
            return LogLine(logging.INFO if event.by_hand else logging.DEBUG, words)
        case OpacitiesReset():
            words = f"step {event.step:,}: opacities reset to {event.value:g}"
        case ShDegreeRaised():
            words = f"step {event.step:,}: SH degree {event.degree}"
        case Evaluated():
            words = (
                f"step {event.step:,}: PSNR {event.psnr:.2f} dB, SSIM {event.ssim:.4f} "
                f"on {len(event.photos)} held-out photos"
            )
        case Saved():
            words = f"step {event.step:,}: checkpoint {event.path.name}, {event.seconds:.1f} s"
        case Exported():
            words = f"step {event.step:,}: {event.splats:,} splats to {event.path}"
        case Finished():
            words = f"finished at step {event.step:,}"
        case _:
            return None
    return LogLine(logging.INFO, words)


def without_home(text: str, home: Path | None = None) -> str:
    """The text with the home directory written as `~`, so that a report names nobody."""
    folder = str(home or Path.home())
    return text.replace(folder, "~") if len(folder) > 1 else text
