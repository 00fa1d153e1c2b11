"""Chrome trace events: one JSON object, an event per line, ranks one after the other.

The format is Google's "Trace Event Format" (object form): X slices, i instants, C counters, M names, s and f flows. Its
times are microseconds; they are written with three decimals, so no nanosecond is lost. Each track is a thread of its
rank; threads keep the OS's id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base import Ints, Progress
from rocpd.convert.deliver import Frame, Placement, RankPart
from rocpd.convert.formats.layout import tree, write_for_viewers
from rocpd.convert.model import Annotation, Counters, Instants, RankEvents, Slices, TrackKind
from rocpd.convert.options import ConvertOptions
from rocpd.facts.columns import distinct
from rocpd.federate.federation import Federation
from rocpd.schema.rules.categories import trace_category

_FRAME = Frame(".json", b'{"displayTimeUnit":"ns","traceEvents":[\n', b",\n", b"\n]}\n")
_TRACK_TIDS = 1 << 23
"""First of the ids of tracks that are not threads; above Linux's largest tid."""
_BATCH = 1 << 13
"""Events per batch."""
_quoted = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps makes an encoder for each text


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>.json`; see `rocpd.convert.Format.write`."""
    return write_for_viewers(_of_rank, session, _FRAME, options, progress)


def _of_rank(events: RankEvents, part: RankPart) -> Iterator[bytes]:
    between = b""
    for lines in _Lines(events, part.placement).all():
        if lines:
            yield between + ",\n".join(lines).encode("utf-8", "replace")
            between = b",\n"


class _Lines:
    """The events of one rank as JSON texts."""

    def __init__(self, events: RankEvents, placement: Placement) -> None:
        self._events = events
        self._pid = placement.pid
        self._position = placement.position
        self._clock = placement.clock
        rank = placement.rank
        self._facts = {
            "rank": rank.number,
            "hostname": rank.hostname,
            "pid": rank.pid,
            "command": rank.command,
            "agents": {name: number for number, name in events.agents.items()},
        }
        self._names = list(map(_quoted, events.names.texts))
        self._categories = [
            (_quoted(trace_category(text)), f'"category":{_quoted(text)}') for text in events.categories.texts
        ]
        self._strings = list(map(_quoted, events.strings.texts))
        self._tids = [
            track.tid if track.tid is not None else _TRACK_TIDS + index for index, track in enumerate(events.tracks.all)
        ]

        self._late = _late(events.slices)

    def all(self) -> Iterator[list[str]]:
        """Yield the texts of all events, in batches of some thousand."""
        yield list(self._metadata())
        for slices in self._events.slices:
            for rows in _batches(slices.start):
                yield self._slices(slices, rows)
        for instants in self._events.instants:
            for rows in _batches(instants.time):
                yield self._instants(instants, rows)
        for counters in self._events.counters:
            for first in range(0, len(counters), _BATCH):
                yield self._counters(counters, slice(first, first + _BATCH))

    def _metadata(self) -> Iterator[str]:
        head = f'{{"ph":"M","pid":{self._pid}'
        yield f'{head},"name":"process_name","args":{{"name":{_quoted(self._events.label)}}}}}'
        yield f'{head},"name":"rank","args":{json.dumps(self._facts)}}}'
        yield f'{head},"name":"process_sort_index","args":{{"sort_index":{self._position}}}}}'
        if self._clock:
            yield f'{head},"name":"process_labels","args":{{"labels":{_quoted(str(self._clock))}}}}}'
            yield f'{head},"name":"clock","args":{json.dumps(self._clock.facts)}}}'
        in_order = [node.track for node in tree(self._events) if node.track is not None]
        overviews = [i for i, track in enumerate(self._events.tracks.all) if track.kind is TrackKind.GPU_TIME]
        for place, index in enumerate(dict.fromkeys([*overviews, *in_order])):
            track = self._events.tracks.all[index]
            if track.unit is None:
                thread = f'{head},"tid":{self._tids[index]}'
                yield f'{thread},"name":"thread_name","args":{{"name":{_quoted(track.name)}}}}}'
                yield f'{thread},"name":"thread_sort_index","args":{{"sort_index":{place}}}}}'

    def _slices(self, slices: Slices, rows: Ints) -> list[str]:
        starts = [_micro(t) for t in slices.start[rows].tolist()]
        columns = zip(
            starts,
            [_micro(t) for t in (slices.end - slices.start)[rows].tolist()],
            [self._names[i] for i in slices.name[rows].tolist()],
            [self._categories[i] for i in slices.category[rows].tolist()],
            [self._tids[i] for i in slices.track[rows].tolist()],
            self._arguments(slices, rows),
            strict=True,
        )
        pid = self._pid
        lines = [
            f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":{start},"dur":{lasts},"name":{name},"cat":{category}'
            f',"args":{{{_joined(category_args if slices.is_recorded else "", more)}}}}}'
            for start, lasts, name, (category, category_args), tid, more in columns
        ]
        return lines + self._flows(slices, rows, starts)

    def _flows(self, slices: Slices, rows: Ints, starts: Sequence[str]) -> list[str]:
        """Return both ends of flows; each binds to the slice that starts at its time on its track."""
        if (flows := slices.flows) is None:
            return []
        calls = slices is self._events.slices[0]
        lines = []
        for row, start in zip(rows.tolist(), starts, strict=True):
            for flow in flows.values[flows.first[row] : flows.first[row + 1]].tolist():
                tid = self._tids[int(slices.track[row])]
                kind = '"s"' if calls != (flow in self._late) else '"f","bp":"e"'
                where = f'"pid":{self._pid},"tid":{tid},"ts":{start}'
                lines.append(f'{{"ph":{kind},{where},"id":{flow},"name":"launch","cat":"launch"}}')
        return lines

    def _instants(self, instants: Instants, rows: Ints) -> list[str]:
        taken = _taken(rows, instants.time, instants.name, instants.category, instants.track)
        columns = zip(*taken, self._annotations(instants.annotations, rows), strict=True)
        return [
            f'{{"ph":"i","s":"t","pid":{self._pid},"tid":{self._tids[track]},"ts":{_micro(time)}'
            f',"name":{self._names[name]},"cat":{self._categories[category][0]}'
            f',"args":{{{_joined(self._categories[category][1], more)}}}}}'
            for time, name, category, track, more in columns
        ]

    def _counters(self, counters: Counters, rows: slice) -> list[str]:
        values = zip(*_taken(rows, counters.time, counters.track, counters.value), strict=True)
        tracks = self._events.tracks.all
        ends = {
            track: f'"name":{_quoted(tracks[track].name)},"args":{{{_quoted(tracks[track].unit or "value")}'
            for track in distinct(counters.track[rows]).tolist()
        }
        return [
            f'{{"ph":"C","pid":{self._pid},"ts":{_micro(time)},{ends[track]}:{_real(value)}}}}}'
            for time, track, value in values
        ]

    def _arguments(self, slices: Slices, rows: Ints) -> list[str]:
        texts = self._annotations(slices.annotations, rows)
        if slices.arguments is None:
            return texts
        names, values = slices.arguments
        for i, row in enumerate(rows.tolist()):
            span = slice(int(names.first[row]), int(names.first[row + 1]))
            pairs = zip(names.values[span].tolist(), values.values[span].tolist(), strict=True)
            more = [f"{self._names[name]}:{self._strings[value]}" for name, value in pairs]
            texts[i] = ",".join(filter(None, (texts[i], *more)))
        return texts

    def _annotations(self, annotations: Sequence[Annotation], rows: Ints) -> list[str]:
        columns = []
        for annotation in annotations:
            name = _quoted(annotation.name)
            values: list[Any] = annotation.values[rows].tolist()
            if annotation.text:
                cells = [f"{name}:{self._strings[int(value)]}" for value in values]
            elif annotation.values.dtype == np.float64:
                cells = [f"{name}:{_real(value)}" for value in values]
            else:
                cells = [f"{name}:{value}" for value in values]
            if annotation.present is not None:
                there = annotation.present[rows].tolist()
                cells = [cell if present else "" for cell, present in zip(cells, there, strict=True)]
            columns.append(cells)
        return [",".join(filter(None, cells)) for cells in zip(*columns, strict=True)] if columns else [""] * len(rows)


def _taken(rows: Ints | slice, *columns: Any) -> list[list[Any]]:
    """Return the values of some rows, column by column."""
    return [column[rows].tolist() for column in columns]


def _joined(first: str, more: str) -> str:
    return f"{first},{more}" if first and more else first or more


def _late(slices: Sequence[Slices]) -> frozenset[int]:
    """Return the flows whose call starts after the launched work (damaged times); the format needs it first."""
    ends = [(each.flows.values, np.repeat(each.start, each.flows.counts)) for each in slices if each.flows]
    if not ends:
        return frozenset()
    (calls, called), *work = ends
    ids, times = (np.concatenate([pair[i] for pair in work]) for i in (0, 1))
    a, b = np.argsort(calls), np.argsort(ids)
    return frozenset(calls[a][called[a] > times[b]].tolist())


def _batches(times: Ints) -> Iterator[Ints]:
    """Yield row numbers in order of time, equal times in row order, in batches of some thousand."""
    order = np.argsort(times, kind="stable")
    for first in range(0, len(order), _BATCH):
        yield order[first : first + _BATCH]


def _micro(ns: int) -> str:
    """Return nanoseconds as microseconds, exactly.

    >>> _micro(1071040000000007), _micro(12)
    ('1071040000000.007', '0.012')
    """
    return f"{ns // 1000}.{ns % 1000:03d}"


def _real(value: float) -> str:
    """Return a real as JSON, which knows neither infinity nor NaN."""
    return repr(value) if value - value == 0 else "null"
