"""Owns turning a template into rows for a batch of steps: times, ids, links. Decides nothing about the job.

Works on whole columns: row by row, Python would take several times as long as SQLite takes to store them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from rocpd.schema.write import Writer
from rocpd.simulate import hardware, samples
from rocpd.simulate.identity import Identity, queue_of
from rocpd.simulate.kernels import KERNEL_IDS, KERNELS
from rocpd.simulate.plan import Floats, Ints, NodeClock
from rocpd.simulate.script import COPY, address
from rocpd.simulate.template import Allocation, Template, Time

_COPY_NAMES = {"HD": "MEMORY_COPY_HOST_TO_DEVICE", "DH": "MEMORY_COPY_DEVICE_TO_HOST", "DD": "MEMORY_COPY_DEVICE_TO_DEVICE"}
_COPY_JITTER, _ALLOCATION_JITTER = 0.1, 0.3


@dataclass
class Counters:
    """Ids given so far, by kind."""

    correlation: int = 0
    event: int = 0
    arg: int = 0
    pmc: int = 0
    dispatch: int = 0
    copy: int = 0
    allocation: int = 0
    sample: int = 0
    graph: int = 0


@dataclass(frozen=True)
class Batch:
    """Steps to stamp: their numbers, anchors (true ns) and stretches, one row per step."""

    steps: Sequence[int]
    anchors: Ints
    stretch: Floats


class Stamp:
    """Writes the events of one rank."""

    def __init__(self, writer: Writer, own: Identity, clock: NodeClock, random: np.random.Generator, job: tuple[int, int]) -> None:
        self._writer = writer
        self._own = own
        self._clock = clock
        self._random = random
        self._job = {"{rank}": str(job[0]), "{ranks}": str(job[1])}
        self._next = Counters()
        self._compiled: dict[int, _Compiled] = {}

    def write(self, template: Template, batch: Batch) -> None:
        """Write the rows of `template` for every step of the batch."""
        compiled = self._compiled.get(id(template))
        if compiled is None:
            compiled = self._compiled[id(template)] = _Compiled(template, self._writer, self._job)
        times = self._times(compiled, batch)
        self._events(compiled, batch)
        self._arguments(compiled, len(batch.steps))
        self._values(compiled, len(batch.steps))
        self._regions(compiled, times)
        self._dispatches(compiled, times)
        self._copies(compiled, times)
        self._allocations(compiled, times)
        self._samples(compiled, times)
        self._graphs(compiled, times)
        self._next.event += len(batch.steps) * compiled.rows
        self._next.correlation += len(batch.steps) * len(template.regions)

    def _times(self, c: _Compiled, batch: Batch) -> tuple[Ints, Ints]:
        begin, end = (_resolve(points, batch) for points in (c.begin, c.end))
        cut = 1.0 - c.jitter * self._random.random(begin.shape)
        end = begin + np.ceil((end - begin) * cut).astype(np.int64)
        return self._clock.local(begin), self._clock.local(end)

    def _ids(self, first: int, count: int) -> Iterable[int]:
        return range(first + 1, first + 1 + count)

    def _event_ids(self, steps: int, c: _Compiled, part: slice) -> list[int]:
        return _flat(_offsets(self._next.event + 1, steps, c.rows, np.arange(c.rows)[part]))

    def _events(self, c: _Compiled, batch: Batch) -> None:
        steps = len(batch.steps)
        base = self._next.correlation + 1 + np.arange(steps)[:, None] * len(c.template.regions)
        stack = np.where(c.stack >= 0, base + c.stack, 0)
        parent = np.where(c.parent >= 0, base + c.parent, 0)
        texts = c.texts * steps
        for row in c.numbered:
            for n, step in enumerate(batch.steps):
                texts[n * c.rows + row] = c.texts[row].replace("{step}", str(step))
        rows = zip(
            self._ids(self._next.event, steps * c.rows), c.categories * steps, _flat(stack), _flat(parent), repeat(0), texts
        )
        columns = ("id", "category_id", "stack_id", "parent_stack_id", "correlation_id", "extdata")
        self._writer.insert("rocpd_event", columns, rows)

    def _arguments(self, c: _Compiled, steps: int) -> None:
        count = steps * len(c.args)
        event = _flat(_offsets(self._next.event + 1, steps, c.rows, c.arg_rows))
        rows = zip(self._ids(self._next.arg, count), event, *(column * steps for column in c.arg_columns))
        self._writer.insert("rocpd_arg", ("id", "event_id", "position", "type", "name", "value", "extdata"), rows)
        self._next.arg += count

    def _values(self, c: _Compiled, steps: int) -> None:
        count = steps * len(c.pmc_ids)
        event = _flat(_offsets(self._next.event + 1, steps, c.rows, c.pmc_rows))
        noise = 2.0 * self._random.random((steps, len(c.pmc_ids))) - 1.0
        values = c.pmc_typical * (1.0 + c.pmc_spread * noise)
        values = np.where(c.pmc_whole, np.floor(values), values)
        rows = zip(self._ids(self._next.pmc, count), event, c.pmc_ids * steps, values.ravel().tolist())
        self._writer.insert("rocpd_pmc_event", ("id", "event_id", "pmc_id", "value"), rows)
        self._next.pmc += count

    def _insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        nid, pid = self._own.nid, self._own.pid
        self._writer.insert(table, ("nid", "pid", *columns), ((nid, pid, *row) for row in rows))

    def _common(self, c: _Compiled, part: slice, times: tuple[Ints, Ints]) -> Iterator[tuple[Any, ...]]:
        """Give (tid, start, end, event_id) of a kind of rows."""
        steps = len(times[0])
        tids = [self._own.tids[t] for t in c.threads[part]] * steps
        return zip(tids, _flat(times[0][:, part]), _flat(times[1][:, part]), self._event_ids(steps, c, part), strict=True)
