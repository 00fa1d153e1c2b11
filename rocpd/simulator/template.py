"""Owns the vocabulary in which a stretch of a rank's life is described before it has times and ids.

A template is laid out once and stamped out for every step. Holds no clock, no randomness, no SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple


class Time(NamedTuple):
    """A point in time relative to an anchor.

    It is `anchor + fixed + scaled * stretch`, in ns, where `stretch` (at least 1) is how slowly the
    GPU of this rank worked in this segment of this step. Anchors: 3 * segment is its start, 3 * segment + 1
    and + 2 are start and end of its all-reduce.
    """

    anchor: int
    fixed: int = 0
    scaled: int = 0

    def later(self, ns: int) -> Time:
        """Return the time `ns` nanoseconds later."""
        return self._replace(fixed=self.fixed + ns)


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


@dataclass(frozen=True)
class Dispatch:
    """A kernel run.

    `launcher` is the index of the API region; `marker` the enclosing marker's text; `graph` names executable and node.
    """

    kernel: str
    stream: int
    thread: int
    launcher: int
    marker: str
    start: Time
    end: Time
    jitter: float
    counted: bool = False
    graph: tuple[int, int] | None = None


@dataclass(frozen=True)
class Copy:
    """A copy; `route` holds source and target, H for host and D for device; `size` is in bytes."""

    route: str
    size: int
    thread: int
    launcher: int
    marker: str
    start: Time
    end: Time
    jitter: ClassVar[float] = 0.1


@dataclass(frozen=True)
class Allocation:
    """An allocation or free. `slot` numbers the address; `size` is in bytes, 0 for frees."""

    type: str
    level: str
    size: int
    slot: int
    thread: int
    launcher: int
    start: Time
    end: Time
    jitter: ClassVar[float] = 0.3


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Graph:
    """A launch of an executable graph, from its first kernel to its last."""

    exec_id: int
    count: int
    thread: int
    launcher: int
    start: Time
    end: Time
    jitter: ClassVar[float] = 0.0


@dataclass
class Template:
    """A laid-out stretch: rows by kind, and per segment what the timing of all ranks needs.

    `nominal` is the length [ns] of each segment at stretch 1, `reduce` the bytes of its all-reduce
    (0: none), `waits` whether the next segment starts only after all all-reduces so far.
    """

    regions: list[HostRegion] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    nominal: list[int] = field(default_factory=list)
    reduce: list[int] = field(default_factory=list)
    waits: list[bool] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[Sequence[Any], ...]:
        """The rows of each kind, in the order in which a step is written."""
        return self.regions, self.dispatches, self.copies, self.allocations, self.graphs, self.samples

    @property
    def events(self) -> int:
        """Dispatches and regions: what `events_per_rank` counts."""
        return len(self.regions) + len(self.dispatches)
