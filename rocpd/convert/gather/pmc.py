"""Counter values: those of dispatches as counter tracks per agent and counter, those of samples on their track.

A dispatch shows its own value from its start to its end. Streamed (SPM) values are not shown as values of a dispatch.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, frozen
from rocpd.convert.gather.context import Columns, Context, Damage
from rocpd.convert.gather.cpu import SampleTracks
from rocpd.convert.gather.gpu import Dispatches
from rocpd.convert.model import Annotation, Counters, Track, TrackKind, where
from rocpd.facts.columns import Select, TextCodes, distinct, find_rows, grouped, per_id, read_all
from rocpd.facts.sampled import are_sentinels, meant_unit

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


def values(context: Context) -> Values:
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
    stands_for_none = _sentinels(read, of_sample)
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


def _sentinels(read: Values, of_sample: Flags) -> Flags:
    """Whether each value of a sample is a sentinel for a missing value."""
    value, counter = read.value[of_sample], read.counter[of_sample]
    is_none = np.zeros(len(value), bool)
    for (number,), rows in grouped([counter]):
        is_none[rows] = are_sentinels(value[rows], read.units.get(number))
    return is_none


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
