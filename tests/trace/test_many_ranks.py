"""Collectives of thousands of ranks are matched without comparing each with each."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

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


@pytest.mark.parametrize(("size", "groups"), [(16, [16]), (18, [16]), (14, [4, 12])])
def test_ranks_whose_calls_name_no_communicator_are_members_that_a_group_lacks(size: int, groups: list[int]) -> None:
    """Calls of twelve of sixteen ranks name the communicator, and say of how many ranks it is."""
    known, others = _channels(16)[:12], _channels(None)[12:16]
    channels = [*(replace(each, size=size, communicator="c") for each in known), *others]
    matched, _ = match(channels, dict.fromkeys(range(16), 0))
    assert sorted(map(len, matched)) == groups
