"""The colours of both schemes can be read by everybody."""

import re

import pytest

from app.palette import PALETTES, Palette, contrast

TEXT_ON_GROUND = [
    (text, ground)
    for ground in ("window", "panel", "card", "button", "field")
    for text in ("text", "muted", "accent", "changed", "good", "bad", "violet")
] + [
    ("text", "button_hover"),
    ("text", "button_pressed"),
    ("text", "accent_soft"),
    ("on_primary", "primary"),
    ("on_primary", "primary_hover"),
    ("on_bad", "bad"),
    ("on_pill", "pill"),
    ("pill_good", "pill"),
    ("pill_changed", "pill"),
]


def test_black_on_white_has_the_known_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("colors", PALETTES.values(), ids=PALETTES.keys())
@pytest.mark.parametrize(("text", "ground"), TEXT_ON_GROUND)
def test_text_has_a_contrast_of_at_least_four_and_a_half(
    colors: Palette, text: str, ground: str
) -> None:
    assert contrast(getattr(colors, text), getattr(colors, ground)) >= 4.5


@pytest.mark.parametrize("colors", PALETTES.values(), ids=PALETTES.keys())
def test_every_colour_is_written_in_full(colors: Palette) -> None:
    values = [value for name, value in vars(colors).items() if name != "name"]
    assert all(re.fullmatch("#[0-9a-f]{6}", value) for value in values)
