"""Every colour of the window, dark and light, in one place.

The style sheet, the plots, both viewports and the icons take their colours from here and from
nowhere else. Texts keep a contrast of at least 4.5:1 on what they stand on; a test computes it.
No Qt in this file, so that a plot, a shader or a test can use it alike.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Palette:
    """One colour scheme; every field but `name` is a colour `#rrggbb`."""

    name: str
    window: str  # behind the panels
    panel: str  # a panel's surface
    card: str  # a block set off inside a panel
    button: str
    button_hover: str
    button_pressed: str
    button_border: str
    field: str  # where values are typed
    border: str
    grid: str  # lines of plots, tracks of sliders and bars
    text: str
    muted: str  # quiet labels
    disabled: str  # of controls that cannot be used now; exempt from the contrast rule
    accent: str  # progress, links, focus
    accent_soft: str  # the selected row, the range that is still ahead
    primary: str  # the one main button
    primary_hover: str
    on_primary: str
    changed: str  # what the user changed
    good: str
    bad: str
    on_bad: str
    violet: str  # a third curve
    handle: str  # the knob of a slider
    pill: str  # overlay plate on the picture, the same in both schemes
    on_pill: str
    pill_good: str
    pill_changed: str
    stage: str  # around the picture where there is none


DARK = Palette(
    name="dark",
    window="#17191e",
    panel="#1d2027",
    card="#262a33",
    button="#272b34",
    button_hover="#313641",
    button_pressed="#20242c",
    button_border="#3a3f4a",
    field="#262b34",
    border="#33373f",
    grid="#353a43",
    text="#e8eaee",
    muted="#9aa0ab",
    disabled="#5d636e",
    accent="#5bbcff",
    accent_soft="#223a4d",
    primary="#5bbcff",
    primary_hover="#7dcaff",
    on_primary="#0b1622",
    changed="#ffb454",
    good="#7ed56f",
    bad="#ff7b7b",
    on_bad="#2a0d0d",
    violet="#c897ff",
    handle="#eef0f3",
    pill="#14161a",
    on_pill="#eef0f3",
    pill_good="#8be07c",
    pill_changed="#ffc069",
    stage="#101215",
)

LIGHT = Palette(
    name="light",
    window="#f3f4f7",
    panel="#ffffff",
    card="#eef0f4",
    button="#eef0f4",
    button_hover="#e3e6ec",
    button_pressed="#d7dbe3",
    button_border="#d0d4dc",
    field="#eef0f4",
    border="#d9dce2",
    grid="#d9dce3",
    text="#16181c",
    muted="#5c6370",
    disabled="#a3a9b4",
    accent="#0b68b5",
    accent_soft="#d4e7f8",
    primary="#0b72c6",
    primary_hover="#0962ab",
    on_primary="#ffffff",
    changed="#8f5600",
    good="#2f7a1f",
    bad="#bb2a33",
    on_bad="#ffffff",
    violet="#7a3fc8",
    handle="#22252b",
    pill="#14161a",
    on_pill="#eef0f3",
    pill_good="#8be07c",
    pill_changed="#ffc069",
    stage="#e4e7ec",
)

PALETTES = {DARK.name: DARK, LIGHT.name: LIGHT}


def rgb(color: str) -> tuple[int, int, int]:
    """The three channels of `#rrggbb`, 0 to 255."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""

    def luminance(color: str) -> float:
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (channel / 255 for channel in rgb(color))
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
