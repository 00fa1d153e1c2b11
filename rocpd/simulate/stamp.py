"""Owns turning a template's columns into rows for a batch of steps: times, ids, links. Decides nothing about the job.

Works on whole columns: made one by one in Python, rows would take several times as long as SQLite takes to store them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from rocpd.schema.write import Writer
from rocpd.simulate.columns import KINDS, Points, TemplateColumns
from rocpd.simulate.identity import Identity
from rocpd.simulate.plan import NodeClock
from rocpd.types import Floats, Ints


@dataclass(frozen=True)
class Batch:
    """Steps to stamp: their numbers, anchors (true ns) and stretches, one row per step."""

    steps: Sequence[int]
    anchors: Ints
    stretch: Floats


class Stamp:
    """Writes the events of one rank; ids go on from batch to batch."""

    def __init__(self, writer: Writer, own: Identity, clock: NodeClock, random: np.random.Generator) -> None:
        self._writer = writer
        self._own = own
        self._clock = clock
        self._random = random
        self._given = dict.fromkeys(("event", "arg", "value", *(kind for kind, _ in KINDS)), 0)

    def write(self, template: TemplateColumns, batch: Batch) -> None:
        """Write the rows of `template` for every step of the batch."""
        begin, end = self._times(template, batch)
        first = self._given["event"] + 1
        events = first + np.arange(len(batch.steps))[:, None] * template.rows + np.arange(template.rows)
        self._events(template, batch)
        self._arguments(template, events)
        self._values(template, events)
        for kind, table in KINDS:
            if table in self._writer.tables and kind != "samples":
                self._ranges(template, kind, table, (begin, end, events))
        self._samples(template, begin, events)

    def _ids(self, kind: str, count: int) -> range:
        first = self._given[kind] + 1
        self._given[kind] += count
        return range(first, first + count)

    def _times(self, t: TemplateColumns, batch: Batch) -> tuple[Ints, Ints]:
        begin, end = (_resolve(points, batch) for points in (t.begin, t.end))
        kept = 1.0 - t.jitter * self._random.random(begin.shape)
        end = begin + np.ceil((end - begin) * kept).astype(np.int64)
        return self._clock.local(begin), self._clock.local(end)

    def _events(self, t: TemplateColumns, batch: Batch) -> None:
        steps, regions = len(batch.steps), t.parts["regions"].stop
        # Correlation ids are those of the regions, which are written after their events.
        base = self._given["regions"] + 1 + np.arange(steps)[:, None] * regions
        stack, parent = (np.where(index >= 0, base + index, 0) for index in (t.stack, t.parent))
        extdata = t.extdata * steps
        for row in t.numbered:
            for n, step in enumerate(batch.steps):
                extdata[n * t.rows + row] = t.extdata[row].replace("{step}", str(step))
        columns = ("id", "category_id", "stack_id", "parent_stack_id", "correlation_id", "extdata")
        ids = self._ids("event", steps * t.rows)
        rows = zip(ids, t.categories * steps, _flat(stack), _flat(parent), repeat(0), extdata, strict=False)
        self._writer.insert("rocpd_event", columns, rows)

    def _arguments(self, t: TemplateColumns, events: Ints) -> None:
        event = _flat(events[:, t.arg_rows])
        columns = {"id": self._ids("arg", len(event)), "event_id": event}
        self._insert("rocpd_arg", columns | _repeated(t.args, len(events)))

    def _values(self, t: TemplateColumns, events: Ints) -> None:
        event = _flat(events[:, t.value_rows])
        noise = 2.0 * self._random.random((len(events), len(t.value_rows))) - 1.0
        values = t.value_typical * (1.0 + t.value_spread * noise)
        values = np.where(t.value_whole, np.floor(values), values)
        columns = {"id": self._ids("value", len(event)), "event_id": event, "pmc_id": t.value_pmc * len(events)}
        self._insert("rocpd_pmc_event", columns | {"value": _flat(values)})

    def _ranges(self, t: TemplateColumns, kind: str, table: str, found: tuple[Ints, Ints, Ints]) -> None:
        part = t.parts[kind]
        begin, end, event = (_flat(matrix[:, part]) for matrix in found)
        steps = len(found[0])
        columns: dict[str, Any] = {"id": self._ids(kind, len(begin)), "nid": repeat(self._own.nid)}
        columns |= {"pid": repeat(self._own.pid), "tid": t.tids[part] * steps}
        columns |= {"start": begin, "end": end, "event_id": event, **_repeated(t.static[kind], steps)}
        if kind == "dispatches":
            columns["dispatch_id"] = columns["id"]
        self._insert(table, columns)

    def _samples(self, t: TemplateColumns, begin: Ints, events: Ints) -> None:
        part = t.parts["samples"]
        at, event = (_flat(matrix[:, part]) for matrix in (begin, events))
        columns = {"id": self._ids("samples", len(at)), "timestamp": at, "event_id": event}
        self._insert("rocpd_sample", columns | _repeated(t.static["samples"], len(begin)))

    def _insert(self, table: str, columns: dict[str, Any]) -> None:
        present = {name: values for name, values in columns.items() if name in self._writer.tables[table]}
        self._writer.insert(table, tuple(present), zip(*present.values(), strict=False))


def _repeated(columns: dict[str, list[Any]], steps: int) -> dict[str, list[Any]]:
    return {name: values * steps for name, values in columns.items()}


def _flat(matrix: Ints | Floats) -> list[Any]:
    flat: list[Any] = matrix.ravel().tolist()
    return flat


def _resolve(points: Points, batch: Batch) -> Ints:
    stretched: Ints = np.floor(batch.stretch[:, points.anchor // 3] * points.scaled).astype(np.int64)
    return batch.anchors[:, points.anchor] + points.fixed + stretched
