"""Words for people."""

from engine.wording import printable


def test_what_would_move_a_terminals_cursor_is_written_out() -> None:
    told = printable("a\x00b \x1b[2J ümlaut 漢\nnext line \r\u202e")
    assert told == "a\\x00b \\x1b[2J ümlaut 漢\nnext line \\r\\u202e"
