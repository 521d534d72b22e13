"""What reaches the engine thread: commands in order, reports of the loader, the newest view."""

import threading
from collections.abc import Sequence

from cuda_rasterizer import Attention
from engine import messages as m
from engine.errors import SettingError
from engine.messages import Command, View
from engine.settings import setting_info

URGENT = (m.Stop, m.Shutdown, m.OpenScene, m.ResumeRun, m.Restart)
"""Commands that do not wait for the end of a step; the unfinished step is dropped."""


class Report:
    """Something the loader tells the engine thread; see `engine.scene_loader`."""


class Inbox:
    """Safe to use from any thread; the lock guards a few references and is held for no work.

    What does not wait for the end of a step calls for `attention`, which a long kernel heeds.
    """

    def __init__(self) -> None:
        self.attention = Attention()
        self._condition = threading.Condition()
        self._items: list[Command | Report] = []
        self._view: View | None = None
        self._view_is_new = False
        self._window_work = 0.0
        self._urgent = False
        self._abandon = False

    def post(self, item: Command | Report) -> None:
        """Queue a command or report."""
        with self._condition:
            self._items.append(item)
            self._urgent = self._urgent or isinstance(item, URGENT)
            self._abandon = self._abandon or (isinstance(item, m.Shutdown) and not item.save)
            self._condition.notify()
        if isinstance(item, URGENT):
            self.attention.call()

    def request_view(self, view: View | None) -> None:
        """Put a view request in the place of an older one."""
        with self._condition:
            self._view, self._view_is_new = view, True
            self._condition.notify()
        self.attention.call()

    def take(self) -> list[Command | Report]:
        """Everything queued, in order, changes of one setting coalesced."""
        with self._condition:
            items, self._items = self._items, []
            self._urgent = False
        return coalesced(items)

    def take_view(self) -> tuple[bool, View | None]:
        """Whether a request came since the last call, and the newest one."""
        with self._condition:
            is_new, self._view_is_new = self._view_is_new, False
            return is_new, self._view

    def has_new_view(self) -> bool:
        """Whether a request came since the last `take_view`."""
        return self._view_is_new

    def count_window_work(self, seconds: float) -> None:
        """Add the seconds that a window's thread worked."""
        with self._condition:
            self._window_work += seconds

    def take_window_work(self) -> float:
        """The seconds that were counted since the last call."""
        with self._condition:
            taken, self._window_work = self._window_work, 0.0
            return taken

    def has_urgent(self) -> bool:
        """Whether a command waits that does not wait for the end of a step."""
        return self._urgent

    def must_abandon_saving(self) -> bool:
        """Whether somebody asked to close without saving."""
        return self._abandon

    def wait(self, timeout: float | None) -> None:
        """Sleep until something comes, at most `timeout` seconds (None: without limit)."""
        with self._condition:
            if not self._items and not self._view_is_new:
                self._condition.wait(timeout)


def coalesced(items: Sequence[Command | Report]) -> list[Command | Report]:
    """The items without changes of a setting that a later one overrides before anything happens.

    Only changes that follow each other without any other command between them are merged.
    """
    kept: list[Command | Report] = []
    later: set[str] = set()
    for item in reversed(items):
        if isinstance(item, m.SetSetting):
            if item.name in later:
                continue
            if _is_valid(item):  # one that will be refused overrides nothing
                later.add(item.name)
        elif isinstance(item, Command):
            later.clear()
        kept.append(item)
    return kept[::-1]


def _is_valid(command: m.SetSetting) -> bool:
    try:
        setting_info(command.name).check(command.value)
    except SettingError:
        return False
    return True
