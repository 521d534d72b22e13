"""What may not change when an old run goes on."""

from collections.abc import Mapping

from engine.errors import SettingError
from engine.setting_info import Applies, Value
from engine.settings import Settings, setting_info

# Photos may become smaller where memory is short, and another machine has other kernels and GPUs.
_FREE = ("backend", "gpu", "resolution")


def require_same_origin(settings: Settings, changes: Mapping[str, Value]) -> None:
    """SettingError when a change would make `run.toml` say of the steps done what is not true."""
    for name, value in changes.items():
        info = setting_info(name)
        is_free = info.applies is not Applies.RESTART or name in _FREE
        if is_free or info.check(value) == settings[name]:
            continue
        raise SettingError(
            f"{name} is {settings[name]} in this run and stays so, for its steps were made with "
            f"that; {value} was asked for. Leave {info.flag} out, or make a new run in another "
            "folder.",
            value=value,
        )


def resuming_changes(
    settings: Settings, changes: Mapping[str, Value], done: int
) -> dict[str, Value]:
    """The changes with which a run goes on that has done so many steps.

    It cannot have fewer iterations than it did. Raises as `require_same_origin`.
    """
    require_same_origin(settings, changes)
    iterations = settings.updated(changes).run.iterations
    if "iterations" in changes and iterations < done:
        return {**changes, "iterations": done}
    return dict(changes)
