"""`journal.jsonl`: every command carried out and every applied change, with its step.

Together with settings and seed it repeats a run. The changes of one gesture (one drag of a slider)
make one entry, which keeps the step and value of each change inside.
"""

import io
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.run.metrics_log import finite
from engine.setting_info import Value

GESTURE_SECONDS = 5.0  # a gesture without a change for so long is over


class Journal:
    """Appends entries to `path`; every method may raise OSError (a full disk)."""

    def __init__(self, path: Path) -> None:
        """Continue the journal, without a last line that a crash cut short."""
        if path.exists():
            text = path.read_bytes()
            os.truncate(path, text.rfind(b"\n") + 1)
        self._raw = path.open("a+b", buffering=0)
        self._file = io.TextIOWrapper(io.BufferedWriter(self._raw), encoding="utf-8")
        self._gesture: dict[str, Any] | None = None
        self._changed = 0.0

    def record(self, step: int, what: str, details: Mapping[str, object]) -> None:
        """Write one entry at once; `details` are what the command was given."""
        self.end_gesture()
        self._write({"step": step, "what": what, "details": dict(details)})

    def record_setting(
        self, step: int, name: str, old: Value, new: Value, *, gesture: int, held: bool
    ) -> None:
        """Note a changed setting; changes of one gesture (not 0) are gathered into one entry."""
        self._changed = time.monotonic()
        open_gesture = self._gesture
        if (
            open_gesture is not None
            and gesture != 0
            and open_gesture["gesture"] == gesture
            and open_gesture["name"] == name
        ):
            open_gesture.update(step=step, new=new)
            open_gesture["changes"].append([step, new])
            return
        self.end_gesture()
        self._gesture = {
            "step": step,
            "what": "SetSetting",
            "name": name,
            "old": old,
            "new": new,
            "held": held,
            "gesture": gesture,
            "changes": [[step, new]],
        }
        if gesture == 0:
            self.end_gesture()

    @property
    def has_gesture(self) -> bool:
        """Whether changes are gathered that are not written yet."""
        return self._gesture is not None

    def end_stale_gesture(self) -> None:
        """Write the gesture gathered so far when nothing was added to it lately."""
        if self.has_gesture and time.monotonic() - self._changed >= GESTURE_SECONDS:
            self.end_gesture()

    def end_gesture(self) -> None:
        """Write the gesture gathered so far."""
        if self._gesture is not None:
            entry, self._gesture = self._gesture, None
            self._write(entry)

    def copied_to(self, path: Path) -> "Journal":
        """A journal in a new file that goes on from the entries that this one's file has.

        That may be gone from its folder.
        """
        self._raw.seek(0)
        path.write_bytes(self._raw.readall() or b"")
        copy = Journal(path)
        copy._gesture, copy._changed = self._gesture, self._changed
        return copy

    def close(self) -> None:
        """Write what is pending and close the file."""
        try:
            self.end_gesture()
        finally:
            self._file.close()

    def _write(self, entry: Mapping[str, object]) -> None:
        self._file.write(json.dumps(finite(entry), allow_nan=False) + "\n")
        self._file.flush()
