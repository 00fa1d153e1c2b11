"""Kernels by the marker that they were launched in and the agent that ran them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.groups import grouped
from rocpd.summary.ops import KERNEL, OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.origins import read_origins
from rocpd.summary.reading import AGENT, DIVISIONS, RANK, STATISTICS, Key, RankReading, Reading, order_of, statistics
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.spread import Spread
from rocpd.summary.sums import merge
from rocpd.types import NULL, Row

TABLES = by_name(
    TableDefinition(
        "marker-kernels",
        "Kernels by the path of marker ranges around their launch, and by agent; those with most time first.",
        (
            *DIVISIONS[By.MARKER],
            RANK,
            AGENT,
            Field("name", "", "kernel", is_kernel=True),
            *(replace(field, minor=field.minor or field.name == "median_ns") for field in STATISTICS),
            Field("percent", "%", "share of the time of kernels of the marker on the agent", True, is_share=True),
        ),
    )
)


def marker_kernels(reading: Reading) -> Iterator[Summary]:
    """Return kernels by marker and agent.

    Raises:
        RocpdError: there are no kernels.
    """
    places: dict[Key, dict[str | None, Spread]] = {}
    for _, of_rank in reading.each(_of_rank):
        places |= of_rank
    if not places:
        raise RocpdError("no kernels in the selection")
    table = TABLES["marker-kernels"]
    yield Summary(table, table.fields, [row for key in sorted(places, key=order_of) for row in _rows(key, places[key])])


def _of_rank(reading: RankReading) -> dict[Key, dict[str | None, Spread]]:
    """Return the durations of the kernels of a rank by marker, rank and agent, then by name."""
    names = OperationNames()
    ops = read_ops(reading, names)
    ops = ops.take(np.flatnonzero(ops.kind == KERNEL))
    origins = read_origins(reading, By.MARKER)
    places: dict[Key, dict[str | None, Spread]] = {}
    for (code, agent, name), rows in grouped([origins.of_ops(ops), ops.agent, ops.name]):
        key = (*origins.key(code), reading.rank.number, None if agent == NULL else agent)
        merge(places.setdefault(key, {}), {names.texts[name]: Spread.of(ops.duration[rows])})
    return places


def _rows(key: Key, spreads: dict[str | None, Spread]) -> Iterator[Row]:
    totals = {name: spread.moments.total for name, spread in spreads.items()}
    whole = sum(totals.values())
    for name in sorted(totals, key=lambda name: (-totals[name], name or "")):
        share = totals[name] * 100 / whole if whole else None
        yield (*key, name, *statistics(spreads[name]), share)
