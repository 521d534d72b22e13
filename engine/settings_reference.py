"""The reference page of the settings, written from their declaration.

`python -m engine.settings_reference` prints the Markdown of `docs/settings.md`; a test compares
the two, so that the page cannot grow old.
"""

import sys
from collections.abc import Iterator
from itertools import groupby

from engine.setting_info import Applies, SettingInfo, Value
from engine.settings import all_settings

HEAD = """\
# Settings

Every setting of a run: in the window's settings panel, as a flag on the command line, and as a
line `name = value` in a preset file. The page is made by `python -m engine.settings_reference`.

A run begins with a preset: `classic`, the published recipe and the defaults of this page, where a
GPU does the work, `cpu-fast` where none does; `--preset classic` is the recipe anywhere. A run that
is taken up again keeps its own settings.

*Applies* says when a change during a run takes hold: **now** at the next step, **next refine** at
the next densify step, **restart** only in a new run (the change is held until then).
"""
WORDS = {Applies.NOW: "now", Applies.NEXT_REFINE: "next refine", Applies.RESTART: "restart"}


def settings_reference() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for label, infos in groupby(all_settings(), key=_group_label):
        yield f"## {label}\n"
        yield "| flag | default | allowed | applies | meaning |"
        yield "|---|---|---|---|---|"
        for info in infos:
            yield _row(info)
        yield ""


def _group_label(info: SettingInfo) -> str:
    return info.group_label


def _row(info: SettingInfo) -> str:
    meaning = info.meaning
    if info.changes_loss:
        meaning += " The loss before and after a change is not comparable."
    cells = (
        f"`{info.flag}`",
        _default(info),
        _allowed(info),
        WORDS[info.applies],
        meaning,
    )
    return f"| {' | '.join(cells)} |"


def _default(info: SettingInfo) -> str:
    unit = f" {info.unit}" if info.unit else ""
    is_named = info.zero and info.default == 0
    return f"0 ({info.zero})" if is_named else f"{_number(info.default)}{unit}"


def _allowed(info: SettingInfo) -> str:
    if info.kind is bool:
        return "on, off"
    if info.minimum is None or info.maximum is None:
        return ", ".join(info.choices)
    kind = info.kind
    return f"{_number(kind(info.minimum))} to {_number(kind(info.maximum))}"


def _number(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else f"{value}"


if __name__ == "__main__":
    sys.stdout.write(settings_reference())
