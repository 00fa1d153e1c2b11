"""Events on agents: kernel dispatches, memory copies and graph launches on a track per agent and stream; their counters
and their memory.

Knows no CPU threads; `collect` links dispatches and copies to the calls that launched them. A dispatch shows its own
counter value from its start to its end; streamed (SPM) values are not shown as values of a dispatch. Memory is shown as
slices of allocations and frees, and as the held bytes per agent and level. The size of a free is not guessed if its
allocation is not in the trace; such frees are counted and reported.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, frozen
from rocpd.convert.gather.context import Columns, Context, Damage, select_events
from rocpd.convert.gather.cpu import SampleTracks
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Annotation, Counters, Slices, Track, TrackKind, optional, where
from rocpd.facts.columns import Select, TextCodes, as_text, distinct, find_rows, grouped, per_id, read_all
from rocpd.facts.memory import changes_of, freed, memory_keys
from rocpd.facts.sampled import are_sentinels, meant_unit
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.events import ALLOCATING, SCRATCH, copy_agents
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


_COLUMNS = ("agent_id", "start", "end", "address", "size", "queue_id")
_TEXTS = ("type", "level")


def allocations(context: Context) -> tuple[Slices, Counters]:
    """Return allocations and frees, and the held bytes at the end of each."""
    window = context.placement.window
    rows = _read(context, context.reader, context.damage)
    # Part of the memory held within a window was allocated before it.
    all_rows = _read(context, context.reader.unwindowed(), Damage()) if window else rows
    text = context.events.strings.texts
    tracks = context.events.tracks
    scratch = per_id(rows["level"], lambda i: text[i] == SCRATCH)
    track = np.zeros(len(scratch), np.int64)
    for flag, word in ((0, "allocations"), (1, "scratch")):
        chosen = scratch == flag
        track[chosen] = per_id(
            rows["agent_id"][chosen],
            lambda i: context.agent_track(word, i, TrackKind.MEMORY, word),  # noqa: B023
        )
    code, width = context.events.names.code, len(text)
    names = per_id(rows["type"] * width + rows["level"], lambda i: code(f"{text[i // width]} {text[i % width]}"))
    annotations = (
        optional("bytes", rows["size"]),
        optional("address", rows["address"]),
        Annotation("type", rows["type"], text=True),
        Annotation("level", rows["level"], text=True),
        optional("queue_id", rows["queue_id"]),
    )
    placed = rows | {"track": spread(tracks, track, rows["start"], rows["end"]), "name": names}
    return context.slices(placed, "memory", None, annotations), _within(_held(context, all_rows), window)


def _read(context: Context, reader: RankReader, damage: Damage) -> Columns:
    select = select_events("rocpd_memory_allocate", _COLUMNS, _TEXTS)
    piece = context.read(select, reader, damage)
    code = context.events.strings.code
    texts = (np.array([code(str(text or "?")) for text in column], np.int64) for column in piece.texts)
    columns = zip(select.names, (*piece.numbers, *texts), strict=True)
    return context.on_time_line(dict(columns), "memory allocations", damage)


def _within(counters: Counters, part: Part | None) -> Counters:
    if part is None:
        return counters
    low = NULL if part.start is None else part.start
    keep = (counters.time >= low) & ((part.end is None) | (counters.time < (part.end or 0)))
    return Counters(counters.track[keep], counters.time[keep], counters.value[keep])


def _held(context: Context, rows: Columns) -> Counters:
    """Return running sums of bytes in order of ends: a free takes back the bytes of its allocation."""
    text = context.events.strings.texts
    order = np.argsort(rows["end"], kind="stable")
    names = ("end", "type", "level", "agent_id", "address", "size", "queue_id")
    end, kind, level, agent, address, size, queue = (rows[name][order] for name in names)
    allocates = per_id(kind, lambda code: text[code] in ALLOCATING) > 0
    is_scratch = per_id(level, lambda code: text[code] == SCRATCH) > 0
    ends = freed(memory_keys(level, is_scratch, address, agent, queue), allocates)
    context.damage[Damage.UNKNOWN_FREE, "frees"] += int((~allocates & (ends < 0)).sum())

    # Tracks are in the order in which agents first hold memory.
    @functools.cache
    def track_of(agent: int, level: int) -> int:
        title = f"memory {text[level]} held"
        return context.agent_track(("held", level), agent, TrackKind.MEMORY, title, unit="bytes")

    pairs = zip(agent.tolist(), level.tolist(), allocates.tolist(), strict=True)
    track = np.array([track_of(*pair) if is_held else NULL for *pair, is_held in pairs], np.int64)
    change = changes_of(np.maximum(size, 0), allocates, ends, [track])
    return Counters(track[change.of], end[change.by], change.held.astype(np.float64))


_VALUES = Select(
    "SELECT id, event_id, pmc_id, value FROM rocpd_pmc_event WHERE sample_id IS NULL",
    ("event_id", "pmc_id"),
    ("value",),
    base="rocpd_pmc_event",
)


@frozen
class Values:
    """Counter values: event id, number of the counter in `names`, its agent or NULL, value.

    `units` maps numbers of `names` to units.
    """

    event: Ints
    counter: Ints
    agent: Ints
    value: Floats
    names: TextCodes[str]
    units: dict[int, str]

    @property
    def events(self) -> frozenset[int]:
        """Ids of the events that have values."""
        return frozenset(distinct(self.event).tolist())


def counter_values(context: Context) -> Values:
    """Read the counter values of a rank, without streamed ones."""
    names, units, known = TextCodes[str](), dict[int, str](), dict[int, int]()
    agents: dict[int, int] = {}
    for number, name, symbol, unit, agent in context.reader.rows(
        "SELECT id, name, symbol, units, agent_id FROM rocpd_info_pmc"
    ):
        known[number] = names.code(str(name or symbol or f"counter {number}"))
        units.setdefault(known[number], meant_unit(str(name), str(unit or "")) or "")
        agents[number] = agent if agent in context.events.agents else NULL
    odd = Counter[str]()
    read = read_all(context.reader, _VALUES, odd)
    del odd["value"]  # counted below, NULL included
    context.damage.add_odd("rocpd_pmc_event", odd)
    (event, pmc), (value,) = read.numbers, read.reals
    keep = ~np.isnan(value) & (event != NULL)
    context.damage[Damage.NO_VALUE, "values"] += int(np.count_nonzero(~keep))
    counter = per_id(pmc[keep], lambda i: known[i] if i in known else names.code(f"counter {i}"))
    agent = per_id(pmc[keep], lambda i: agents.get(i, NULL))
    return Values(event[keep], counter, agent, value[keep], names, units)


@frozen
class DispatchValues:
    """Sums over instances: the row of the dispatch, the number of the counter, the value."""

    row: Ints
    counter: Ints
    value: Floats


def of_dispatches(read: Values, dispatches: Dispatches) -> DispatchValues:
    """Return the values of each dispatch, summed over the instances of a counter."""
    row, known = find_rows(dispatches.event, read.event)
    count = max(1, len(read.names.texts))
    keys, group = np.unique(row[known] * count + read.counter[known], return_inverse=True)
    sums = np.bincount(group, weights=read.value[known], minlength=len(keys))
    return DispatchValues(keys // count, keys % count, sums.astype(np.float64, copy=False))


def dispatch_counters(context: Context, read: Values, sums: DispatchValues, dispatches: Dispatches) -> list[Counters]:
    """Return a counter track per agent and counter: the value of a dispatch from its start, 0 from its end."""
    agents = dispatches.agent[sums.row]
    start, end = dispatches.slices.start[sums.row], dispatches.slices.end[sums.row]
    result = []
    for (agent, counter), rows in grouped([agents, sums.counter]):
        name = context.counter_track(agent, read.names.texts[counter])
        shown = Track(name, TrackKind.COUNTER, unit=read.units.get(counter, ""), agent=agent)
        track = context.events.tracks.index(("pmc", agent, counter), shown)
        rows = rows[np.lexsort((end[rows], start[rows]))]
        time, value = _steps(start[rows], end[rows], sums.value[rows])
        result.append(Counters(np.full(len(time), track), time, value))
    return result


def as_annotations(read: Values, sums: DispatchValues, count: int) -> tuple[Annotation, ...]:
    """Return the values as annotations of `count` dispatches, one per counter."""
    result = []
    for counter in distinct(sums.counter).tolist():
        rows = sums.counter == counter
        value, present = np.zeros(count), np.zeros(count, bool)
        value[sums.row[rows]], present[sums.row[rows]] = sums.value[rows], True
        result.append(where(present, read.names.texts[counter], value))
    return tuple(result)


def sample_counters(
    context: Context, rows: Columns, tracks: SampleTracks, read: Values, dispatches: Dispatches
) -> list[Counters]:
    """Return the values of samples as counters on their tracks; counts values without a shown event."""
    _, of_dispatch = find_rows(dispatches.event, read.event)
    sample, of_sample = _samples_of_values(read, rows["event_id"], rows["track_id"], tracks)
    context.damage[Damage.NO_EVENT, "values"] += int(np.count_nonzero(~of_dispatch & ~of_sample))
    value = read.value[of_sample]
    stands_for_none = np.zeros(len(value), bool)
    for (number,), at in grouped([read.counter[of_sample]]):
        stands_for_none[at] = are_sentinels(value[at], read.units.get(number))
    context.damage[Damage.NO_VALUE, "values"] += int(np.count_nonzero(stands_for_none))
    row = np.flatnonzero(of_sample)[~stands_for_none]
    points = {"start": rows["timestamp"][sample[row]], "track": rows["track_id"][sample[row]], "row": row}
    points |= {"counter": read.counter[row], "agent": read.agent[row]}
    return _on_tracks(context, read, context.on_time_line(points, "samples"), tracks)


def _samples_of_values(read: Values, event: Ints, track: Ints, tracks: SampleTracks) -> tuple[Ints, Flags]:
    """Return the sample of each value, and whether it has one, by the events and tracks of samples.

    If an event has several samples, a value belongs to the one whose track has the counter's name, if there is one.
    """
    codes = {name: code for code, name in enumerate(read.names.texts)}
    called = per_id(track, lambda i: codes.get(tracks.get(i, ("track ?", None))[0], NULL))
    has_track = np.isin(read.counter, called)
    width = len(read.names.texts) + 1
    by_name, is_named = find_rows(event * width + called, read.event * width + read.counter)
    by_event, is_known = find_rows(event, read.event)
    return np.where(has_track, by_name, by_event), np.where(has_track, is_named, is_known)


def _on_tracks(context: Context, read: Values, points: Columns, tracks: SampleTracks) -> list[Counters]:
    """Return a counter for each track, name and agent; if several agents share both, titles include the agent."""
    result = []
    groups = list(grouped([points[name] for name in ("track", "counter", "agent")]))
    named_so = {(track_id, read.names.texts[counter]) for (track_id, counter, _), _ in groups}
    agents = Counter((track_id, counter) for (track_id, counter, _), _ in groups)
    for (track_id, counter, agent), chosen in groups:
        base, name = tracks.get(track_id, ("track ?", None))[0], read.names.texts[counter]
        # A track may have the name of one of its counters.
        title = name if (track_id, base) in named_so else f"{base} · {name}"
        title = f"{context.agent(agent)} · {title}" if agents[track_id, counter] > 1 else title
        unit = read.units.get(counter, "")
        shown = Track(title, TrackKind.SAMPLES, unit=unit, agent=None if agent == NULL else agent)
        track = context.events.tracks.index(("pmc", "sample", track_id, counter, agent), shown)
        rows = chosen[np.argsort(points["start"][chosen], kind="stable")]
        result.append(Counters(np.full(len(rows), track), points["start"][rows], read.value[points["row"][rows]]))
    return result


def _steps(start: Ints, end: Ints, value: Floats) -> tuple[Ints, Floats]:
    """Return intervals, sorted by start, as steps; of dispatches that overlap, the one that started last is shown."""
    if np.all(start[1:] >= np.maximum.accumulate(end)[:-1]):
        return np.stack([start, end], 1).ravel(), np.stack([value, np.zeros(len(value))], 1).ravel()
    steps: list[tuple[int, float]] = []
    running: list[tuple[int, float]] = []

    def finish(until: int | None) -> None:
        while running and (until is None or min(running)[0] <= until):
            first = min(range(len(running)), key=lambda i: running[i][0])
            time, _ = running.pop(first)
            if first == len(running):
                steps.append((time, running[-1][1] if running else 0.0))

    for s, e, v in zip(start.tolist(), end.tolist(), value.tolist(), strict=True):
        finish(s)
        running.append((e, v))
        steps.append((s, v))
    finish(None)
    return np.array([time for time, _ in steps], np.int64), np.array([v for _, v in steps], np.float64)
