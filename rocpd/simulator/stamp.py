"""Owns turning a template's columns into rows for a batch of steps: times, links, values. Decides nothing of the job.

Works on whole columns: made one by one in Python, rows would take several times as long as SQLite takes to store them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from rocpd.frozen import frozen
from rocpd.schema.trace.events import Arguments, Batch, CounterValues, Events, MemoryAllocations, Samples
from rocpd.schema.trace.writer import TraceWriter
from rocpd.simulator.clocks import NodeClock
from rocpd.simulator.columns import TemplateColumns
from rocpd.types import Floats, Ints


@frozen
class StepBatch:
    """Steps to stamp: their numbers, anchors (true ns), stretches, and shares of the full clock; one row per step."""

    steps: Sequence[int]
    anchors: Ints
    stretch: Floats
    clock: Floats


class Stamp:
    """Writes the events of one rank, batch by batch."""

    def __init__(self, trace: TraceWriter, clock: NodeClock, random: np.random.Generator) -> None:
        self._trace = trace
        self._clock = clock
        self._random = random
        self._regions = 0

    def write(self, template: TemplateColumns, batch: StepBatch) -> None:
        """Write the rows of `template` for every step of the batch."""
        start, end = self._times(template, batch)
        first = self._trace.write(self._events(template, batch)).ids[0]
        events: Ints = first + np.arange(start.size).reshape(start.shape)
        self._write_arguments(template, events)
        self._write_values(template, batch, events, end - start)
        for kind, part in zip(template.kinds, template.parts, strict=True):
            if part.stop > part.start and self._trace.holds(kind.TABLE):
                changed = _addresses(template, kind, batch) if isinstance(kind, MemoryAllocations) else {}
                self._write_rows(kind, start[:, part], end[:, part], events[:, part], changed)

    def _times(self, t: TemplateColumns, batch: StepBatch) -> tuple[Ints, Ints]:
        starts, ends = _pieces(t, batch)
        start, end = t.start.resolve(batch.anchors, starts), t.end.resolve(batch.anchors, ends)
        share = 1.0 - t.jitter * self._random.random(start.shape)
        end = start + np.ceil((end - start) * share).astype(np.int64)
        return self._clock.local(start), self._clock.local(end)

    def _events(self, t: TemplateColumns, batch: StepBatch) -> Events:
        steps = len(batch.steps)
        # Stack ids are those of the regions, which are written after their events.
        base = self._regions + 1 + np.arange(steps)[:, None] * t.regions
        self._regions += steps * t.regions
        stack, parent = (
            np.where(index >= 0, base + index, 0).ravel() for index in (t.events.stack_id, t.events.parent_stack_id)
        )
        messages = t.events.message * steps
        for row in t.changing:
            for n, step in enumerate(batch.steps):
                messages[n * t.rows + row] = t.events.message[row].replace("{step}", str(step))
        return Events(t.events.category * steps, stack, parent, message=messages)

    def _write_arguments(self, t: TemplateColumns, events: Ints) -> None:
        columns = {name: values * len(events) for name, values in t.args.items()}
        self._trace.write(Arguments(event_id=events[:, t.arg_rows].ravel(), **columns))

    def _write_values(self, t: TemplateColumns, batch: StepBatch, events: Ints, duration: Ints) -> None:
        noise = 2.0 * self._random.random((len(events), len(t.value_rows))) - 1.0
        clock = np.where(t.value_follows, batch.clock[:, None], 1.0)
        measured = t.value_typical + t.value_per_ns * duration[:, t.value_rows]
        values = measured * clock * (1.0 + t.value_spread * noise)
        values = np.where(t.value_whole, np.floor(values), values).ravel()
        event = events[:, t.value_rows].ravel()
        self._trace.write(CounterValues(event_id=event, pmc_id=t.value_pmc * len(events), value=values))

    def _write_rows(self, kind: Batch, start: Ints, end: Ints, events: Ints, changed: dict[str, Any]) -> None:
        static = {f.name: getattr(kind, f.name) for f in fields(kind)}
        columns: dict[str, Any] = {n: v * len(start) for n, v in static.items() if isinstance(v, list)}
        columns |= changed
        if isinstance(kind, Samples):
            columns["timestamp"] = start.ravel()
        else:
            columns |= {"start": start.ravel(), "end": end.ravel()}
        self._trace.write(replace(kind, event=events.ravel(), **columns))


def _pieces(t: TemplateColumns, batch: StepBatch) -> tuple[Ints, Ints]:
    """Return start and end of all pieces of device work, lane by lane: a row for each step."""
    runs = [lane.runs(batch.anchors, batch.stretch) for lane in t.lanes]
    none = np.zeros((len(batch.steps), 0), dtype=np.int64)
    return np.hstack([none, *(start for start, _ in runs)]), np.hstack([none, *(end for _, end in runs)])


def _addresses(t: TemplateColumns, kind: MemoryAllocations, batch: StepBatch) -> dict[str, Any]:
    """Return the addresses of allocations where those that leak need new ones in every step."""
    if not t.leaks or not isinstance(kind.address, list):
        return {}
    addresses = [list(kind.address) for _ in batch.steps]
    for row, size in t.leaks:
        for step, here in zip(batch.steps, addresses, strict=True):
            here[row] += step * size
    return {"address": [address for here in addresses for address in here]}
