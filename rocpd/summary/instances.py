"""How the same instance of a kernel differs between GPUs: the n-th run of each name on every agent of the job.

Agents that run other work have other instances, so this compares where ranks do the same. Durations need no common
clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.ops import KERNEL, OperationNames, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.sums import merge
from rocpd.types import Floats, Ints, Row

TABLES = by_name(
    TableDefinition(
        "instances",
        "How the n-th run of a kernel differs between GPUs; those that differ most first.",
        (
            Field("name", "", "kernel", is_kernel=True),
            Field("agents", "", "GPUs of all ranks that ran it"),
            Field("instances", "", "runs that two of them have, or more"),
            Field("range_ns", "ns", "longest - shortest, added up over the instances"),
            Field("over_mean_ns", "ns", "longest - mean, added up: what is lost where all wait for the slowest"),
            Field("mean_range_ns", "ns", "range_ns by instances", True),
            Field("max_range_ns", "ns", "the largest one"),
            Field("instance", "", "which it is, from 1", True),
            Field("percent", "%", "over_mean_ns by the time of the slowest, added up"),
        ),
    )
)


@frozen
class _Instances:
    """The n-th runs of a kernel on some agents, for each n.

    Args:
        agents: how many.
        count: agents that have an n-th run.
        time: sum of their durations [ns]; a float, of which sums of damaged ones do not overflow.
        shortest, longest: [ns].
    """

    agents: int
    count: Ints
    time: Floats
    shortest: Ints
    longest: Ints

    def __add__(self, other: _Instances) -> _Instances:
        few, many = sorted((self, other), key=lambda each: len(each.count))
        count, time = many.count.copy(), many.time.copy()
        shortest, longest = many.shortest.copy(), many.longest.copy()
        both = slice(len(few.count))
        count[both] += few.count
        time[both] += few.time
        shortest[both] = np.minimum(shortest[both], few.shortest)
        longest[both] = np.maximum(longest[both], few.longest)
        return _Instances(self.agents + other.agents, count, time, shortest, longest)


def instances(reading: Reading) -> Iterator[Summary]:
    """Return how instances differ.

    Raises:
        RocpdError: there are no kernels, or no two GPUs ran the same one.
    """
    divisions: dict[Key, dict[str | None, _Instances]] = {}
    for _, (key, of_rank) in reading.each(_of_rank):
        merge(divisions.setdefault(key, {}), of_rank)
    rows = [row for key in sorted(divisions, key=order_of) for row in _rows(key, divisions[key])]
    if not rows:
        raise RocpdError("no kernel ran on two GPUs in the selection")
    yield reading.summary(TABLES["instances"], rows)


def _of_rank(reading: RankReading) -> tuple[Key, dict[str | None, _Instances]]:
    """Return the division of a rank, and the runs of its kernels by name."""
    names = OperationNames()
    runs: dict[str | None, _Instances] = {}
    for _, ops in read_ops(reading, names).lanes(By.AGENT):
        kernels = ops.take(np.flatnonzero(ops.kind == KERNEL))
        for (name,), rows in grouped([kernels.name]):
            times = kernels.duration[rows]
            one = np.ones(len(times), np.int64)
            merge(runs, {names.texts[name]: _Instances(1, one, times.astype(np.float64), times, times)})
    return reading.key(), runs


def _rows(key: Key, of_names: dict[str | None, _Instances]) -> Iterator[Row]:
    rows = []
    for name, runs in of_names.items():
        some = np.flatnonzero(runs.count > 1)
        if len(some):
            longest = runs.longest[some].astype(np.float64)
            apart = runs.longest[some] - runs.shortest[some]
            late = round(float((longest - runs.time[some] / runs.count[some]).sum()))
            most = int(np.argmax(apart))
            whole = sum(apart.tolist())
            share = late * 100 / float(longest.sum()) if longest.any() else None
            counts = (name, runs.agents, len(some), whole, late, whole / len(some))
            rows.append((*key, *counts, int(apart[most]), int(some[most]) + 1, share))
    yield from sorted(rows, key=lambda row: (-row[len(key) + 4], row[len(key)] or ""))
