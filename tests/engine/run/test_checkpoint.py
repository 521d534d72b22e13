"""Checkpoint files: exact, whole, versioned, and refused with a reason otherwise."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.errors import CheckpointError
from engine.run import checkpoint as module
from engine.run.checkpoint import load_checkpoint, save_checkpoint, verify_checkpoint


def tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "a": torch.randn(7, 3, generator=generator),
        "strided": torch.randn(4, 5, generator=generator).T,
        "whole": torch.tensor([1, -(2**62)]),
        "bytes": torch.arange(13, dtype=torch.uint8),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(0.1, dtype=torch.float64),
        "special": torch.tensor([float("nan"), float("inf"), -0.0, 1e-45]),
    }


def save(path: Path, facts: dict[str, object] | None = None) -> None:
    for _ in save_checkpoint(path, tensors(), facts or {"step": 3, "rate": 0.1}):
        pass


def test_every_bit_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    loaded = load_checkpoint(path)
    assert loaded.facts == {"step": 3, "rate": 0.1}
    for name, tensor in tensors().items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert loaded.tensors[name].shape == tensor.shape
        assert loaded.tensors[name].numpy().tobytes() == tensor.contiguous().numpy().tobytes()


def test_the_file_is_plain_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    assert load_file(path).keys() == tensors().keys()


def test_saving_yields_after_each_tensor_and_can_be_given_up(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    phases = save_checkpoint(path, tensors(), {})
    assert next(phases) == "a"
    assert next(phases) == "strided"
    assert not path.exists()
    phases.close()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"There is no checkpoint .*c\.safetensors"):
        load_checkpoint(tmp_path / "c.safetensors")


@pytest.mark.parametrize("size", [0, 5, 60, -1])
def test_a_file_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError, match="cut short or damaged") as caught:
        load_checkpoint(path)
    assert caught.value.path == path
    assert "no earlier one" in str(caught.value)
    for name in ("a", "b", "d"):
        save(tmp_path / f"{name}.safetensors")
    with pytest.raises(CheckpointError, match=r"go on from the earlier b\.safetensors"):
        load_checkpoint(path)


def test_a_newer_version_is_refused_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.safetensors"
    monkeypatch.setattr(module, "FORMAT_VERSION", 2)
    save(path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=r"format 2, this one reads up to 1\)"):
        load_checkpoint(path)


def test_a_stranger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(CheckpointError, match="not a checkpoint of this program"):
        load_checkpoint(path)


def test_a_missing_entry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    with pytest.raises(CheckpointError, match="lacks the entry 'settings'"):
        load_checkpoint(path).fact("settings")


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    metadata = {"format_version": "1", "facts": json.dumps({"step": 1})[:-1]}
    save_file({"weight": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(CheckpointError, match="damaged header"):
        load_checkpoint(path)


def test_reading_back_finds_a_changed_bit(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    assert list(verify_checkpoint(path, tensors())) == list(tensors())
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(bytes(raw))
    with pytest.raises(CheckpointError, match="other values for 'special'"):
        list(verify_checkpoint(path, tensors()))


def test_what_cannot_be_read_back_at_all_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="cannot be read back"):
        list(verify_checkpoint(path, tensors()))


def test_a_file_that_reads_back_otherwise_never_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.safetensors"
    save(path)
    before = path.read_bytes()
    real = module._bytes_of

    def damaged(tensor: Tensor) -> memoryview:
        raw = bytearray(real(tensor))
        if raw:
            raw[0] ^= 1
        return memoryview(bytes(raw))

    phases = save_checkpoint(path, tensors(), {}, verify=True)
    monkeypatch.setattr(module, "_bytes_of", damaged)
    for _ in tensors():
        next(phases)
    monkeypatch.undo()  # what was written is damaged, what is compared is not
    with pytest.raises(CheckpointError, match="other values for 'a'"):
        next(phases)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
