"""The time line that a page draws, tile by tile: states of ranks over time, the rows inside of a rank, one slice.

Times are nanoseconds from the start of the time line of the whole job. A rank is read once, by the process that answers
for it, which keeps the last ranks it drew. Derives nothing: parts of time come from `facts`, rows and slices from
traces (`convert`). Slices narrower than a pixel are merged, so that the size of an answer depends on pixels, not on
events.
"""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from rocpd.base import NULL, Answer, Floats, Ints, UsageError, frozen
from rocpd.base.texts import visible
from rocpd.convert.deliver import Placement
from rocpd.convert.formats.layout import titles_of_job, tree
from rocpd.convert.gather.collect import collect_for_viewers
from rocpd.convert.gather.context import Damage
from rocpd.convert.gather.cpu import MARKED, STEP
from rocpd.convert.model import Annotation, RankEvents, Slices, TrackKind
from rocpd.convert.options import ConvertOptions
from rocpd.facts.columns import EqualColumns, distinct
from rocpd.facts.regions import Steps
from rocpd.facts.units import windows
from rocpd.federate.run.rank_reader import RankReader, RankTask, run_task
from rocpd.federate.run.shares import ConnectionCache
from rocpd.schema.rules.categories import domain_of
from rocpd.session import Session
from rocpd.table.cell import one_line
from rocpd.table.palette import colour_of
from rocpd.view.outlines import BusyTimes, CommonLine, as_far_as_soon, busy_times, line_of, shares_text, time_in_states

_MOST_PIXELS = 4000
_MOST_DEPTH = 40  # depth of nested calls that are drawn
_HELD_RANKS = 3  # ranks that a process keeps: about 100 bytes per event
_MOST_LINKS, _MOST_VALUES = 8, 60
_LONGEST = 2000  # characters of a value
_OWN_COLOURS = {STEP: "MARKERS", MARKED: "MARKERS", "graph": "KERNELS"}
_SAID = {
    "MARKERS": "markers",
    "KERNELS": "graphs",
    "GRAPH": "graphs",
    "MEMORY_ALLOCATIONS": "allocations",
    "SCRATCH_MEMORY": "scratch",
    "PYTHON": "Python",
    "TORCH": "operators of PyTorch",
}
_VIEWS = ("regions", "kernels", "memory_copies")  # views of the first batches of a rank


@frozen
class DrawnLane(EqualColumns):
    """The slices of one row of a rank, in order of start.

    Args:
        start, end: [ns on the common time line].
        name, colour: numbers of texts of the rank.
        depth: number of slices around each slice.
        batch, row: place of each slice among the events of the rank.
    """

    start: Ints
    end: Ints
    name: Ints
    colour: Ints
    depth: Ints
    batch: Ints
    row: Ints


DrawnCurve: TypeAlias = tuple[Ints, Floats]
"""Times [ns on the common time line] and values of a counter; each value holds until the next."""


@frozen
class OpenRank:
    """The rows of an expanded rank on a page.

    Args:
        events: all events that are drawn.
        steps: on the common time line.
        rows: `title`, `indent` and `kind` of each, `depth` of slices, `unit` and `most` of counters.
        lanes, curves: content of rows, by their numbers.
        colours: meaning of each colour, empty if no slice has it, and the colour.
    """

    events: RankEvents
    steps: Steps
    rows: list[dict[str, Any]]
    lanes: dict[int, DrawnLane]
    curves: dict[int, DrawnCurve]
    colours: list[tuple[str, str]]


@dataclass
class _Read:
    """The part of a job that a process has read."""

    line: CommonLine
    busy: dict[int, list[BusyTimes]] = field(default_factory=dict)
    open: OrderedDict[int, OpenRank] = field(default_factory=OrderedDict)
    titles: dict[str, str] | None = None


_READ: WeakKeyDictionary[Session, _Read] = WeakKeyDictionary()


def _read(session: Session) -> _Read:
    if session not in _READ:
        _READ[session] = _Read(line_of(session))
    return _READ[session]


def _of_rank(session: Session, number: int, work: Callable[[RankReader], Answer]) -> Answer:
    """Run `work` on one rank in this process.

    Raises:
        UsageError: the rank does not exist.
    """
    place = line_of(session).place(number)
    with contextlib.closing(ConnectionCache()) as cache:
        tables = session.in_rows.rank_tables(number)
        return run_task(RankTask(place.rank, tables, work, session.job.files.facts), cache.lend)


@frozen
class TakenTile:
    """A rank, from one time to another [ns from the start of the time line], in `pixels` pixels."""

    rank: int
    start: int
    end: int
    pixels: int

    def edges(self, origin: int) -> Ints:
        """Return the edges of the pixels [ns of the common time line]."""
        count = min(max(self.pixels, 1), _MOST_PIXELS)
        return origin + np.linspace(self.start, max(self.end, self.start + 1), count + 1).astype(np.int64)


@frozen
class StatesTiles:
    """The work of the GPUs of several ranks from one time to another, in `pixels` pixels, for ranks read soon enough.

    The answer has `ranks`, see `as_far_as_soon`: by rank `shares`, as `shares_text`, and their `start` and `end` [ns].
    A page shows these, and asks for the other ranks again.
    """

    ranks: tuple[int, ...]
    start: int
    end: int
    pixels: int

    def of(self, session: Session) -> dict[str, Any]:
        """Return the answer for a job; errors of the first rank."""
        return {"ranks": as_far_as_soon(self.ranks, partial(self._of_rank, session))}

    def _of_rank(self, session: Session, number: int) -> dict[str, Any]:
        read, to_line = _read(session), line_of(session).place(number).shift.to_line
        if number not in read.busy:
            agents = _of_rank(session, number, partial(busy_times, windows(session)))
            read.busy[number] = [agent.moved(to_line) for agent in agents]
        agents, edges = read.busy[number], TakenTile(number, self.start, self.end, self.pixels).edges(read.line.origin)
        shares = time_in_states(agents, edges) / (np.maximum(np.diff(edges), 1) * max(len(agents), 1))
        return {"shares": shares_text(shares), "start": self.start, "end": self.end}


@frozen
class RowsTile:
    """The rows inside of a rank, with their slices.

    The answer has `rows` (`title`, `indent`, `kind`, `depth`: number of lines of slices; `unit` of counters), each with
    columns of its slices (`start`, `end` [ns], `name`, `colour`: numbers in `names` and `colours`, `depths`, `count`:
    number of merged slices, and `id`, that of the longest), or its `value` by pixel; `colours` are pairs of meaning,
    empty if no slice has it, and colour.
    """

    tile: TakenTile

    def of(self, session: Session) -> dict[str, Any]:
        """Return the answer for a job."""
        read, tile = _read(session), self.tile
        rank = _open(session, tile.rank)
        edges = tile.edges(read.line.origin)
        names: dict[int, int] = {}
        rows = []
        for number, row in enumerate(rank.rows):
            drawn: dict[str, Any] = {}
            if number in rank.curves:
                drawn = {"value": _values(rank.curves[number], edges)}
            elif number in rank.lanes:
                drawn = _slices(rank.lanes[number], edges)
                drawn["name"] = [names.setdefault(name, len(names)) for name in drawn["name"]]
                for side in ("start", "end"):
                    drawn[side] = [time - read.line.origin for time in drawn[side]]
            rows.append({**row, **drawn})
        texts = rank.events.names.texts
        return {"rows": rows, "names": [one_line(texts[name]) for name in names], "colours": rank.colours}


def _values(curve: DrawnCurve, edges: Ints) -> list[float | None]:
    """Return the highest value of a counter in each pixel; None before the first."""
    times, known = curve
    at = np.searchsorted(times, edges, side="right").tolist()
    values = np.append(-np.inf, known)
    highest = (float(values[low : high + 1].max()) for low, high in pairwise(at))
    return [round(value, 6) if math.isfinite(value) else None for value in highest]


def _slices(lane: DrawnLane, edges: Ints) -> dict[str, Any]:
    """Return the slices between edges; in each pixel narrower ones are merged, under the name of the longest."""
    low, high = int(edges[0]), int(edges[-1])
    here = np.flatnonzero((lane.start < high) & (lane.end >= low))
    shown, length = lane.take(here), lane.end[here] - lane.start[here]
    pixel = np.searchsorted(edges, shown.start, side="right")
    is_wide = length >= (high - low) / max(len(edges) - 1, 1)
    alone = len(edges) * (_MOST_DEPTH + 1) + np.arange(len(here))
    group = np.where(is_wide, alone, pixel * (_MOST_DEPTH + 1) + shown.depth)
    order = np.lexsort((-length, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    longest = order[first]
    ends = np.maximum.reduceat(shown.end[order], first) if len(first) else shown.end[:0]
    starts = np.minimum.reduceat(shown.start[order], first) if len(first) else shown.start[:0]
    counts = np.diff(np.append(first, len(order)))
    drawn = {"start": starts, "end": ends, "name": shown.name[longest], "colour": shown.colour[longest]}
    drawn |= {"depths": shown.depth[longest], "count": counts, "id": here[longest]}
    return {name: column.tolist() for name, column in drawn.items()}


def _open(session: Session, number: int) -> OpenRank:
    """Return the rows of a rank, read unless they are kept; few ranks are kept."""
    read = _read(session)
    if read.titles is None:
        read.titles = titles_of_job(session.in_rows)
    if number not in read.open:
        while len(read.open) >= _HELD_RANKS:
            read.open.popitem(last=False)
        options = ConvertOptions(Path(), annotate_args=True, annotate_pmc=True)
        read.open[number] = _of_rank(session, number, partial(_rows, read.line.place(number), options, read.titles))
    read.open.move_to_end(number)
    return read.open[number]


def _rows(place: Placement, options: ConvertOptions, titles: dict[str, str], reader: RankReader) -> OpenRank:
    events, steps = collect_for_viewers(reader, place, options, Damage(), titles)
    colours: dict[str, int] = {}
    slices = DrawnLane.joined([_lane(events, number, colours) for number in range(len(events.slices))])
    track = np.concatenate([batch.track for batch in events.slices])
    rows: list[dict[str, Any]] = []
    lanes: dict[int, DrawnLane] = {}
    curves: dict[int, DrawnCurve] = {}
    indents: list[int] = []
    for node in tree(events):
        indents.append(0 if node.parent is None else indents[node.parent] + 1)
        shown = None if node.track is None else events.tracks.all[node.track]
        if shown and shown.kind is TrackKind.SAMPLES:
            continue
        row = {
            "title": visible(node.title),
            "indent": indents[-1],
            "kind": shown.kind.name.lower() if shown else "group",
        }
        if shown and shown.unit is not None:
            _, values = curves[len(rows)] = _curve(events, node.track)
            row |= {"unit": shown.unit, "most": float(np.max(values, initial=0))}
        elif shown:
            lane = slices.take(np.flatnonzero(track == node.track))
            lane = lane.take(np.lexsort((-lane.end, lane.start)))
            lanes[len(rows)] = lane = _with_depths(lane) if shown.nests else lane
            row["depth"] = int(lane.depth.max(initial=0)) + 1
        rows.append(row)
    rows = rows[:-1] if rows and rows[-1]["kind"] == "group" else rows  # the group of samples, which are not drawn
    used = {code for lane in lanes.values() for code in distinct(lane.colour).tolist()}
    said = {name: _SAID.get(name, name) if code in used else "" for name, code in colours.items()}
    return OpenRank(events, steps, rows, lanes, curves, [(said[name], colour_of(name).hex) for name in colours])


def _lane(events: RankEvents, number: int, colours: dict[str, int]) -> DrawnLane:
    """Return all slices of a batch of events; adds names of new colours to `colours`."""
    batch = events.slices[number]
    of_batch, texts = batch.kind, events.kinds.texts
    if of_batch is None:
        of_batch = batch.category
        texts = [_OWN_COLOURS.get(text) or domain_of(text) for text in events.categories.texts]
    codes = np.array([colours.setdefault(text, len(colours)) for text in texts], np.int64)
    zero = np.zeros(len(batch), np.int64)
    colour = codes[of_batch] if len(batch) else zero
    return DrawnLane(batch.start, batch.end, batch.name, colour, zero, zero + number, np.arange(len(batch)))


def _curve(events: RankEvents, track: int | None) -> DrawnCurve:
    """Return the values of a counter track."""
    rows = [(batch, batch.track == track) for batch in events.counters]
    time, value = np.concatenate([b.time[of] for b, of in rows]), np.concatenate([b.value[of] for b, of in rows])
    order = np.argsort(time, kind="stable")
    return time[order], value[order]


def _with_depths(lane: DrawnLane) -> DrawnLane:
    """Return nested slices of a row with the number of slices around each."""
    open_until: list[int] = []
    depths = []
    for start, end in zip(lane.start.tolist(), lane.end.tolist(), strict=True):
        while open_until and open_until[-1] <= start:
            open_until.pop()
        depths.append(min(len(open_until), _MOST_DEPTH - 1))
        open_until.append(end)
    return replace(lane, depth=np.array(depths, np.int64))


@frozen
class SliceDetails:
    """All data on one slice: a row of a rank and its `id` there.

    The answer has `name`, `start`, `end` [ns], `step`, `values` (name and text), `linked` (`text`, `row`, `id`,
    `start`, `end` of the launching call, or of the work that a call launched), and `sql` that shows its row.
    """

    rank: int
    row: int
    id: int

    def of(self, session: Session) -> dict[str, Any]:
        """Return the answer for a job.

        Raises:
            UsageError: the slice does not exist.
        """
        line, rank = line_of(session), _open(session, self.rank)
        lane = rank.lanes.get(self.row)
        if lane is None or not 0 <= self.id < len(lane.start):
            raise UsageError("there is no such slice")
        batch, row = int(lane.batch[self.id]), int(lane.row[self.id])
        slices, start, end = rank.events.slices[batch], int(lane.start[self.id]), int(lane.end[self.id])
        linked = list(_linked(rank, batch, row))
        called = next((at for at, _, _ in linked if batch != 0), start)
        step = next((number for number, (low, high) in rank.steps.items() if low <= called < high), None)
        return {
            "name": one_line(rank.events.names.texts[int(lane.name[self.id])]),
            "category": one_line(rank.events.categories.texts[int(slices.category[row])]),
            "start": start - line.origin,
            "end": end - line.origin,
            "step": step,
            "values": [
                [one_line(name), one_line(text)[:_LONGEST]] for name, text in _values_of(rank.events, slices, row)
            ],
            "linked": [
                {"text": "launched by" if batch else "launches", **_place(rank, at, *where), "start": at - line.origin}
                for at, *where in linked[:_MOST_LINKS]
            ],
            "sql": self._sql(line.place(self.rank), rank.events, slices, row),
        }

    def _sql(self, place: Placement, events: RankEvents, slices: Slices, row: int) -> str | None:
        number = next((number for number, batch in enumerate(events.slices) if batch is slices), -1)
        if not 0 <= number < len(_VIEWS):
            return None
        at = place.shift.to_clock(int(slices.start[row]))
        return f"select *\nfrom {_VIEWS[number]}\nwhere rank = {self.rank} and start between {at - 1} and {at + 1}"


def _values_of(events: RankEvents, slices: Slices, row: int) -> Iterator[tuple[str, str]]:
    """Yield name and text of annotations and arguments of a slice."""
    for each in slices.annotations:
        if each.name != "stack_id" and (each.present is None or each.present[row]):
            yield each.name, _text(events, each, row)
    if slices.arguments:
        names, values = slices.arguments
        for at in range(*names.first[row : row + 2].tolist()[:2]):
            yield events.names.texts[int(names.values[at])], events.strings.texts[int(values.values[at])]


def _text(events: RankEvents, annotation: Annotation, row: int) -> str:
    value = annotation.values[row]
    if annotation.text:
        return events.strings.texts[int(value)]
    return f"{value:,}" if annotation.values.dtype.kind == "i" else f"{value:,.4g}"


def _linked(rank: OpenRank, batch: int, row: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, batch and row of the slices that flows link to a slice: its launching call, or work of a call."""
    if (flows := rank.events.slices[batch].flows) is None:
        return
    wanted = flows.values[flows.first[row] : flows.first[row + 1]][:_MOST_LINKS]
    for other in (1, 2) if batch == 0 else (0,):
        slices = rank.events.slices[other]
        if slices.flows is not None:
            at = np.flatnonzero(np.isin(slices.flows.values, wanted))
            for linked in (np.searchsorted(slices.flows.first, at, side="right") - 1).tolist():
                yield int(slices.start[linked]), other, linked


def _place(rank: OpenRank, at: int, batch: int, row: int) -> dict[str, Any]:
    """Return the name of a slice, its length, and the place where it is drawn."""
    slices = rank.events.slices[batch]
    for number, lane in rank.lanes.items():
        low, high = np.searchsorted(lane.start, [at, at + 1])
        for position in range(int(low), int(high)):
            if (lane.batch[position], lane.row[position]) == (batch, row):
                name = one_line(rank.events.names.texts[int(slices.name[row])])
                return {"name": name, "row": number, "id": position, "length": int(slices.end[row] - at)}
    return {"name": "?", "row": NULL, "id": NULL, "length": 0}
