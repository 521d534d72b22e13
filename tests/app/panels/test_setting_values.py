import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.panels.setting_values import (
    ChangeHistory,
    describe_range,
    format_value,
    matches,
    parse_value,
    slider_scale,
)
from engine.errors import SettingError
from engine.setting_info import SettingInfo
from engine.settings import Settings, all_settings, setting_info

WITH_SLIDER = [info for info in all_settings() if slider_scale(info) is not None]
NUMERIC = [info for info in all_settings() if info.kind in (int, float)]


def ids(info: SettingInfo) -> str:
    return info.name


@pytest.mark.parametrize("info", WITH_SLIDER, ids=ids)
def test_every_slider_position_is_an_allowed_value_and_positions_never_fall(
    info: SettingInfo,
) -> None:
    scale = slider_scale(info)
    assert scale is not None
    values = [scale.value(position) for position in range(scale.last + 1)]
    assert values == sorted(values)
    assert [info.check(value) for value in values] == values
    assert values[-1] == info.maximum
    assert values[0] == info.minimum


@pytest.mark.parametrize("info", WITH_SLIDER, ids=ids)
def test_the_default_is_on_the_slider_and_not_at_its_very_end_by_mistake(
    info: SettingInfo,
) -> None:
    scale = slider_scale(info)
    assert scale is not None
    position = scale.position(info.default)
    # One position of 1000 on a five-decade scale is a factor of 1.0116, and two digits are kept.
    assert float(scale.value(position)) == pytest.approx(float(info.default), rel=0.06)
    assert (position == 0) == (info.default == info.minimum)


@pytest.mark.parametrize("info", WITH_SLIDER, ids=ids)
@settings(max_examples=30)  # 30 draws for each of 30 settings
@given(share=st.floats(0, 1))
def test_a_value_from_the_slider_goes_back_to_about_its_position(
    info: SettingInfo, share: float
) -> None:
    scale = slider_scale(info)
    assert scale is not None
    position = round(share * scale.last)
    back = scale.position(scale.value(position))
    # Rounding to two digits moves a value by at most 5 %, and whole numbers by at most half.
    assert abs(back - position) <= 0.1 * scale.last


def test_a_logarithmic_slider_keeps_a_place_for_zero() -> None:
    info = setting_info("opacity_reset_interval")
    scale = slider_scale(info)
    assert scale is not None
    assert scale.value(0) == 0
    assert scale.value(1) == 1
    assert scale.position(0) == 0
    assert scale.position(1) == 1


def test_seeds_and_words_have_no_slider() -> None:
    assert slider_scale(setting_info("seed")) is None
    assert slider_scale(setting_info("background")) is None
    assert slider_scale(setting_info("antialiased")) is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("position_lr_start", 8e-5, "8.0e-5"),
        ("position_lr_start", 1.25e-4, "1.25e-4"),
        ("prune_opacity", 0.008, "0.008"),
        ("prune_opacity", 0.0, "0"),
        ("max_splats", 1_000_000, "1,000,000 splats"),
        ("opacity_reset_interval", 3_000, "3,000 steps"),
        ("resolution", 0, "full size"),
        ("threads", 0, "all cores"),
        ("opacity_reset_interval", 0, "never"),
        ("antialiased", True, "on"),
        ("background", "random", "random"),
    ],
)
def test_values_are_written_as_people_read_them(name: str, value: object, text: str) -> None:
    assert format_value(setting_info(name), value, with_unit=True) == text  # type: ignore[arg-type]


@pytest.mark.parametrize("info", NUMERIC, ids=ids)
def test_what_is_written_can_be_typed_again(info: SettingInfo) -> None:
    for value in (info.default, info.minimum, info.maximum):
        assert value is not None
        text = format_value(info, info.check(value), with_unit=True)
        assert parse_value(info, text) == info.check(value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("opacity_lr", "1e-4", 1e-4),
        ("opacity_lr", " .05 ", 0.05),
        ("densify_stop", "3,000", 3_000),
        ("densify_stop", "3,000 steps", 3_000),
        ("densify_stop", "3e3", 3_000),
    ],
)
def test_typed_values_are_understood(name: str, text: str, value: float) -> None:
    assert parse_value(setting_info(name), text) == value


@pytest.mark.parametrize("text", ["fast", "", "-1", "2", "nan", "inf"])
def test_a_typed_value_that_cannot_be_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(SettingError, match=r"opacity_lr is .*; expected"):
        parse_value(setting_info("opacity_lr"), text)


def test_a_range_is_told_in_words() -> None:
    assert describe_range(setting_info("resolution")) == "0 to 16,384"
    assert describe_range(setting_info("gradient_threshold")) == "1.0e-6 to 0.1"
    assert describe_range(setting_info("background")) == "black, white, random"


def test_search_finds_every_word_in_name_label_group_or_meaning() -> None:
    info = setting_info("opacity_lr")
    assert matches(info, "")
    assert matches(info, "opacity learning")
    assert matches(info, "OPACITY_LR")
    assert matches(info, "logits")
    assert not matches(info, "opacity background")


def test_one_gesture_is_one_undo_and_redo_sets_it_again() -> None:
    history = ChangeHistory()
    start = Settings()
    values = [0.03, 0.04, 0.05]
    present = start
    for value in values:
        changed = present.changed("opacity_lr", value)
        history.record(7, present, changed)
        present = changed
    assert history.undo() == {"opacity_lr": 0.025}
    assert history.undo() == {}
    assert history.redo() == {"opacity_lr": 0.05}
    assert history.redo() == {}


def test_a_drag_that_ends_where_it_began_leaves_nothing_to_undo() -> None:
    history = ChangeHistory()
    start = Settings()
    there = start.changed("opacity_lr", 0.05)
    history.record(7, start, there)
    history.record(7, there, start)
    assert not history.can_undo


def test_a_new_change_makes_redo_impossible() -> None:
    history = ChangeHistory()
    start = Settings()
    one = start.changed("opacity_lr", 0.05)
    history.record(1, start, one)
    history.undo()
    assert history.can_redo
    history.record(2, start, start.changed("scale_lr", 0.01))
    assert not history.can_redo
    assert history.undo() == {"scale_lr": 0.005}


def test_the_history_is_bounded() -> None:
    history = ChangeHistory()
    present = Settings()
    for number in range(ChangeHistory.LIMIT + 50):
        changed = present.changed("seed", number + 1)
        history.record(number + 1, present, changed)
        present = changed
    undone = 0
    while history.undo():
        undone += 1
    assert undone == ChangeHistory.LIMIT
