"""Compiled kernels on disk: what makes another key, and that a damaged entry is never used."""

import logging
from pathlib import Path

import pytest

from cuda_rasterizer.cuda import cubin_cache
from cuda_rasterizer.cuda.cubin_cache import CubinCache, cache_folder, cache_key

MODULES = {"blend": "KERNEL(blend, BlendParams, 256) {}", "project": "source"}
HEADERS = {"params.h": "struct BlendParams {};"}
BASE = (MODULES, HEADERS, "sm_89", "13.0", ("-std=c++17",))
CHANGED = {
    "a source": ({**MODULES, "blend": "other"}, *BASE[1:]),
    "a header": (MODULES, {"params.h": "other"}, *BASE[2:]),
    "a file's name": ({"blend2": MODULES["blend"], "project": "source"}, *BASE[1:]),
    "the architecture": (*BASE[:2], "sm_90", *BASE[3:]),
    "the compiler": (*BASE[:3], "13.1", BASE[4]),
    "the options": (*BASE[:4], ("-std=c++17", "-fmad=false")),
}


class Builder:
    """Builds and counts."""

    def __init__(self, image: bytes = b"machine code") -> None:
        self.image = image
        self.built = 0

    def __call__(self) -> bytes:
        self.built += 1
        return self.image


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED.keys())
def test_anything_that_the_machine_code_depends_on_makes_another_key(changed):
    assert cache_key(*changed) != cache_key(*BASE)
    assert cache_key(*BASE) == cache_key(*BASE)


def test_text_that_moves_from_one_file_to_the_next_makes_another_key():
    one = cache_key({"a": "xy", "b": "z"}, {}, "sm_89", "13.0")
    other = cache_key({"a": "x", "b": "yz"}, {}, "sm_89", "13.0")
    assert one != other


def test_an_entry_is_built_once_and_then_read(tmp_path):
    build = Builder()
    assert not CubinCache(tmp_path, "0" * 32).holds("blend")
    for _ in range(2):
        assert CubinCache(tmp_path, "0" * 32).load_or_build("blend", build) == b"machine code"
    assert build.built == 1
    assert CubinCache(tmp_path, "0" * 32).holds("blend")
    assert not CubinCache(tmp_path, "1" * 32).holds("blend")
    assert not list(tmp_path.rglob("*.part"))


def _cut(content: bytes) -> bytes:
    return content[:-1]


def _empty(content: bytes) -> bytes:
    return b""


def _flipped(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


def _other_format(content: bytes) -> bytes:
    return b"X" + content[1:]


@pytest.mark.parametrize("damage", [_cut, _empty, _flipped, _other_format])
def test_a_damaged_entry_is_told_and_built_anew(tmp_path, caplog, damage):
    build = Builder()
    cache = CubinCache(tmp_path, "0" * 32)
    cache.load_or_build("blend", build)
    (path,) = tmp_path.rglob("*.cubin")
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert cache.load_or_build("blend", build) == b"machine code"
    assert "damaged" in caplog.text
    assert build.built == 2
    assert cache.holds("blend")


def test_a_cache_that_cannot_be_written_costs_time_and_is_told(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert CubinCache(blocked, "0" * 32).load_or_build("blend", Builder()) == b"machine code"
    assert "cannot be kept" in caplog.text


def test_a_write_that_fails_leaves_neither_an_entry_nor_a_part(tmp_path, monkeypatch, caplog):
    def refuse(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with caplog.at_level(logging.WARNING):
        CubinCache(tmp_path, "0" * 32).load_or_build("blend", Builder())
    assert "disk full" in caplog.text
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_cache_keeps_the_newest_keys_and_touches_nothing_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr(cubin_cache, "_KEPT_KEYS", 2)
    stranger = tmp_path / "photos"
    stranger.mkdir()
    for digit in "1234":
        CubinCache(tmp_path, digit * 32).load_or_build("blend", Builder())
        (tmp_path / (digit * 32) / "left by a killed program.part").touch()
    assert stranger.is_dir()
    assert "1" * 32 not in {path.name for path in tmp_path.iterdir()}
    assert len(list(tmp_path.rglob("*.cubin"))) == 2
    assert CubinCache(tmp_path, "4" * 32).holds("blend")


def test_the_folder_is_the_users_cache_or_the_one_that_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SPLATSCOPE_CUDA_CACHE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache" / "splatscope" / "kernels"
    monkeypatch.setenv("SPLATSCOPE_CUDA_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
