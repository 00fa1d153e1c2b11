"""The event model for the writers of traces: tracks, slices, instants, counters and flows of one rank.

Columns are numpy arrays; times are ns on the common time line. Reads no database and writes no file.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, frozen
from rocpd.facts.columns import TextCodes


class TrackKind(enum.IntEnum):
    """The kinds of tracks, in their order within a rank, or a GPU of it."""

    GPU_TIME = enum.auto()
    STEPS = enum.auto()
    THREAD = enum.auto()
    STREAM = enum.auto()
    GRAPHS = enum.auto()
    MARKED = enum.auto()
    WAITING = enum.auto()
    COPIES = enum.auto()
    MEMORY = enum.auto()
    COUNTER = enum.auto()
    SAMPLES = enum.auto()


@frozen
class Track:
    """One time line.

    Args:
        name: complete name for people: `GPU 0 · stream 1`.
        kind: kind of its events.
        title: name below the group of its agent: `stream 1`; empty: the name.
        tid: OS thread id if the track is a thread.
        unit: unit of the values if the track is a counter, may be empty; None: no counter.
        nests: whether slices may lie within each other (a call stack); otherwise they follow each other.
        base, lane: index of the track that this one is an extra lane of, and the number of the lane (0: itself).
        agent: id of the agent whose work it shows, None without an agent.
        line: id of the stream (or queue) whose dispatches it shows, `NULL` if unknown; None without dispatches.
        sampled: OS id of the thread of its samples, None without one.
    """

    name: str
    kind: TrackKind
    title: str = ""
    tid: int | None = None
    unit: str | None = None
    nests: bool = False
    base: int = 0
    lane: int = 0
    agent: int | None = None
    line: int | None = None
    sampled: int | None = None


class Tracks:
    """The tracks of one rank, in order of appearance."""

    def __init__(self) -> None:
        self.all: list[Track] = []
        self._known: dict[Hashable, int] = {}

    def index(self, key: Hashable, track: Track) -> int:
        """Return the index of the track known as `key`; adds `track` if there is none yet."""
        if (index := self._known.get(key)) is None:
            index = self._known[key] = len(self.all)
            self.all.append(track if track.lane else replace(track, base=index))
        return index

    def lane(self, base: int, lane: int) -> int:
        """Return the index of the extra lane number `lane` of track `base`; lane 0 is the track itself."""
        if lane == 0:
            return base
        of = self.all[base]
        title = of.title and f"{of.title} ({lane + 1})"
        name = f"{of.name} ({lane + 1})"
        track = Track(name, of.kind, title, nests=of.nests, base=base, lane=lane, agent=of.agent)
        return self.index((base, "lane", lane), track)


@frozen
class Annotation:
    """One named value per slice.

    `values` are whole numbers, floating-point numbers, or numbers of `RankEvents.strings` (`text`).
    `present` is False for slices without a value; None: all have one.
    """

    name: str
    values: Ints | Floats
    text: bool = False
    present: Flags | None = None


@frozen
class Ragged:
    """Any number of values per row: row i has `values[first[i]:first[i + 1]]`."""

    first: Ints
    values: Ints

    @staticmethod
    def of(rows: Ints, values: Ints, count: int) -> Ragged:
        """Group `values` by their `rows` for `count` rows; values of a row keep their order."""
        order = np.argsort(rows, kind="stable")
        first = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=first[1:])
        return Ragged(first, values[order])

    @property
    def counts(self) -> Ints:
        """The number of values of each row."""
        return np.diff(self.first)


@frozen
class Slices:
    """Things that last, one row each.

    Args:
        track: index of the track.
        start, end: [ns], end >= start.
        name: number of the name in `RankEvents.names`.
        category: number in `RankEvents.categories`.
        stack: stack_id of the event, NULL where unknown.
        kind: number in `RankEvents.kinds` of the kind of work, by which viewers colour it; None: they colour by name.
        annotations: named values.
        flows: flow ids that start or end here; each id occurs on two slices of the rank.
        is_recorded: whether these are events; else they are calculated from events.
        arguments: name and value of each argument, as numbers of `RankEvents.names` and `RankEvents.strings`.
    """

    track: Ints
    start: Ints
    end: Ints
    name: Ints
    category: Ints
    stack: Ints
    kind: Ints | None = None
    annotations: tuple[Annotation, ...] = ()
    flows: Ragged | None = None
    arguments: tuple[Ragged, Ragged] | None = None
    is_recorded: bool = True

    @classmethod
    def calculated(
        cls,
        track: Ints,
        span: tuple[Ints, Ints],
        name: Ints,
        category: int,
        kind: Ints | None = None,
        annotations: tuple[Annotation, ...] = (),
    ) -> Slices:
        """Return slices that are not recorded; `span` has starts and ends, `category` applies to all."""
        unknown = np.full(len(track), NULL)
        return cls(track, *span, name, np.full(len(track), category), unknown, kind, annotations, is_recorded=False)

    def __len__(self) -> int:
        return len(self.start)


@frozen
class Instants:
    """Events at one point in time; the columns are those of `Slices`."""

    track: Ints
    time: Ints
    name: Ints
    category: Ints
    annotations: tuple[Annotation, ...] = ()

    def __len__(self) -> int:
        return len(self.time)


@frozen
class Counters:
    """Values of counter tracks, in time order per track; each holds until the next."""

    track: Ints
    time: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.time)


@dataclass
class RankEvents:
    """All events of one rank; `about` adds details to its label.

    `agents` has the names of its agents by their ids; `gpus` are the ids of GPUs.
    """

    rank: int
    label: str
    about: str = ""
    agents: dict[int, str] = field(default_factory=dict)
    gpus: list[int] = field(default_factory=list)
    tracks: Tracks = field(default_factory=Tracks)
    names: TextCodes[str] = field(default_factory=TextCodes)
    categories: TextCodes[str] = field(default_factory=TextCodes)
    strings: TextCodes[str] = field(default_factory=TextCodes)
    kinds: TextCodes[str] = field(default_factory=TextCodes)
    slices: list[Slices] = field(default_factory=list)
    instants: list[Instants] = field(default_factory=list)
    counters: list[Counters] = field(default_factory=list)


def optional(name: str, values: Ints) -> Annotation:
    """Return an annotation of whole numbers, without rows whose value is NULL."""
    return where(values != NULL, name, values)


def where(present: Flags, name: str, values: Ints | Floats, text: bool = False) -> Annotation:
    """Return an annotation of the rows that have a value."""
    return Annotation(name, values, text, None if present.all() else present)
