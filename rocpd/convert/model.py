"""The event model that every trace writer consumes: tracks, slices, instants, counters and flows of one rank.

Columns are numpy arrays; times are ns on the common time line. Never reads a database, never writes a file.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from rocpd.base import NULL, Flags, Floats, Ints, frozen
from rocpd.facts.columns import TextCodes


class TrackKind(enum.IntEnum):
    """The kinds of tracks, in the order in which people look for them within a rank, or a GPU of it."""

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
        name: for people, in words that stand alone: `GPU 0 · stream 1`.
        kind: what it shows.
        title: its name below that of its agent: `stream 1`; empty: the name.
        tid: OS thread id when the track is a thread.
        unit: unit of the values when the track is a counter, may be empty; None: no counter.
        nests: slices may lie within each other (a call stack); otherwise they follow each other.
        base, lane: the track that this one is an extra lane of, by index, and which (0: itself).
        agent: id of the agent whose work it shows, None where there is none.
        line: id of the stream (or queue) whose dispatches it shows, `NULL` where unknown; None where there is none.
        sampled: OS id of the thread that its samples are of, None where they are of none.
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
        """Return the index of the track known as `key`, which is this one where there is none yet."""
        index = self._known.get(key)
        if index is None:
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
    `present` is False where a slice has none; None: all have one.
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
        """Group `values` by their `rows` (in any order, which stays within a row) for `count` rows."""
        order = np.argsort(rows, kind="stable")
        first = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=first[1:])
        return Ragged(first, values[order])

    @property
    def counts(self) -> Ints:
        """How many values each row has."""
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
        is_recorded: these are events; else they are calculated from events.
        arguments: numbers of `RankEvents.names` and `RankEvents.strings`: name and value of each argument.
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
        """Return slices that are no events; `span` has starts and ends, `category` is one for all."""
        unknown = np.full(len(track), NULL)
        return cls(track, *span, name, np.full(len(track), category), unknown, kind, annotations, is_recorded=False)

    def __len__(self) -> int:
        return len(self.start)


@frozen
class Instants:
    """Things at one point in time; the columns are those of `Slices`."""

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
    """All events of one rank; `about` says more of it than its label.

    `agents` has the names of its agents by their ids, of which `gpus` are GPUs.
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
    """Return an annotation of whole numbers that is left out where the value is NULL."""
    return where(values != NULL, name, values)


def where(present: Flags, name: str, values: Ints | Floats, text: bool = False) -> Annotation:
    """Return an annotation of the rows that have a value."""
    return Annotation(name, values, text, None if present.all() else present)
