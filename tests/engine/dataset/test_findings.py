"""What people are told of findings, and how they are counted."""

import pytest

from engine.dataset.findings import (
    _TOGETHER,
    FINDING_CODES,
    finding_line,
    grouped,
    skipped_files,
    worst_severity,
)
from engine.dataset.scene import Finding


def missing(count: int) -> list[Finding]:
    return [
        Finding("photo_missing", "warning", f"{n}.jpg", f"/s/{n}.jpg does not exist.")
        for n in range(count)
    ]


def test_one_finding_stays_as_it_is() -> None:
    assert grouped(missing(1)) == missing(1)


def test_many_alike_become_one_with_the_first_names() -> None:
    (one,) = grouped(missing(17))
    assert one.file == ""
    assert one.message.startswith("17 photos that poses name do not exist: 0.jpg, 1.jpg, 2.jpg and")
    assert "and 14 more" in one.message


def test_the_gravest_stand_last_where_a_terminal_ends() -> None:
    findings = [
        Finding("few_usable_views", "error", "", "a"),
        *missing(2),
        Finding("alpha", "ok", "", "b"),
    ]
    assert [item.severity for item in grouped(findings)] == ["ok", "warning", "error"]
    assert worst_severity(findings) == "error"
    assert worst_severity([]) == "ok"


@pytest.mark.parametrize("code", sorted(_TOGETHER))
def test_every_sentence_for_many_can_be_filled_in(code: str) -> None:
    assert code in FINDING_CODES
    alike = [Finding(code, "warning", name, f"{name} is bad.") for name in ("a", "b")]
    (one,) = grouped(alike)
    assert "2 photos" in one.message
    assert "a, b" in one.message


def test_findings_without_a_sentence_for_many_are_all_told() -> None:
    twice = [Finding("model_unreadable", "warning", name, name) for name in ("0", "1")]
    assert grouped(twice) == twice


def test_a_file_is_named_once_in_a_line() -> None:
    named = Finding("photo_missing", "warning", "a.jpg", "/s/a.jpg does not exist.")
    assert finding_line(named) == "warning: /s/a.jpg does not exist."
    other = Finding("two_formats", "ok", "b", "Two formats.")
    assert finding_line(other) == "ok:      b: Two formats."


def test_a_photo_with_two_troubles_is_skipped_once() -> None:
    again = Finding("photo_unreadable", "warning", "0.jpg", "")
    assert skipped_files([*missing(2), again]) == {"0.jpg", "1.jpg"}
