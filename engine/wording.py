"""Small words of messages for people."""

from collections.abc import Sequence

_NAMES = 3  # as many as are listed


def counted(count: int, thing: str) -> str:
    """A number with its noun: "1 photo", "1,200 photos"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def printable(text: str) -> str:
    """A text with what would move a terminal's cursor, or worse, written out."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text
    )


def listed(names: Sequence[str]) -> str:
    """The first names and how many more there are."""
    first = ", ".join(names[:_NAMES])
    rest = len(names) - _NAMES
    return f"{first} and {rest:,} more" if rest > 0 else first


def memory(size: float) -> str:
    """Bytes as KB, MB or GB."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} KB"
