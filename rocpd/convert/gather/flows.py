"""Flows: from an API call to each dispatch or copy that it launched, by the rule of `rocpd.schema.rules.launch`.

Never links across ranks, and never gives a slice of GPU work more than one flow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rocpd.base.types import NULL, Ints
from rocpd.convert.gather.rows import Columns, calls
from rocpd.convert.model import Ragged, Slices
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.launch import launches, launching_regions


def launch_stacks(reader: RankReader, regions: Columns) -> Ints:
    """Return the stack ids by which regions launch operations.

    Where a selection leaves regions out, another one of the whole trace may be the launching one: then it is `NULL`.

    Args:
        reader: reads the rank.
        regions: `stack_id`, and `id` where a selection is made among regions.
    """
    if not reader.selects("rocpd_region"):
        return regions["stack_id"]
    regions_of_all = calls(reader.whole(), ("id", "start", "end"))
    launching = regions_of_all["id"][launches(*(regions_of_all[name] for name in ("stack_id", "start", "end")))]
    return np.where(np.isin(regions["id"], launching), regions["stack_id"], NULL)


def connect(rank: int, regions: Slices, work: Sequence[Slices]) -> tuple[Slices, list[Slices]]:
    """Return `regions` and `work` with flow ids: one per dispatch or copy whose launching call is there.

    Args:
        rank: rank number; flow ids are unique across ranks.
        regions: the calls; `stack` as from `launch_stacks`.
        work: dispatches, copies.
    """
    sources, ids, linked = [], [], []
    last = (rank + 1) << 40
    for slices in work:
        call = launching_regions(regions.stack, regions.start, regions.end, slices.stack)
        rows = np.flatnonzero(call >= 0)
        numbers = last + 1 + np.arange(len(rows), dtype=np.int64)
        last += len(rows)
        sources.append(call[rows])
        ids.append(numbers)
        linked.append(dataclasses.replace(slices, flows=Ragged.of(rows, numbers, len(slices))))
    flows = Ragged.of(np.concatenate(sources), np.concatenate(ids), len(regions))
    return dataclasses.replace(regions, flows=flows), linked
