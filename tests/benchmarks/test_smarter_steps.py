import pytest

from benchmarks.smarter_steps import VARIANTS, settings_of
from engine.presets import load_preset
from engine.settings import Settings, setting_info


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_differs_from_the_recipe_in_its_steps_alone(variant: str) -> None:
    changed = settings_of(variant, Settings()).differences()
    assert {setting_info(name).group for name in changed} <= {"faster_steps"}
    assert bool(changed) == (variant != "classic")


def test_a_preset_and_pairs_of_ones_own_are_variants_too() -> None:
    base = Settings().changed("threads", 1)
    assert settings_of("cpu-fast", base) == load_preset("cpu-fast").changed("threads", 1)
    wanted = base.updated({"sh_rest_interval": 8, "visible_only": True})
    assert settings_of("sh_rest_interval=8+visible_only=true", base) == wanted
