"""Owns the vocabulary in which a stretch of a rank's life is described before it has times and ids.

A template is laid out once and stamped out for every step. Holds no clock, no randomness, no SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias

from rocpd.base.frozen import frozen
from rocpd.simulator.kernels import Kernel
from rocpd.simulator.layout import GroupKind


class Time(NamedTuple):
    """A point in time, `fixed` ns after an anchor: anchor 0 starts the template, anchor n + 1 is what op n gives."""

    anchor: int
    fixed: int = 0

    def later(self, ns: int) -> Time:
        """Return the time `ns` nanoseconds later."""
        return self._replace(fixed=self.fixed + ns)


class LaneRun(NamedTuple):
    """A piece of work by its lane and its position there: as a start when it starts, as an end when it ends."""

    lane: int
    position: int


class LaneEnd(NamedTuple):
    """When the first pieces of work of a lane, up to the one at `position`, are done."""

    lane: int
    position: int


Term: TypeAlias = Time | LaneEnd
Moment: TypeAlias = Time | LaneRun


@dataclass
class Lane:
    """Device work of one stream between two waits: each piece starts when it is launched and the one before is done.

    Args:
        start: nothing starts earlier.
        scales: whether the pieces take longer on a slow GPU.
        ready: when each piece has been launched.
        lengths: how long each takes on a GPU of usual speed [ns].
    """

    start: Time
    scales: bool = True
    ready: list[Time] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def add(self, ready: Time, ns: int) -> int:
        """Append a piece of work; return its position."""
        self.ready.append(ready)
        self.lengths.append(ns)
        return len(self.lengths) - 1


class ExchangeKind(StrEnum):
    """What ranks do together."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    BARRIER = "barrier"
    SEND = "send"
    RECEIVE = "receive"


@frozen
class After:
    """Op: the latest of its terms."""

    terms: tuple[Term, ...]


@frozen
class Exchange:
    """Op: when this rank's part of an exchange ends, which starts at anchor `start`.

    Args:
        start: anchor at which the kernel of this rank starts.
        kind: what is done.
        group: the kind of group that does it; the stages of a pipeline exchange with a neighbour.
        size: bytes.
        peer: stages to the partner of a send or receive, -1 or 1.
        connects: whether the group sets up its connections first, as its first exchange does.
    """

    start: int
    kind: ExchangeKind
    group: GroupKind
    size: int
    peer: int = 0
    connects: bool = False


class Arg(NamedTuple):
    """One argument of an API call."""

    type: str
    name: str
    value: str
    extdata: str = "{}"


@dataclass
class HostRegion:
    """An API call or marker range.

    `parent` is the index of the enclosing region or -1; `jitter` by what part, at most, it ends earlier.
    """

    name: str
    category: str
    thread: int
    parent: int
    start: Time
    end: Time
    text: str | None = None
    args: tuple[Arg, ...] = ()
    jitter: float = 0.0


@frozen
class Dispatch:
    """A kernel run.

    `launcher` is the index of the API region; `marker` the enclosing marker's text; `counters` the numbers of
    those that have a value; `graph` names executable and node.
    """

    kernel: Kernel
    stream: int
    thread: int
    launcher: int
    marker: str
    start: Moment
    end: Moment
    jitter: float
    counters: tuple[int, ...] = ()
    graph: tuple[int, int] | None = None


@frozen
class Copy:
    """A copy; `route` holds source and target, H for host and D for device; `size` is in bytes."""

    route: str
    size: int
    thread: int
    launcher: int
    marker: str
    start: Moment
    end: Moment
    jitter: ClassVar[float] = 0.1


@frozen
class Allocation:
    """An allocation or free. `slot` numbers the address; `size` is in bytes, 0 for frees.

    What `leaks` is never freed: every step has it at another address.
    """

    type: str
    level: str
    size: int
    slot: int
    thread: int
    launcher: int
    start: Time
    end: Time
    leaks: bool = False
    jitter: ClassVar[float] = 0.3


@frozen
class Sample:
    """A point on track `track` (index into `samples.TRACKS`); `text` is the message of a mark."""

    track: int
    start: Time
    text: str | None = None
    jitter: ClassVar[float] = 0.0

    @property
    def end(self) -> Time:
        """A point has no length."""
        return self.start


@frozen
class Graph:
    """A launch of an executable graph, from its first kernel to its last."""

    exec_id: int
    count: int
    thread: int
    launcher: int
    start: Moment
    end: Moment
    jitter: ClassVar[float] = 0.0


@dataclass
class Template:
    """A laid-out stretch: rows by kind, and the ops and lanes that give them their times.

    The last op is when the stretch is over.
    """

    regions: list[HostRegion] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    ops: list[After | Exchange] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[Sequence[Any], ...]:
        """The rows of each kind, in the order in which a step is written."""
        return self.regions, self.dispatches, self.copies, self.allocations, self.graphs, self.samples

    @property
    def events(self) -> int:
        """Dispatches and regions: what `events_per_rank` counts."""
        return len(self.regions) + len(self.dispatches)
