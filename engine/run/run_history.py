"""What `metrics.jsonl` and `journal.jsonl` tell about the steps of a run that goes on."""

import dataclasses
import json
import math
import operator
import sys
from pathlib import Path
from typing import Any

import numpy as np

from engine.documents import UNREADABLE
from engine.errors import SettingError
from engine.messages import (
    Event,
    HistoryRead,
    OpacitiesReset,
    PhotosGrew,
    SettingApplied,
    ShDegreeRaised,
)
from engine.run.run_folder import RunFolder
from engine.settings import setting_info

_CURVES = ("seconds", "loss", "l1", "ssim", "train_psnr", "splats")


@dataclasses.dataclass(frozen=True)
class ReadHistory:
    """The history, and how many lines of the journal could not be read."""

    event: HistoryRead
    damaged_changes: int


def read_history(folder: RunFolder, run_id: int, step: int) -> ReadHistory:
    """The curves and happenings up to `step`. Raises OSError.

    A figure that is missing in a row, as the PSNR of training photos is in old runs, is NaN.
    """
    rows = [row for row in _objects(folder.metrics_path) if row is not None]
    rows = [row for row in rows if _is_step(row, step)]
    curves = {name: _column(rows, name) for name in _CURVES}
    measured = [row for row in rows if math.isfinite(_number(row.get("psnr")))]
    changes, damaged = _changes(folder.journal_path, run_id, step)
    happenings = [*changes, *_happenings(rows, run_id)]
    happenings.sort(key=operator.attrgetter("step"))
    history = HistoryRead(
        run_id=run_id,
        steps=_frozen(np.array([row["step"] for row in rows], dtype=np.int64)),
        seconds=curves["seconds"],
        loss=curves["loss"],
        l1=curves["l1"],
        ssim=curves["ssim"],
        psnr=curves["train_psnr"],
        splats=curves["splats"],
        evaluated_steps=_frozen(np.array([row["step"] for row in measured], dtype=np.int64)),
        evaluated_psnr=_column(measured, "psnr"),
        happenings=tuple(happenings),
        saved_steps=tuple(folder.found_checkpoints()),
    )
    return ReadHistory(history, damaged)


def _changes(path: Path, run_id: int, step: int) -> tuple[list[SettingApplied], int]:
    """The changed settings of a journal, each change of a gesture; how many lines are damaged."""
    changes: list[SettingApplied] = []
    damaged = 0
    for entry in _objects(path):
        if entry is None:
            damaged += 1
            continue
        try:
            if entry["what"] == "SetSetting":
                changes += _changes_of(entry, run_id)
        except (KeyError, TypeError, ValueError, SettingError):
            damaged += 1
    return [change for change in changes if change.step <= step], damaged


def _changes_of(entry: dict[str, Any], run_id: int) -> list[SettingApplied]:
    info, held = setting_info(entry["name"]), bool(entry["held"])
    changes, old = [], info.check(entry["old"])
    for at, value in entry["changes"]:
        new = info.check(value)
        changes.append(SettingApplied(run_id, int(at), info.name, old, new, held))
        old = new
    return changes


def _happenings(rows: list[dict[str, Any]], run_id: int) -> list[Event]:
    found: list[Event] = []
    degree = 0
    for row in rows:
        step = row["step"]
        if (now := row.get("sh_degree", degree)) != degree:
            degree = now
            found.append(ShDegreeRaised(run_id, step, degree))
        if (value := row.get("opacity_reset")) is not None:
            found.append(OpacitiesReset(run_id, step, _number(value)))
        if (divisor := row.get("photo_divisor")) is not None:
            found.append(PhotosGrew(run_id, "", step, int(divisor)))
    return found


def _objects(path: Path) -> list[dict[str, Any] | None]:
    """The lines of a file as JSON objects; None for one that is none."""
    if not path.exists():
        return []
    return [_object(line) for line in path.read_bytes().splitlines()]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) else None


def _is_step(row: dict[str, Any], last: int) -> bool:
    return isinstance(row.get("step"), int) and 0 < row["step"] <= last


def _number(value: object) -> float:
    if not isinstance(value, int | float) or abs(value) > sys.float_info.max:
        return math.nan
    return float(value)


def _column(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    return _frozen(np.array([_number(row.get(name)) for row in rows], dtype=np.float64))


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
