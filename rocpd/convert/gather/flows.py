"""Owns flows: from an API call to each dispatch or copy that it launched, told by equal stack ids within a rank.

Never links across ranks, and never gives a slice of GPU work more than one flow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rocpd.convert.model import Ragged, Slices
from rocpd.types import NULL


def connect(rank: int, calls: Slices, work: Sequence[Slices]) -> tuple[Slices, list[Slices]]:
    """Give `calls` and `work` with flow ids: one per dispatch or copy whose launching call is there.

    Of several calls with one stack id the one that started last, the innermost, is taken. Stack id 0 means none.

    Args:
        rank: rank number; flow ids are unique across ranks.
        calls: regions.
        work: dispatches, copies.
    """
    order = np.lexsort((calls.start, calls.stack))
    stacks = calls.stack[order]
    sources, ids, linked = [], [], []
    given = (rank + 1) << 40
    for slices in work:
        place = np.searchsorted(stacks, slices.stack, side="right") - 1
        found = (place >= 0) & (slices.stack != NULL) & (slices.stack != 0)
        found &= (stacks[place] == slices.stack) if len(stacks) else False
        rows = np.flatnonzero(found)
        numbers = given + 1 + np.arange(len(rows), dtype=np.int64)
        given += len(rows)
        sources.append(order[place[rows]])
        ids.append(numbers)
        linked.append(dataclasses.replace(slices, flows=Ragged.of(rows, numbers, len(slices))))
    flows = Ragged.of(np.concatenate(sources), np.concatenate(ids), len(calls))
    return dataclasses.replace(calls, flows=flows), linked
