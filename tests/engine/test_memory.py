"""Freed memory goes back to the system, and not too often."""

import gc
import sys

import numpy as np
import psutil
import pytest

from engine.memory import HEAP_SECONDS, FreedHeap

MB = 2**20


def resident_mb() -> float:
    """What the process has in memory."""
    return float(psutil.Process().memory_info().rss) / MB


def free_between_what_stays() -> list[np.ndarray]:
    """Free 64 MB in pieces of 64 KB with small blocks between them, which are returned.

    That is under the size from which glibc maps blocks, so that the pieces stay with it.
    """
    pieces, between = [], []
    for _ in range(1024):
        pieces.append(np.ones(64 * 1024, dtype=np.uint8))
        between.append(np.ones(2048, dtype=np.uint8))
    pieces.clear()
    gc.collect()
    return between


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's heap")
def test_what_was_freed_goes_back_to_the_system() -> None:
    heap = FreedHeap(iter([0.0, 100.0]).__next__)
    between = free_between_what_stays()
    kept = resident_mb()
    heap.give_back_when_due()
    assert kept - resident_mb() > 32  # of 64, wherever the pieces came to lie
    assert sum(int(block.sum()) for block in between) == 1024 * 2048


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's heap")
def test_it_is_given_back_no_more_often_than_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter([0.0, 1.0, HEAP_SECONDS, HEAP_SECONDS + 1, 2 * HEAP_SECONDS])
    heap = FreedHeap(moments.__next__)
    calls: list[int] = []
    monkeypatch.setattr(heap, "_trim", calls.append)
    for expected in (0, 1, 1, 2):
        heap.give_back_when_due()
        assert len(calls) == expected
