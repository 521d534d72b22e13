"""The sentences of the display check, without asking a display."""

import subprocess

import pytest

from app import display_check
from app.display_check import display_problem


def answer(monkeypatch, errors: str) -> str | None:
    def probe(command, **options):
        return subprocess.CompletedProcess(command, -6, stdout="", stderr=errors)

    monkeypatch.setattr(display_check.subprocess, "run", probe)
    return display_problem({"DISPLAY": ":0"})


@pytest.mark.parametrize(
    ("library", "package"), [("libxcb-cursor.so.0", "libxcb-cursor0"), ("libEGL.so.1", "libegl1")]
)
def test_a_missing_library_is_named_with_its_package(monkeypatch, library, package):
    errors = f"OSError: {library}: cannot open shared object file: No such file or directory"
    said = answer(monkeypatch, errors)
    assert said is not None
    assert library in said
    assert said.endswith(f"sudo apt install {package}.")


def test_a_display_that_refuses_is_named(monkeypatch):
    # Qt adds its guess about libxcb-cursor to every failure; it must not mislead.
    errors = (
        "qt.qpa.xcb: could not connect to display :0\n"
        "From 6.5.0, xcb-cursor0 or libxcb-cursor0 is needed to load the Qt xcb platform plugin."
    )
    assert answer(monkeypatch, errors) == "The display :0 cannot be reached."


def test_anything_else_is_told_in_qts_own_words(monkeypatch):
    said = answer(monkeypatch, "something odd\nqt: no such thing\n\n")
    assert said == "Qt cannot open a window on the display :0: qt: no such thing"


def test_a_display_that_hangs_is_given_up(monkeypatch):
    def probe(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(display_check.subprocess, "run", probe)
    said = display_problem({"DISPLAY": "far:0"})
    assert said is not None
    assert "far:0 did not answer" in said


def test_an_invisible_platform_is_no_display():
    said = display_problem({"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"})
    assert said is not None
    assert "offscreen" in said
