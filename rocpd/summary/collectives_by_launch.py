"""Collectives by the step, or the marker ranges, in which they were launched.

A collective belongs where the first of its members that counts launched it. Its members are compared as ranks; those of
start-up are listed, and nobody is blamed for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.read.ids import distinct
from rocpd.summary.collectives import Waiting
from rocpd.summary.ops import KERNEL, OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.origins import read_origins
from rocpd.summary.reading import DIVISIONS, Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary
from rocpd.summary.stragglers import (
    TABLES,
    MatchedCommunication,
    RankCommunication,
    communication_of,
    first_judged,
    who,
)
from rocpd.trace.collectives import Channel, Group
from rocpd.trace.kernel_categories import Categories, load
from rocpd.trace.steps import is_step
from rocpd.types import Flags, Row


class _Launched(NamedTuple):
    """Communication of a rank, and for each channel where each of its kernels that count was launched."""

    communication: RankCommunication
    keys: list[list[Key]]


def collectives_by_launch(reading: Reading, by: By) -> Iterator[Summary]:
    """Return the tables of collectives, stragglers and waits, divided by step or marker; none without collectives."""
    categories, step = load(reading.options.categories), is_step(reading.options.step_marker)
    work = partial(_of_rank, by=by, categories=categories, step=step)
    launched = {rank.number: answer for rank, answer in reading.each(work)}
    if reading.session.runs > 1:
        return
    keys = {
        id(channel): keys
        for rank in launched.values()
        for channel, keys in zip(rank.communication.channels, rank.keys, strict=True)
    }
    matched = MatchedCommunication.of(
        reading.session, {number: rank.communication for number, rank in launched.items()}
    )
    ranks = {rank.number: rank for rank in reading.session.ranks}
    waiting: dict[Key, Waiting] = {}
    for group in matched.groups:
        startup = first_judged(group, matched.pieces)
        for key, chosen in _places(group, [keys[id(member)] for member in group]):
            of_key = waiting.setdefault(key, Waiting(By.RANK, ranks, matched.clocks))
            of_key.add(tuple(_only(member, chosen) for member in group), startup)
    ordered = [(key, waiting[key]) for key in sorted(waiting, key=order_of) if waiting[key].rows]
    if ordered:
        yield _table("collectives", by, [(*key, *row) for key, each in ordered for row in each.collective_rows()])
        rows: list[Row] = [(*key, *row, None, None) for key, each in ordered for row in each.straggler_rows()]
        yield _table("stragglers", by, rows, DIVISIONS[By.RANK])
        yield _table("waits", by, [(*key, *row) for key, each in ordered for row in each.pair_rows()])


def _of_rank(reading: RankReading, by: By, categories: Categories, step: re.Pattern[str]) -> _Launched:
    names = OperationNames()
    communication = communication_of(reading, read_ops(reading, names), names, categories, step)
    if not communication.channels:
        return _Launched(communication, [])
    origins = read_origins(reading, by)
    codes = (origins.of(KERNEL, channel.counted.row).tolist() for channel in communication.channels)
    return _Launched(communication, [[origins.key(code) for code in of_channel] for of_channel in codes])


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
