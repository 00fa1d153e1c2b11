"""Collectives by the step, or the marker ranges, in which they were launched.

A collective belongs where the first of its members that counts launched it. Its members are compared as ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.read.ids import distinct
from rocpd.summary.collectives import Waiting, channels_of
from rocpd.summary.ops import KERNEL, OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.origins import read_origins
from rocpd.summary.reading import DIVISIONS, Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary
from rocpd.summary.stragglers import TABLES, who
from rocpd.trace.collectives import Channel, Group, match
from rocpd.trace.kernel_categories import Categories, load
from rocpd.types import Flags, Row

Launched = tuple[Channel, list[Key]]
"""A channel, and where each of its kernels that count was launched."""


def collectives_by_launch(reading: Reading, by: By) -> Iterator[Summary]:
    """Return the tables of collectives, stragglers and waits, divided by step or marker; none without collectives."""
    session = reading.session
    work = partial(_of_rank, by=by, categories=load(reading.options.categories))
    launched = {id(channel): (channel, keys) for _, of_rank in reading.each(work) for channel, keys in of_rank}
    clocks = {rank: number for number, domain in enumerate(session.clock_domains) for rank in domain.ranks}
    groups, _ = match([channel for channel, _ in launched.values()], clocks)
    ranks = {rank.number: rank for rank in session.ranks}
    waiting: dict[Key, Waiting] = {}
    for group in groups:
        for key, chosen in _places(group, [launched[id(member)][1] for member in group]):
            of_key = waiting.setdefault(key, Waiting(By.RANK, ranks, clocks))
            of_key.add(tuple(_only(member, chosen) for member in group))
    ordered = [(key, waiting[key]) for key in sorted(waiting, key=order_of) if waiting[key].rows]
    if ordered:
        yield _table("collectives", by, [(*key, *row) for key, each in ordered for row in each.collective_rows()])
        rows: list[Row] = [(*key, *row, None, None) for key, each in ordered for row in each.straggler_rows()]
        yield _table("stragglers", by, rows, DIVISIONS[By.RANK])
        yield _table("waits", by, [(*key, *row) for key, each in ordered for row in each.pair_rows()])


def _of_rank(reading: RankReading, by: By, categories: Categories) -> list[Launched]:
    names = OperationNames()
    channels = channels_of(reading, read_ops(reading, names), names, categories)
    origins = read_origins(reading, by) if channels else None
    return [
        (channel, [origins.key(code) for code in origins.of(KERNEL, channel.counted.row).tolist()] if origins else [])
        for channel in channels
    ]


def _places(group: Group, keys: list[list[Key]]) -> Iterator[tuple[Key, Flags]]:
    """Yield where collectives of a group were launched, and which of them."""
    known: dict[Key, int] = {}
    place = np.full(len(group[0]), -1, np.int64)
    for member, of_member in reversed(list(zip(group, keys, strict=True))):
        place[member.numbers] = [known.setdefault(key, len(known)) for key in of_member]
    every = list(known)
    for code in distinct(place[place >= 0]).tolist():
        yield every[code], place == code


def _only(member: Channel, chosen: Flags) -> Channel:
    """Return a channel of which only the kernels of some collectives count."""
    kept = np.flatnonzero(chosen[member.numbers])
    return replace(member, numbers=member.numbers[kept], counted=member.counted.take(kept))


def _table(name: str, by: By, rows: list[Row], front: tuple[Field, ...] = ()) -> Summary:
    return Summary(TABLES[name], (*DIVISIONS[by], *front, *who(TABLES[name], By.RANK)), rows)
