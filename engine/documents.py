"""Why a JSON or TOML text cannot be read, where Python's own words are about Python."""

import json
import tomllib
from typing import Any

_DEEPEST = 100  # dots in a TOML key: `tomllib` takes minutes over 50,000 of them
UNREADABLE = (ValueError, RecursionError)  # what `json`, `tomllib` and decoding UTF-8 raise


def read_toml(text: str) -> dict[str, Any]:
    """The values of a TOML text. Raises what is UNREADABLE."""
    if any(line.partition("=")[0].count(".") > _DEEPEST for line in text.splitlines()):
        raise RecursionError
    return tomllib.loads(text)


def problem_of(error: ValueError | RecursionError) -> str:
    """What is wrong with a text that was refused so, as a part of a sentence."""
    match error:
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return f"byte {error.start} is not UTF-8"
        case json.JSONDecodeError():
            return f"{error.msg} in line {error.lineno}, column {error.colno}"
        case tomllib.TOMLDecodeError():
            return str(error)
    return "it has a number of thousands of digits"
