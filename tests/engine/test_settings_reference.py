from pathlib import Path

from engine.settings import all_settings
from engine.settings_reference import settings_reference

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "settings.md"


def test_the_page_is_what_the_declaration_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_reference(), (
        "run python -m engine.settings_reference > docs/settings.md"
    )


def test_every_setting_has_a_row() -> None:
    page = settings_reference()
    for info in all_settings():
        assert f"| `{info.flag}` |" in page
        assert info.meaning in page
