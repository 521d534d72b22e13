import json
from pathlib import Path

import pytest

from app.preferences import (
    RECENT_LIMIT,
    Preferences,
    cascaded,
    clamped,
    keep_scene,
    load_preferences,
    preferences_path,
    save_preferences,
)
from app.window_number import WindowNumber
from tests.child_process import run_python

SCREEN = (0, 0, 1920, 1080)
SECOND = (1920, 0, 1280, 720)


def test_preferences_survive_being_saved_and_loaded() -> None:
    preferences = Preferences(
        theme="light",
        geometry=(10, 20, 1280, 720),
        maximized=True,
        splitters={"sides": [200, 800, 280]},
        closed_groups=["loss"],
        logarithmic_loss=True,
    )
    preferences.remember_scene(Path("/scenes/banana"))
    preferences.remember_folder("open", Path("/scenes"))
    assert save_preferences(preferences) == ""
    assert load_preferences() == (preferences, "")


def test_the_folder_can_be_moved_by_the_environment(tmp_path: Path) -> None:
    assert preferences_path() == tmp_path / "config" / "preferences.json"


def test_no_file_is_no_reason_to_warn() -> None:
    assert load_preferences() == (Preferences(), "")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        '{"version": 99}',
        '{"version": 1, "theme": 5}',
        '{"version": 1, "geometry": [1, 2]}',
        '{"version": 1, "geometry": [1, 2, 0, 5]}',
        '{"version": 1, "recent_scenes": "x"}',
        '{"version": 1, "splitters": {"a": ["b"]}}',
    ],
)
def test_a_broken_file_warns_is_kept_aside_and_the_start_goes_on(text: str) -> None:
    path = preferences_path()
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    preferences, warning = load_preferences()
    assert preferences == Preferences()
    assert str(path) in warning
    assert "preferences.json.bad" in warning
    assert path.with_name("preferences.json.bad").read_text(encoding="utf-8") == text
    assert not path.exists()
    assert save_preferences(preferences) == ""


def test_bytes_that_are_no_text_warn_too() -> None:
    path = preferences_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe\x00")
    assert load_preferences()[1] != ""


def test_a_folder_that_cannot_be_written_warns_and_does_not_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("SPLATSCOPE_CONFIG_DIR", str(file))
    assert "cannot be written" in save_preferences(Preferences())


def test_what_is_written_is_versioned_and_whole() -> None:
    save_preferences(Preferences())
    path = preferences_path()
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 1
    assert list(path.parent.iterdir()) == [path]


def test_each_window_puts_its_scenes_into_one_list_at_once() -> None:
    save_preferences(Preferences(theme="light", recent_scenes=["/scenes/old"]))
    (first, _), (second, _) = load_preferences(), load_preferences()
    second.theme = "dark"  # written when that window closes
    keep_scene(first, Path("/scenes/fox"))
    keep_scene(second, Path("/scenes/temple"))
    keep_scene(first, Path("/scenes/fern"))
    wanted = ["/scenes/fern", "/scenes/temple", "/scenes/fox", "/scenes/old"]
    assert first.recent_scenes == wanted
    kept, _ = load_preferences()
    assert (kept.recent_scenes, kept.theme) == (wanted, "light")


def test_recent_scenes_are_few_newest_first_and_without_repeats() -> None:
    preferences = Preferences()
    for number in range(RECENT_LIMIT + 5):
        preferences.remember_scene(Path(f"/scenes/{number}"))
    preferences.remember_scene(Path(f"/scenes/{RECENT_LIMIT}"))
    assert len(preferences.recent_scenes) == RECENT_LIMIT
    assert preferences.recent_scenes[0] == str(Path(f"/scenes/{RECENT_LIMIT}"))
    assert len(set(preferences.recent_scenes)) == RECENT_LIMIT


def test_a_folder_that_is_gone_gives_way_to_home(tmp_path: Path) -> None:
    preferences = Preferences()
    preferences.remember_folder("open", tmp_path / "gone")
    assert preferences.folder("open") == Path.home()
    preferences.remember_folder("open", tmp_path)
    assert preferences.folder("open") == tmp_path


@pytest.mark.parametrize(
    ("geometry", "screens", "expected"),
    [
        ((100, 50, 1280, 720), [SCREEN], (100, 50, 1280, 720)),
        ((2_000, 50, 1_200, 600), [SCREEN, SECOND], (2_000, 50, 1_200, 600)),
        # its screen is gone: to the middle of the main one
        ((2_000, 50, 1_200, 600), [SCREEN], (360, 240, 1_200, 600)),
        # the title bar is above the screen
        ((100, -500, 1_200, 600), [SCREEN], (360, 240, 1_200, 600)),
        # stored on a screen with twice as many points, as before QT_SCALE_FACTOR=2
        ((80, 50, 1_600, 1_000), [(0, 0, 800, 500)], (0, 32, 800, 468)),
        ((1_500, 700, 900, 600), [SCREEN], (1_020, 480, 900, 600)),
        # on two screens: into the one that has most of it
        ((1_800, 50, 1_200, 600), [SCREEN, SECOND], (1_920, 50, 1_200, 600)),
        # larger than any screen
        ((0, 0, 5_000, 3_000), [SCREEN], (0, 32, 1_920, 1_048)),
        ((-9_000, 0, 5_000, 3_000), [SECOND], (1_920, 32, 1_280, 688)),
    ],
)
def test_a_window_comes_back_where_it_can_be_reached(
    geometry: tuple[int, int, int, int],
    screens: list[tuple[int, int, int, int]],
    expected: tuple[int, int, int, int],
) -> None:
    assert clamped(geometry, screens) == expected


@pytest.mark.parametrize(
    ("geometry", "number", "expected"),
    [
        ((100, 50, 1280, 720), 0, (100, 50, 1280, 720)),
        ((100, 50, 1280, 720), 1, (136, 86, 1280, 720)),
        ((100, 50, 1280, 720), 2, (172, 122, 1280, 720)),
        ((2_000, 50, 1_150, 600), 1, (2_036, 86, 1_150, 600)),
        # no room at the right and below
        ((640, 350, 1280, 720), 1, (604, 314, 1280, 720)),
        # no room anywhere: the first shows at its rim
        ((0, 32, 1920, 1048), 1, (36, 68, 1884, 1012)),
    ],
)
def test_a_second_window_leaves_the_first_in_sight(
    geometry: tuple[int, int, int, int], number: int, expected: tuple[int, int, int, int]
) -> None:
    assert cascaded(geometry, number, [SCREEN, SECOND]) == expected


def test_a_window_has_the_lowest_number_that_no_open_one_holds(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    first, second, third = (WindowNumber(folder) for _ in range(3))
    assert [first.value, second.value, third.value] == [0, 1, 2]
    second.release()
    assert WindowNumber(folder).value == 1


def test_the_number_of_a_killed_program_is_free(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from app.window_number import WindowNumber\n"
        "number = WindowNumber(Path(sys.argv[1])); print(number.value, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    assert run_python("-c", program, tmp_path).stdout.strip() == "0"
    assert (tmp_path / "window-0.lock").exists()
    assert WindowNumber(tmp_path).value == 0


def test_where_no_file_can_be_kept_every_window_is_the_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert WindowNumber(tmp_path / "file" / "config").value == 0
