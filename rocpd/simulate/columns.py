"""Owns a template as columns: what does not change from step to step, with strings already numbered for one file.

Row order within a step: regions, dispatches, copies, allocations, graph launches, samples; each row has one event.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rocpd.schema.write import Writer
from rocpd.simulate import samples
from rocpd.simulate.identity import Identity, queue_of
from rocpd.simulate.kernels import KERNEL_IDS, KERNELS
from rocpd.simulate.script import COPY, address
from rocpd.simulate.template import Allocation, Arg, Copy, Dispatch, Graph, Region, Template, Time

KINDS: tuple[tuple[str, str], ...] = (
    ("regions", "rocpd_region"),
    ("dispatches", "rocpd_kernel_dispatch"),
    ("copies", "rocpd_memory_copy"),
    ("allocations", "rocpd_memory_allocate"),
    ("graphs", "rocpd_graph_launch"),
    ("samples", "rocpd_sample"),
)
"""Field of `Template` and table of each kind of row, in row order."""

_COPY_NAMES = {
    "HD": "MEMORY_COPY_HOST_TO_DEVICE",
    "DH": "MEMORY_COPY_DEVICE_TO_HOST",
    "DD": "MEMORY_COPY_DEVICE_TO_DEVICE",
}
_COPY_JITTER, _ALLOCATION_JITTER = 0.1, 0.3
_HOST_ADDRESS, _DEVICE_ADDRESS = 0x7F2B80000000, 0x7F2A40000000

Columns = dict[str, list[Any]]


class Points:
    """Times as three arrays, one element per row."""

    def __init__(self, times: Sequence[Time]) -> None:
        self.anchor, self.fixed, self.scaled = np.array(times, dtype=np.int64).reshape(-1, 3).T


class TemplateColumns:
    """The columns of one template for one rank's file."""

    def __init__(self, template: Template, writer: Writer, own: Identity, words: dict[str, str]) -> None:
        self._string = writer.string
        self._own = own
        self._words = words
        kinds = [getattr(template, kind) for kind, _ in KINDS]
        everything = [row for rows in kinds for row in rows]
        self.rows = len(everything)
        ends = np.cumsum([len(rows) for rows in kinds]).tolist()
        self.parts = {name: slice(e - len(rows), e) for (name, _), rows, e in zip(KINDS, kinds, ends, strict=True)}
        self.tids = [own.tids[getattr(row, "thread", 0)] for row in everything]
        self._set_times(template)
        self._set_events(template, everything)
        self._set_values(template)
        self._set_arguments(template)
        self.static: dict[str, Columns] = {
            "regions": {"name_id": [self._string(r.name) for r in template.regions]},
            "dispatches": _columns([self._dispatch(d) for d in template.dispatches]),
            "copies": _columns([self._copy(c) for c in template.copies]),
            "allocations": _columns([self._allocation(a) for a in template.allocations]),
            "graphs": self._graphs(template),
            "samples": {"track_id": [s.track + 1 for s in template.samples]},
        }

    def _set_times(self, t: Template) -> None:
        ranges: list[Region | Dispatch | Copy | Allocation | Graph] = [
            *t.regions,
            *t.dispatches,
            *t.copies,
            *t.allocations,
            *t.graphs,
        ]
        points = [s.at for s in t.samples]
        self.begin = Points([*(r.start for r in ranges), *points])
        self.end = Points([*(r.end for r in ranges), *points])
        jitter = [*(r.jitter for r in t.regions), *(d.jitter for d in t.dispatches)]
        jitter += [_COPY_JITTER] * len(t.copies) + [_ALLOCATION_JITTER] * len(t.allocations)
        self.jitter = np.array(jitter + [0.0] * (len(t.graphs) + len(t.samples)))

    def _set_events(self, t: Template, everything: list[Any]) -> None:
        own = list(range(len(t.regions)))
        launched = [getattr(row, "launcher", -1) for row in everything[len(own) :]]
        # Work carries the id of the call that launched it, as its own and as its parent: the flow arrow.
        self.stack = np.array(own + launched, dtype=np.int64)
        self.parent = np.array([r.parent for r in t.regions] + launched, dtype=np.int64)
        names = [r.category for r in t.regions] + ["KERNEL_DISPATCH"] * len(t.dispatches)
        names += ["MEMORY_COPY"] * len(t.copies)
        names += ["SCRATCH_MEMORY" if a.level == "SCRATCH" else "MEMORY_ALLOCATION" for a in t.allocations]
        names += ["GRAPH_LAUNCH"] * len(t.graphs)
        names += ["MARKER_CORE_API" if s.text else samples.SMI_CATEGORY for s in t.samples]
        self.categories = [self._string(name) for name in names]
        texts = [getattr(row, "text", None) for row in everything]
        self.extdata = ["{}" if text is None else json.dumps({"message": text}) for text in texts]
        self.numbered = [i for i, text in enumerate(texts) if text and "{step}" in text]

    def _set_values(self, t: Template) -> None:
        first = self.parts["dispatches"].start
        cells = [(first + i, n) for i, d in enumerate(t.dispatches) if d.counted for n in range(len(samples.HARDWARE))]
        first = self.parts["samples"].start
        cells += [
            (first + i, len(samples.HARDWARE) + s.track) for i, s in enumerate(t.samples) if s.track != samples.MARK
        ]
        counters = [(*samples.HARDWARE, *samples.SAMPLED)[n] for _, n in cells]
        self.value_rows = np.array([row for row, _ in cells], dtype=np.int64)
        self.value_pmc = [n + 1 for _, n in cells]
        self.value_typical = np.array([c.typical for c in counters])
        self.value_spread = np.array([c.spread for c in counters])
        self.value_whole = np.array([c.whole for c in counters], dtype=bool)

    def _set_arguments(self, t: Template) -> None:
        cells = [(i, n, arg) for i, region in enumerate(t.regions) for n, arg in enumerate(region.args)]
        self.arg_rows = np.array([row for row, _, _ in cells], dtype=np.int64)
        self.args = _columns([{"position": n, **self._argument(arg)} for _, n, arg in cells])

    def _argument(self, arg: Arg) -> dict[str, Any]:
        return arg._asdict() | {"value": self._words.get(arg.value, arg.value)}

    def _dispatch(self, d: Dispatch) -> dict[str, Any]:
        kernel = KERNELS[KERNEL_IDS[d.kernel] - 1]
        row: dict[str, Any] = {"agent_id": self._own.gpu, "kernel_id": KERNEL_IDS[d.kernel]}
        row |= {"queue_id": queue_of(d.stream), "stream_id": d.stream, "region_name_id": self._string(d.marker)}
        row |= {"private_segment_size": kernel.scratch, "group_segment_size": kernel.lds}
        row |= {f"workgroup_size_{axis}": size for axis, size in zip("xyz", kernel.block, strict=True)}
        row |= {f"grid_size_{axis}": size for axis, size in zip("xyz", kernel.grid, strict=True)}
        exec_id, node_id = d.graph or (None, None)
        return row | {"graph_exec_id": exec_id, "graph_node_id": node_id}

    def _copy(self, c: Copy) -> dict[str, Any]:
        agent = {"H": 0, "D": self._own.gpu}
        place = {"H": _HOST_ADDRESS, "D": _DEVICE_ADDRESS}
        source, target = c.route[0], c.route[1]
        row: dict[str, Any] = {"name_id": self._string(_COPY_NAMES[c.route]), "size": c.size}
        row |= {"src_agent_id": agent[source], "src_address": place[source]}
        row |= {"dst_agent_id": agent[target], "dst_address": place[target]}
        return row | {"queue_id": queue_of(COPY), "stream_id": COPY, "region_name_id": self._string(c.marker)}

    def _allocation(self, a: Allocation) -> dict[str, Any]:
        scratch = a.level == "SCRATCH"
        row: dict[str, Any] = {"agent_id": self._own.gpu, "type": a.type, "level": a.level, "size": a.size}
        row |= {
            "address": None if scratch else address(a.slot),
            "queue_id": queue_of(1) if scratch else 0,
            "stream_id": 0,
        }
        return row | {"extdata": '{"flags": 1}' if scratch else '{"flags": 0}'}

    def _graphs(self, t: Template) -> Columns:
        return {
            "agent_id": [self._own.gpu] * len(t.graphs),
            "queue_id": [queue_of(1)] * len(t.graphs),
            "graph_exec_id": [g.exec_id for g in t.graphs],
            "kernel_dispatch_count": [g.count for g in t.graphs],
        }


def _columns(rows: list[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
