"""Exact checkpoints: safetensors with a JSON header, no pickle.

The file is written tensor by tensor, so that views can be served in between, and takes its place
only when it is whole (`atomic_file`). What the tensors mean is the trainer's business
(`Trainer.export_state`); here are version, completeness and damage.
"""

import dataclasses
import json
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engine.documents import UNREADABLE, problem_of
from engine.errors import CheckpointError
from engine.plain_files import require_plain_file
from engine.run.atomic_file import atomic_file

FORMAT_VERSION = 1
_TYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """The content of a checkpoint file; `facts` is plain JSON."""

    path: Path
    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def fact(self, name: str) -> Any:
        """One entry of the header; CheckpointError when the file lacks it."""
        if name not in self.facts:
            raise CheckpointError(
                f"{self.path} lacks the entry {name!r}; it was written by another version or is "
                "damaged. Export its splats with the version that wrote it, or use another "
                "checkpoint.",
                path=self.path,
                value=name,
            )
        return self.facts[name]


def save_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, verify: bool = False
) -> Generator[str, None, None]:
    """Write a checkpoint; yields the name of each tensor after it was written.

    With `verify` everything is read back before the file takes its place, and each name comes
    twice. The tensors must not change until the iterator is exhausted; closing it early leaves
    nothing behind. Raises OSError and CheckpointError.
    """
    header: dict[str, Any] = {
        "__metadata__": {
            "format_version": str(FORMAT_VERSION),
            "facts": json.dumps(dict(facts), allow_nan=False),
        }
    }
    offset = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _TYPE_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with atomic_file(path) as handle:
        handle.write(len(text).to_bytes(8, "little"))
        handle.write(text)
        for name, tensor in tensors.items():
            handle.write(_bytes_of(tensor))
            yield name
        if verify:
            handle.flush()
            yield from verify_checkpoint(Path(handle.name), tensors)


def _bytes_of(tensor: Tensor) -> memoryview:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    raw = np.asarray(flat.view(torch.uint8).numpy(), dtype=np.uint8)
    return raw.data if flat.numel() else memoryview(b"")


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; CheckpointError when it is missing, cut short, damaged or newer."""
    try:
        require_plain_file(path)
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint {path}.", path=path) from None
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise CheckpointError(message, path=path) from error
    try:
        with safe_open(path, framework="pt") as handle:
            metadata = handle.metadata() or {}
            _require_version(path, metadata)
            tensors = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is cut short or damaged ({error}). {_way_round(path)}", path=path
        ) from error
    try:
        facts = json.loads(metadata["facts"])
    except KeyError as error:
        message = f"{path} has a damaged header: there is no entry {error}. {_way_round(path)}"
        raise CheckpointError(message, path=path) from error
    except UNREADABLE as error:
        message = f"{path} has a damaged header: {problem_of(error)}. {_way_round(path)}"
        raise CheckpointError(message, path=path) from error
    return Checkpoint(path=path, tensors=tensors, facts=facts)


def _way_round(damaged: Path) -> str:
    """What can be done without that checkpoint."""
    names = (item.name for item in damaged.parent.glob(f"*{damaged.suffix}"))
    earlier = max((name for name in names if name < damaged.name), default=None)
    if earlier is None:
        return f"There is no earlier one in {damaged.parent}; begin a new run."
    return f"Move it away to go on from the earlier {earlier}."


def _require_version(path: Path, metadata: Mapping[str, str]) -> None:
    found = metadata.get("format_version", "")
    if not found.isdigit():
        raise CheckpointError(
            f"{path} is not a checkpoint of this program: its header has no format_version. "
            "Expected a file from the checkpoints folder of a run.",
            path=path,
        )
    if int(found) > FORMAT_VERSION:
        raise CheckpointError(
            f"{path} was written by a newer version of the program (checkpoint format {found}, "
            f"this one reads up to {FORMAT_VERSION}). Update the program to continue this run.",
            path=path,
            value=int(found),
        )


def verify_checkpoint(path: Path, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    """Read `path` again and compare every bit; yields each name, CheckpointError on a difference.

    Done once a run, at its first save: a checkpoint that cannot be read is worth nothing.
    """
    try:
        with safe_open(path, framework="pt") as handle:
            for name, tensor in tensors.items():
                if not _same_bits(handle.get_tensor(name), tensor.detach().cpu()):
                    raise CheckpointError(
                        f"{path} reads back with other values for {name!r}; the disk or the file "
                        "system is at fault. Save to another place.",
                        path=path,
                        value=name,
                    )
                yield name
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} cannot be read back ({error}); the disk or the file system is at fault. Save "
            "to another place.",
            path=path,
        ) from error


def _same_bits(a: Tensor, b: Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.numel() == 0 or bytes(_bytes_of(a)) == bytes(_bytes_of(b))
