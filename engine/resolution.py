"""Which values of the setting `resolution` make sense, beyond its range."""

from engine.errors import SettingError
from engine.settings import Settings

_SMALLEST_WIDTH = 16  # pixels; smaller photos can be had by a divisor


def require_sensible_width(settings: Settings) -> None:
    """SettingError: a number that is not one of the divisors is a width, and 3 is hardly one."""
    resolution = settings.scene.resolution
    if resolution in (0, 1, 2, 4, 8) or resolution >= _SMALLEST_WIDTH:
        return
    raise SettingError(
        f"resolution is {resolution}; expected 1, 2, 4 or 8, which divide the size of the photos, "
        f"or a width of at least {_SMALLEST_WIDTH} pixels, or 0.",
        value=resolution,
    )
