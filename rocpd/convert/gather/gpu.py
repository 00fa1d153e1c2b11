"""Events on agents: kernel dispatches, memory copies and graph launches on a track per agent and stream.

Knows no CPU threads; `flows` links dispatches and copies to the calls that launched them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rocpd.base import NULL, Ints, frozen
from rocpd.convert.gather.context import Columns, Context
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Annotation, Slices, TrackKind, optional, where
from rocpd.facts.columns import Select, as_text, distinct, grouped, per_id
from rocpd.schema.rules.events import copy_agents
from rocpd.schema.rules.kernel_names import shown_name

_DISPATCH = (
    "dispatch_id", "queue_id", "stream_id", "grid_size_x", "grid_size_y", "grid_size_z",
    "workgroup_size_x", "workgroup_size_y", "workgroup_size_z", "group_segment_size", "private_segment_size",
)  # fmt: skip
_SHOWN = {
    "group_segment_size": "lds_size",
    "private_segment_size": "scratch_size",
    **{f"{what}_size_{axis}": f"{what}_{axis}" for what in ("grid", "workgroup") for axis in "xyz"},
}
_TITLES = {TrackKind.STREAM: "", TrackKind.COPIES: " · copies", TrackKind.GRAPHS: " · graphs"}
_REGISTERS = {"arch_vgpr_count": "vgpr_count", "accum_vgpr_count": "accum_vgpr_count", "sgpr_count": "sgpr_count"}


@frozen
class Dispatches:
    """Kernel dispatches as slices, and the agent and event of each, for its counters."""

    slices: Slices
    agent: Ints
    event: Ints


def dispatches(context: Context) -> Dispatches:
    """Return kernel dispatches on a track per agent and stream."""
    columns = ("agent_id", "kernel_id", "start", "end", "region_name_id", "event_id", *_DISPATCH)
    rows = context.on_time_line(context.read_events("rocpd_kernel_dispatch", columns), "kernel dispatches")
    kernels = _kernels(context)
    tracks = _tracks(context, rows, rows["agent_id"], TrackKind.STREAM)
    rows |= {"track": tracks, "name": _kernel_names(context, rows, kernels)}
    kinds = context.events.kinds.codes(rows["kernel_id"], lambda i: context.kernel_categories.of(kernels.get(i)))
    annotations = (
        *_full_names(context, rows["kernel_id"], kernels),
        *(optional(_SHOWN.get(name, name), rows[name]) for name in _DISPATCH),
        *_registers(context, rows["kernel_id"]),
    )
    return Dispatches(context.slices(rows, "kernel", kinds, annotations), rows["agent_id"], rows["event_id"])


def copies(context: Context) -> Slices:
    """Return memory copies on a track per agent and stream, with bytes and bandwidth [GB/s, 10^9 bytes]."""
    columns = ("name_id", "start", "end", "dst_agent_id", "src_agent_id", "size", "queue_id", "stream_id")
    rows = context.on_time_line(context.read_events("rocpd_memory_copy", columns), "memory copies")
    duration = rows["end"] - rows["start"]
    measured = (duration > 0) & (rows["size"] != NULL)
    agents = copy_agents(rows["dst_agent_id"], rows["src_agent_id"], context.events.gpus)
    directions = {i: context.strings[i] for i in distinct(rows["name_id"]).tolist() if i in context.strings}
    to, source = (context.events.strings.codes(rows[f"{end}_agent_id"], context.agent) for end in ("dst", "src"))
    titles = {i: context.titles.get(text, text) for i, text in directions.items()}
    tracks = _tracks(context, rows, agents, TrackKind.COPIES)
    rows |= {"track": tracks, "name": context.names(rows["name_id"], titles)}
    annotations = (
        *_full_names(context, rows["name_id"], directions),
        optional("bytes", rows["size"]),
        where(measured, "gb_per_s", rows["size"] / np.maximum(duration, 1)),
        Annotation("source", source, text=True),
        Annotation("destination", to, text=True),
        optional("queue_id", rows["queue_id"]),
        optional("stream_id", rows["stream_id"]),
    )
    return context.slices(rows, "copy", np.full(len(duration), context.events.kinds.code("copy")), annotations)


def graph_launches(context: Context) -> Slices:
    """Return launches of executable graphs on a track per agent and queue."""
    columns = ("agent_id", "queue_id", "start", "end", "graph_exec_id", "kernel_dispatch_count")
    rows = context.on_time_line(context.read_events("rocpd_graph_launch", columns), "graph launches")
    tracks = _tracks(context, rows, rows["agent_id"], TrackKind.GRAPHS, "queue")
    names = context.events.names.codes(rows["graph_exec_id"], lambda i: f"graph {'?' if i == NULL else i}")
    counts = optional("kernel_dispatch_count", rows["kernel_dispatch_count"])
    return context.slices(rows | {"track": tracks, "name": names}, "graph", None, (counts,))


def _tracks(context: Context, rows: Columns, agents: Ints, kind: TrackKind, by: str | None = None) -> Ints:
    """Return the track of each row: one per agent and stream, or queue if the user groups by queue."""
    by = by or ("queue" if context.options.group_by_queue else "stream")
    lines = rows[f"{by}_id"]
    track = np.zeros(len(agents), np.int64)
    for (agent, line), of_line in grouped([agents, lines]):
        title = f"{by} {'?' if line == NULL else line}{_TITLES[kind]}"
        shown = line if kind is TrackKind.STREAM else None
        track[of_line] = context.agent_track((kind, line), agent, kind, title, line=shown)
    return spread(context.events.tracks, track, rows["start"], rows["end"])


def _kernels(context: Context) -> dict[int, str]:
    """Return id -> full name of the kernels of a rank."""
    symbols = context.reader.rows("SELECT id, display_name, kernel_name FROM rocpd_info_kernel_symbol")
    return {number: shown_name(number, *map(as_text, names)) for number, *names in symbols}


def _kernel_names(context: Context, rows: Columns, kernels: Mapping[int, str]) -> Ints:
    """Return the numbers of titles of dispatches: the short name if there is one."""
    numbers = context.events.names
    titles = {number: context.titles.get(name, name) for number, name in kernels.items()}
    names = numbers.codes(rows["kernel_id"], lambda i: titles.get(i, "kernel ?" if i == NULL else f"kernel ? (id {i})"))
    if context.options.kernel_rename:
        known = context.strings
        marked = per_id(rows["region_name_id"], lambda i: numbers.code(known[i]) if known.get(i) else NULL)
        names = np.where(marked == NULL, names, marked)
    return names


def _full_names(context: Context, ids: Ints, names_of: Mapping[int, str]) -> tuple[Annotation, ...]:
    """Return the full names of kernels with a short title; empty if there are none."""
    code = context.events.strings.code
    full = {i: name for i, name in names_of.items() if name in context.titles}
    if not full:
        return ()
    names = per_id(ids, lambda i: code(full[i]) if i in full else NULL)
    return (where(names != NULL, "name", np.maximum(names, 0), text=True),)


def _registers(context: Context, kernels: Ints) -> tuple[Annotation, ...]:
    base = "rocpd_info_kernel_symbol"
    names = "id", *_REGISTERS
    ids, *registers = context.read(Select(f"SELECT {', '.join(names)} FROM {base}", names, base=base)).numbers
    result = []
    for shown, column in zip(_REGISTERS.values(), registers, strict=True):
        counts = dict(zip(ids.tolist(), column.tolist(), strict=True))
        result.append(optional(shown, per_id(kernels, lambda i: counts.get(i, NULL))))  # noqa: B023
    return tuple(result)
