"""Collectives of thousands of ranks are matched without comparing each with each."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from rocpd.facts.communication.collectives import Channel, CommunicationKernels, match

RANKS, TIMES, OF_NODE = 2500, 8, 4
DENSE = 8 * RANKS * RANKS
"""Bytes of a table of each rank with each."""


def _channels(size: int | None) -> list[Channel]:
    """Return the channels of ranks that run the same collectives, each arriving when it likes."""
    chance = np.random.default_rng(5)
    end = np.arange(1, TIMES + 1) * 10_000_000
    counted = CommunicationKernels(*[np.zeros(0, np.int64)] * 6)
    nothing = np.arange(TIMES)
    channels = []
    for rank in range(RANKS):
        start, over = end - chance.integers(100_000, 900_000, TIMES), end + chance.integers(0, 4000, TIMES)
        own = rank if size else None
        columns = (start, over, nothing, nothing)
        channels.append(Channel("ncclDevKernel_Generic_1", rank, 0, None, size, *columns, counted, own=own))
    return channels


@pytest.mark.parametrize(("size", "lacks"), [(RANKS, 0), (RANKS, 3), (None, 0)])
def test_all_ranks_are_one_group(size: int | None, lacks: int) -> None:
    channels = _channels(size)[lacks:]
    line, nodes = dict.fromkeys(range(RANKS), 0), {rank: rank // OF_NODE for rank in range(RANKS)}
    tracemalloc.start()
    groups, lost = match(channels, line, nodes)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert ([len(group) for group in groups], lost) == ([RANKS - lacks], {})
    assert most < DENSE / 4
