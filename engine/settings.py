"""All settings of a run as one frozen tree, and each of them by its name.

They are declared in `engine.setting_groups`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Literal, cast, get_args, get_origin, get_type_hints

from engine.errors import SettingError
from engine.foreign_names import meant_name
from engine.setting_groups import (
    Densify,
    Device,
    FasterSteps,
    LearningRates,
    Loss,
    OpacityReset,
    Preview,
    Prune,
    Rasterizer,
    Run,
    SceneSettings,
    SphericalHarmonics,
)
from engine.setting_info import SettingInfo, Value


@dataclass(frozen=True)
class Settings:
    """All settings of a run."""

    learning_rates: LearningRates = field(default_factory=LearningRates)
    densify: Densify = field(default_factory=Densify)
    prune: Prune = field(default_factory=Prune)
    opacity_reset: OpacityReset = field(default_factory=OpacityReset)
    loss: Loss = field(default_factory=Loss)
    spherical_harmonics: SphericalHarmonics = field(default_factory=SphericalHarmonics)
    faster_steps: FasterSteps = field(default_factory=FasterSteps)
    run: Run = field(default_factory=Run)
    scene: SceneSettings = field(default_factory=SceneSettings)
    rasterizer: Rasterizer = field(default_factory=Rasterizer)
    preview: Preview = field(default_factory=Preview)
    device: Device = field(default_factory=Device)

    def __getitem__(self, name: str) -> Value:
        info = setting_info(name)
        return cast(Value, getattr(getattr(self, info.group), name))

    def changed(self, name: str, value: object) -> "Settings":
        """A copy with one value replaced; raises SettingError when it may not have it."""
        info = setting_info(name)
        checked = info.check(value)
        group = replace(getattr(self, info.group), **{name: checked})
        return replace(self, **{info.group: group})

    def updated(self, values: Mapping[str, object]) -> "Settings":
        """A copy with several values replaced."""
        result = self
        for name, value in values.items():
            result = result.changed(name, value)
        return result

    def differences(self, base: "Settings | None" = None) -> dict[str, Value]:
        """The values that differ from `base` (the defaults when None), by name."""
        reference = base or Settings()
        return {
            info.name: self[info.name]
            for info in all_settings()
            if self[info.name] != reference[info.name]
        }


def _infos(group: str, cls: type) -> Iterator[SettingInfo]:
    hints = get_type_hints(cls)
    for declared in fields(cls):
        hint = hints[declared.name]
        is_choice = get_origin(hint) is Literal
        yield SettingInfo(
            name=declared.name,
            group=group,
            group_label=(cls.__doc__ or "").strip(),
            kind=str if is_choice else hint,
            choices=get_args(hint) if is_choice else (),
            default=cast(Value, declared.default),
            **declared.metadata,
        )


@cache
def all_settings() -> tuple[SettingInfo, ...]:
    """Every setting in the order of its declaration."""
    classes = get_type_hints(Settings)
    return tuple(
        info for group in fields(Settings) for info in _infos(group.name, classes[group.name])
    )


@cache
def _by_name() -> dict[str, SettingInfo]:
    infos = all_settings()
    names = {info.name: info for info in infos}
    if len(names) != len(infos):
        raise AssertionError("two settings share a name; flat flags need unique ones")
    return names


def setting_info(name: str) -> SettingInfo:
    """The declaration of one setting; a SettingError names the nearest when there is none."""
    try:
        return _by_name()[name]
    except KeyError:
        near = meant_name(name, _by_name())
        hint = f" Did you mean {near}?" if near else ""
        raise SettingError(f"There is no setting named {name!r}.{hint}", value=name) from None
