import pytest

from app.panels.setting_badges import (
    RowProgress,
    Tone,
    badge,
    cap_note,
    next_multiple,
    next_occurrence,
    next_refine,
    next_sh_raise,
    rate_note,
)
from engine.settings import Settings, setting_info

CLASSIC = Settings()


@pytest.mark.parametrize(
    ("step", "coming"),
    [
        (0, 600),
        (500, 600),
        (599, 600),
        (600, 700),
        (14_900, None),
        (14_899, 14_900),
        (20_000, None),
    ],
)
def test_the_next_refine_is_a_multiple_strictly_inside_the_window(
    step: int, coming: int | None
) -> None:
    # Effective at 600, 700 ... 14,900 with the classic window of 500 to 15,000 every 100.
    assert next_refine(step, CLASSIC) == coming


def test_no_refine_comes_after_the_last_iteration() -> None:
    settings = CLASSIC.changed("iterations", 1_000)
    assert next_refine(900, settings) == 1_000
    assert next_refine(1_000, settings) is None


def test_intervals_come_round_at_multiples_of_the_step() -> None:
    assert next_multiple(4_210, 3_000) == 6_000
    assert next_multiple(6_000, 3_000) == 9_000
    assert next_multiple(5, 0) is None
    assert next_occurrence("opacity_reset_interval", 4_210, CLASSIC) == 6_000
    assert next_occurrence("opacity_reset_interval", 12_000, CLASSIC) is None
    assert next_occurrence("evaluation_interval", 4_210, CLASSIC) == 5_000
    assert next_occurrence("checkpoint_interval", 5_000, CLASSIC) == 10_000
    assert next_occurrence("opacity_lr", 10, CLASSIC) is None
    faster = CLASSIC.updated({"coarse_halvings": 2, "morton_interval": 1_000})
    assert next_occurrence("coarse_steps", 250, faster) == 251  # from 251 on photos are larger
    assert next_occurrence("coarse_steps", 251, faster) == 501
    assert next_occurrence("coarse_halvings", 501, faster) is None
    assert next_occurrence("morton_interval", 999, faster) == 1_000
    assert next_occurrence("morton_interval", 1_000, faster) == 2_000
    assert next_occurrence("morton_interval", 10, CLASSIC) is None


def test_the_sh_degree_rises_until_its_maximum() -> None:
    assert next_sh_raise(1_500, 1, CLASSIC) == 2_000
    assert next_sh_raise(3_500, 3, CLASSIC) is None
    assert next_sh_raise(1_500, 1, CLASSIC.changed("sh_degree_max", 1)) is None


def test_a_quiet_row_has_no_badge() -> None:
    assert badge(setting_info("opacity_lr"), RowProgress(), 10, 0, CLASSIC) is None


def test_a_posted_change_is_pending_and_then_applied_at_its_step() -> None:
    info = setting_info("opacity_lr")
    pending = badge(info, RowProgress(pending=True), 10, 0, CLASSIC)
    applied = badge(info, RowProgress(applied_step=2_300), 2_310, 0, CLASSIC)
    assert pending is not None
    assert applied is not None
    assert (pending.text, pending.tone) == ("pending…", Tone.CHANGED)
    assert (applied.text, applied.tone) == ("applied at step 2,300", Tone.CHANGED)


def test_a_change_for_the_next_refine_names_it_until_it_took_hold() -> None:
    info = setting_info("gradient_threshold")
    before = badge(info, RowProgress(applied_step=4_210), 4_210, 0, CLASSIC)
    after = badge(info, RowProgress(applied_step=4_210, refined_step=4_300), 4_321, 0, CLASSIC)
    late = badge(info, RowProgress(applied_step=16_000), 16_000, 0, CLASSIC)
    assert before is not None
    assert before.text == "next refine · step 4,300"
    assert after is not None
    assert after.text == "applied at step 4,300"
    assert late is not None
    assert late.text == "no refine to come"


def test_an_untouched_refine_setting_says_when_a_change_would_apply() -> None:
    info = setting_info("max_splats")
    early = badge(info, RowProgress(), 100, 0, CLASSIC)
    assert early is not None
    assert (early.text, early.tone) == ("next refine", Tone.COMING)
    assert badge(info, RowProgress(), 16_000, 0, CLASSIC) is None


def test_an_interval_names_its_next_occurrence() -> None:
    info = setting_info("opacity_reset_interval")
    shown = badge(info, RowProgress(), 4_210, 0, CLASSIC)
    assert shown is not None
    assert (shown.text, shown.tone) == ("next at step 6,000", Tone.COMING)
    changed = badge(
        info, RowProgress(applied_step=4_200), 4_210, 0, CLASSIC.changed(info.name, 1_000)
    )
    assert changed is not None
    assert (changed.text, changed.tone) == ("next at step 5,000", Tone.CHANGED)


def test_a_restart_setting_says_so_and_turns_amber_while_it_is_held() -> None:
    info = setting_info("resolution")
    quiet = badge(info, RowProgress(), 10, 0, CLASSIC)
    held = badge(info, RowProgress(applied_step=10, held=True), 10, 0, CLASSIC)
    assert quiet is not None
    assert held is not None
    assert (quiet.text, quiet.tone) == ("restart", Tone.COMING)
    assert (held.text, held.tone) == ("restart", Tone.CHANGED)


def test_a_cap_below_the_count_is_told() -> None:
    assert cap_note(1_000, 1_000, False) == ""
    assert cap_note(1_000, 961, True).startswith("Reached: growth has stopped.")
    assert cap_note(1_000, 171_204, True) == "Below the count of 171,204: growth has stopped."


def test_the_position_rate_in_force_is_given_in_the_unit_of_its_row() -> None:
    # 1.6e-4 times an extent of 4 is in force; the row has rates without the extent.
    assert rate_note(6.4e-4, 4.0) == "in force now: 1.6e-4"
    assert rate_note(6.4e-4, 0.0) == "in force now: 6.4e-4, extent included"
    assert rate_note(0.0, 4.0) == ""
