"""The time line that ranks share: the ranks of each clock, and the offset that is added to their times.

Timestamps in SQL stay as recorded; only windows, summaries over time and exports shift them, by an offset that changes
slowly where clocks drift. `rocpd.federate.select.clocks` measures offsets between clocks; its caller reads the ranks.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from rocpd.base import Ints, Row, UsageError, by_key, frozen
from rocpd.schema.rules.events import OPERATIONS, POINTS, SPANS, VALID_POINT, VALID_TIMES

if TYPE_CHECKING:
    from rocpd.federate.open.identify import Rank
    from rocpd.federate.select.clocks import ClockJump, ClockLine

Time = TypeVar("Time", int, "Ints")


@frozen
class Span:
    """The time in which a rank ran, by its own clock and its events with valid times.

    Args:
        start, end: first start and last end of all events [ns].
        dispatched, copied: first start and last end of its dispatches, and of its copies [ns]; None: it has none.
    """

    start: int
    end: int
    dispatched: tuple[int, int] | None = None
    copied: tuple[int, int] | None = None

    @classmethod
    def of(cls, row: Row) -> Span | None:
        """Return the span in a row of `SPAN`; None without events."""
        sides = [None if start is None else (start, end) for start, end in zip(row[::2], row[1::2], strict=True)]
        return cls(*sides[0], *sides[1:]) if sides[0] else None


@frozen
class Shift:
    """The shift of a clock's times: `offset` at its time `at` [ns], and `drift` more for each ns after it.

    A clock that was set has times that are `jump` ahead from `since` on [ns]; on the line the jump is taken out.
    """

    offset: int = 0
    at: int = 0
    drift: float = 0.0
    jump: int = 0
    since: int = 0

    def to_line(self, time: Time) -> Time:
        """Return times of the clock as times of the common line [ns]; they stay in order."""
        if self.jump:
            time = time - (time >= self.since) * self.jump
        return time + self.offset + self._drifted(time, self.drift) if self.drift else time + self.offset

    def to_clock(self, time: Time) -> Time:
        """Return times of the common line as times of the clock [ns]; for a single time the earliest not before it.

        >>> shift = Shift(1000, 50, 1e-5)
        >>> shift.to_line(1_000_050), shift.to_clock(1_001_060), shift.to_clock(shift.to_line(777_777))
        (1001060, 1000050, 777777)
        >>> was_set = Shift(1000, jump=500, since=3000)
        >>> was_set.to_line(2500), was_set.to_line(3100), was_set.to_clock(3600), was_set.to_clock(3500)
        (3500, 3600, 3100, 3000)
        """
        if self.jump:
            even = replace(self, jump=0)
            before = even.to_clock(time)
            return before + (before + self.jump >= self.since) * self.jump
        if not self.drift:
            return time - self.offset
        local: Time = time - self.offset
        local = local - self._drifted(local, self.drift / (1 + self.drift))
        if isinstance(local, int):
            while self.to_line(local) < time:
                local += 1
            while self.to_line(local - 1) >= time:
                local -= 1
        return local

    def _drifted(self, time: Time, drift: float) -> Time:
        since: Any = (time - self.at) * drift  # no numpy: help imports this
        return since.round().astype("int64") if hasattr(since, "astype") else round(since)  # type: ignore[no-any-return]


UNSHIFTED = Shift()


@frozen
class TimeLine:
    """All ranks on one time line.

    Args:
        start, end: first start and last end [ns].
        spans: rank number -> its span, by its own clock.
        shifts: rank number -> shift of its times.
    """

    start: int
    end: int
    spans: Mapping[int, Span]
    shifts: Mapping[int, Shift]

    @classmethod
    def of(cls, spans: Mapping[int, Span], shifts: Mapping[int, Shift]) -> TimeLine | None:
        """Return the time line of ranks with these spans; None without events."""
        if not spans:
            return None
        starts = [shifts[rank].to_line(span.start) for rank, span in spans.items()]
        return cls(min(starts), max(shifts[rank].to_line(span.end) for rank, span in spans.items()), spans, shifts)

    def shift(self, rank: int) -> Shift:
        """Return the shift of the times of a rank, by its number."""
        return self.shifts.get(rank, UNSHIFTED)

    def of_view(self, time: int) -> int:
        """Return a time of views on this line [ns], by the clock of the ranks that ran then, else of the nearest ones.

        Raises:
            UsageError: ranks with different clocks ran then.
        """
        away = {rank: max(span.start - time, time - span.end, 0) for rank, span in self.spans.items()}
        nearest = [rank for rank in away if away[rank] == min(away.values())]
        places: dict[int, int] = {}
        for rank in sorted(nearest):
            places.setdefault(self.shift(rank).to_line(time), rank)
        if len(places) > 1:
            which = ", ".join(f"rank {rank}" for rank in places.values())
            raise UsageError(f"{time} ns is a time of several clocks: of {which}", "choose one with --rank")
        return min(places)


class Align(enum.StrEnum):
    """How ranks are aligned on one time line."""

    AUTO = "auto"
    COLLECTIVES = "collectives"
    START = "start"
    NONE = "none"


@frozen
class Domain:
    """Ranks of one machine whose spans overlap: their timestamps compare. `start` and `end` in ns."""

    machine_id: str | None
    ranks: tuple[int, ...]
    start: int
    end: int


@frozen
class Clock:
    """The place of the clock of some ranks on the common time line.

    Args:
        ranks: numbers of the ranks.
        method: `reference`, whose times stay; `collectives`; `utc`, the time of day; `start`; `given` by the user;
            `none`.
        shift: shift of its times.
        certain_ns: greatest distance of true times during the collectives [ns]; None: unknown.
        likely_ns: median distance of single collectives [ns]; None without collectives.
        drift: drift against the reference, per ns, whether it is taken out or not; 0.0 if none was measured.
        collectives: number of compared collectives.
    """

    ranks: tuple[int, ...]
    method: str
    shift: Shift
    certain_ns: int | None = None
    likely_ns: int | None = None
    drift: float = 0.0
    collectives: int = 0

    @property
    def facts(self) -> dict[str, str | int | float | None]:
        """The facts of the clock, by the names of the columns of `rocpd info --only clocks`."""
        return {
            "method": self.method,
            "offset_ns": self.shift.offset,
            "certain_ns": self.certain_ns,
            "likely_ns": self.likely_ns,
            "drift_ppm": round(self.drift * 1e6, 3) if self.drift or self.method == "reference" else None,
            "collectives": self.collectives,
        }

    def __str__(self) -> str:
        """Return a line for people: `clock: collectives -745196894208 ns, ±25 us certain, ±2.5 us likely`."""
        known = ((self.certain_ns, "certain"), (self.likely_ns, "likely"))
        words = [f"clock: {self.method} {self.shift.offset:+d} ns"]
        words += [f"±{duration(ns)} {how}" for ns, how in known if ns is not None and self.method != "reference"]
        return ", ".join([*words, *([f"drift {ppm(self)} ppm"] if self.drift else [])])


@frozen
class Alignment:
    """The shift of the times of each rank, the method it is known by, and a note for the user.

    Args:
        clocks: clocks of all ranks that ran, each with the shift of its times.
        note: note for the user; None: there is nothing to note.
        contradicted: the clocks that collectives cannot align because they contradict each other.
        jumps: the clocks that were set, in words.
    """

    clocks: Sequence[Clock] = ()
    note: str | None = None
    contradicted: Sequence[Clock] = ()
    jumps: Sequence[str] = ()

    @functools.cached_property
    def shifts(self) -> Mapping[int, Shift]:
        """Rank number -> shift of its times."""
        return {rank: clock.shift for clock in self.clocks for rank in clock.ranks}

    @property
    def offsets(self) -> dict[int, int]:
        """Rank number -> offset that is added to its times [ns]; where its clock drifts, at its first collective."""
        return {rank: shift.offset for rank, shift in self.shifts.items()}

    def shift(self, rank: int) -> Shift:
        """Return the shift of the times of a rank, by its number."""
        return self.shifts.get(rank, UNSHIFTED)

    def clock(self, rank: int) -> Clock | None:
        """Return the clock of a rank; None where the rank ran nothing, or all ranks share one clock."""
        return self._clock_of.get(rank) if len(self.clocks) > 1 else None

    @functools.cached_property
    def _clock_of(self) -> dict[int, Clock]:
        return {rank: clock for clock in self.clocks for rank in clock.ranks}


GivenOffset: TypeAlias = "int | tuple[int, int]"
"""The offset that the user adds to the times of a host [ns], alone or with its greatest error [ns]."""

Measure: TypeAlias = "Callable[[Mapping[int, int]], Sequence[ClockLine | ClockJump | None]]"
"""Measures how clocks are aligned, given rank -> number of its clock.

Raises ContradictionError of `rocpd.federate.select.clocks`."""

_FIRST_AND_LAST = (
    *(f'SELECT {{}} AS kind, MIN(start) AS first, MAX("end") AS last FROM {b} WHERE {VALID_TIMES}' for b in SPANS),
    *(f'SELECT {{}}, MIN("timestamp"), MAX("timestamp") FROM {base} WHERE {VALID_POINT}' for base in POINTS),
)
_OF_KIND = ", ".join(
    f"MIN(first) FILTER (WHERE kind = {kind}), MAX(last) FILTER (WHERE kind = {kind})"
    for kind in range(len(OPERATIONS))
)
SPAN = f"""SELECT MIN(first), MAX(last), {_OF_KIND}
FROM ({" UNION ALL ".join(select.format(kind) for kind, select in enumerate(_FIRST_AND_LAST))})"""
"""SELECT of the row of a `Span`: NULLs for kinds without events."""
SPAN_COLUMNS = ("start", "end", "first_dispatch", "last_dispatch", "first_copy", "last_copy")


def clock_domains(ranks: Sequence[Rank], spans: Mapping[int, Span]) -> tuple[Domain, ...]:
    """Group ranks into clock domains: one machine, spans that overlap (touching counts), ordered by start.

    A rank whose machine is unknown is a domain of its own. A rank without events belongs to none, unless its file was
    merged from a window during which other ranks of its machine had events.
    """
    domains: list[_Growing] = []
    of_machine: dict[str, list[_Growing]] = {}
    for rank in sorted((r for r in ranks if r.number in spans), key=lambda r: (spans[r.number].start, r.number)):
        span, machine = spans[rank.number], rank.machine_id
        known = [] if machine is None else of_machine.setdefault(machine, [])
        if known and span.start <= known[-1].end:
            known[-1].add(rank.number, span.end)
        else:
            domains.append(_Growing(machine, span.start, span.end, [rank.number]))
            known.append(domains[-1])
    for rank in ranks:
        window = rank.window
        if window and rank.machine_id is not None and rank.number not in spans:
            for domain in of_machine.get(rank.machine_id, ()):
                if domain.start <= window.end and window.start <= domain.end:
                    domain.add(rank.number, domain.end)
                    break
    return tuple(Domain(each.machine_id, tuple(sorted(each.ranks)), each.start, each.end) for each in domains)


@dataclass
class _Growing:
    """A domain while its ranks are gathered; attributes as of `Domain`."""

    machine_id: str | None
    start: int
    end: int
    ranks: list[int]

    def add(self, rank: int, end: int) -> None:
        """Add a rank that lasts until `end`."""
        self.ranks.append(rank)
        self.end = max(self.end, end)


def machines(domains: Sequence[Domain]) -> tuple[Domain, ...]:
    """Join the domains of each machine, its runs one after the other by one clock; the lowest rank comes first."""
    numbered = enumerate(domains)
    parts = by_key((number if domain.machine_id is None else domain.machine_id, domain) for number, domain in numbered)
    return tuple(sorted(map(_together, parts.values()), key=lambda machine: machine.ranks))


def _together(domains: Sequence[Domain]) -> Domain:
    first, ranks = domains[0], {rank for domain in domains for rank in domain.ranks}
    return Domain(first.machine_id, tuple(sorted(ranks)), first.start, max(domain.end for domain in domains))


def align(
    how: Align,
    domains: Sequence[Domain],
    spans: Mapping[int, Span],
    measure: Measure | None = None,
    hosts: Mapping[int, str | None] | None = None,
    of_day: Collection[int] = (),
) -> Alignment:
    """Return the alignment of the clocks of machines.

    `auto` and `collectives` go by the collectives of the job. Where these do not suffice, clocks that count the time of
    day stay as they are if by them all machines ran at one time; else the first event of each machine is moved to the
    earliest of all. `start` moves the first event of every rank there. `none` keeps times as recorded.

    Args:
        how: the method.
        domains: the clock domains.
        spans: rank number -> its span.
        measure: finds lines from collectives; None: no collectives are known.
        hosts: rank number -> its host, for notes.
        of_day: numbers of the ranks whose clocks count the time of day.
    """
    by_machine = machines(domains)
    if how is Align.NONE or len(spans) < 2 or (how is not Align.START and len(by_machine) < 2):
        return Alignment([Clock(machine.ranks, "none", UNSHIFTED) for machine in by_machine])
    base = min(span.start for span in spans.values())
    if how is Align.START:
        ranks = [Clock((rank,), "start", Shift(base - span.start)) for rank, span in spans.items()]
        return Alignment(ranks, f"time: {len(spans)} ranks aligned at their first event (--align start)")
    names = [(hosts or {}).get(machine.ranks[0]) or f"rank {machine.ranks[0]}" for machine in by_machine]
    judged = _lines(by_machine, names, measure)
    if judged.why:
        if _ran_together(by_machine, of_day):
            clocks = [Clock(machine.ranks, "utc", UNSHIFTED) for machine in by_machine]
            placed, otherwise = _BY_DAY, "--align start aligns first events"
        else:
            clocks = [Clock(machine.ranks, "start", Shift(base - machine.start)) for machine in by_machine]
            placed, otherwise = _AT_START, "--align none keeps times as recorded"
        note = f"time: {len(clocks)} clock domains {placed}: {judged.why}; {otherwise}"
        return Alignment(clocks, note, clocks if judged.is_contradicted else ())
    clocks = _by_lines(by_machine, judged.lines)
    note = "; ".join((trust(clocks, len(judged.apart)), *judged.jumps))
    return Alignment(clocks, note, [clocks[number] for number in judged.apart], judged.jumps)


_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000))
_HOUR_NS = 3_600_000_000_000
_LEAST = 3  # collectives: the ends of fewer say nothing of their usual distance
_AT_START = "aligned at their first event"
_TAKEN_OUT = "taken out of its times on the common line"
_BY_DAY = "stay at the time of day, as good as each machine keeps it"


def _ran_together(by_machine: Sequence[Domain], of_day: Collection[int]) -> bool:
    """Whether all machines count the time of day, and by it ran at the same time."""
    if not {rank for machine in by_machine for rank in machine.ranks} <= set(of_day):
        return False
    return max(machine.start for machine in by_machine) <= min(machine.end for machine in by_machine)


class _Lines(NamedTuple):
    """The lines of machines, or why there are none; the clocks that were set, and numbers of those without a line."""

    lines: Sequence[ClockLine | None] = ()
    jumps: Sequence[str] = ()
    apart: Sequence[int] = ()
    why: str = ""
    is_contradicted: bool = False


def _lines(by_machine: Sequence[Domain], names: Sequence[str], measure: Measure | None) -> _Lines:
    if measure is None:
        return _Lines(why="nothing says more")
    from rocpd.federate.select.clocks import ClockJump, ClockLine, ContradictionError

    try:
        lines = measure({rank: number for number, machine in enumerate(by_machine) for rank in machine.ranks})
    except ContradictionError as error:
        which = f"collectives of {' and '.join(names[clock] for clock in error.clocks)}"
        which = which if error.clocks else "their collectives"
        return _Lines(why=f"{which} do not fit together, as if a clock had been set", is_contradicted=True)
    jumps = [
        _said(jump, number, by_machine, names)
        for number, line in enumerate(lines)
        if (jump := line if isinstance(line, ClockJump) else line.jump if line else None)
    ]
    enough = [
        line if isinstance(line, ClockLine) and (not line.collectives or line.collectives >= _LEAST) else None
        for line in lines
    ]
    if sum(line is not None for line in enough) > 1:
        return _Lines(enough, jumps, [number for number, line in enumerate(lines) if isinstance(line, ClockJump)])
    few = "too few" if any(isinstance(line, ClockLine) and line.collectives for line in lines) else "no"
    return _Lines(why=f"they have {few} collectives in common")


def _said(jump: ClockJump, number: int, by_machine: Sequence[Domain], names: Sequence[str]) -> str:
    """Return a sentence on when and by how much the clock of this number was set."""
    ahead, behind = (f"{sign}{duration(abs(jump.jump_ns))}" for sign in ("+-" if jump.jump_ns > 0 else "-+"))
    after = duration(jump.at_ns - by_machine[number].start)
    other = f" (or that of {names[1 - number]} by {behind})" if len(names) == 2 else ""
    kept = _TAKEN_OUT if jump.jump_ns > 0 else _AT_START
    return f"the clock of {names[number]} was set by {ahead}{other}, {after} after its first event: {kept}"


def _by_lines(by_machine: Sequence[Domain], lines: Sequence[ClockLine | None]) -> list[Clock]:
    """Return clocks aligned by lines; a clock without a line is moved to the first event of the others."""
    clocks = {
        number: _by_line(machine, line)
        for number, (machine, line) in enumerate(zip(by_machine, lines, strict=True))
        if line
    }
    base = min(clocks[number].shift.to_line(by_machine[number].start) for number in clocks)
    return [
        clocks.get(number) or Clock(machine.ranks, "start", Shift(base - machine.start))
        for number, machine in enumerate(by_machine)
    ]


def _by_line(machine: Domain, line: ClockLine) -> Clock:
    """Return the clock of a machine; a drift stays in if it is small compared with the certain error."""
    jump, since = (line.jump.jump_ns, line.jump.at_ns) if line.jump else (0, 0)
    if not line.collectives:
        return Clock(machine.ranks, "reference", Shift(jump=jump, since=since), 0, 0)
    shift, certain = Shift(line.offset_ns, line.at_ns, line.drift), line.certain_ns
    end = machine.end - jump  # lines are about times without the jump
    error = abs(line.drift) * (end - machine.start)
    if certain is not None and error <= certain / 2:
        middle = (machine.start + end) // 2
        shift, certain = Shift(shift.to_line(middle) - middle), certain + round(error / 2)
    shift = replace(shift, jump=jump, since=since)
    return Clock(machine.ranks, "collectives", shift, certain, line.likely_ns, line.drift, line.collectives)


def trust(clocks: Sequence[Clock], left_out: int = 0) -> str:
    """Return a line on how exactly times of different hosts compare; `left_out`: number of clocks not to mention."""
    measured = [clock for clock in clocks if clock.method == "collectives"]
    known = [clock.certain_ns for clock in measured if clock.certain_ns is not None]
    certain = f"±{duration(max(known))} certain, " if len(known) == len(measured) else ""
    likely = max(clock.likely_ns or 0 for clock in measured)
    count = min(clock.collectives for clock in measured)
    drifting = max(measured, key=lambda clock: abs(clock.drift))
    text = (
        f"time: {len(measured) + 1} clock domains aligned by {count} collectives: {certain}±{duration(likely)} likely"
    )
    if drifting.drift:
        per_hour = duration(round(abs(drifting.drift) * _HOUR_NS))
        left = "taken out" if drifting.shift.drift else "little here"
        text += f"; drift {ppm(drifting)} ppm, {per_hour} per hour, {left}"
    others = len(clocks) - len(measured) - 1 - left_out
    return text + (f"; {others} without collectives {_AT_START}" if others else "")


def ppm(clock: Clock) -> str:
    """Return a drift as text, in parts per million."""
    drift = clock.drift * 1e6
    return f"{drift:+.0f}" if abs(drift) >= 10 else f"{drift:+.1f}"


def duration(ns: int) -> str:
    """Return a time [ns] as text for people.

    >>> duration(0), duration(870), duration(2_617), duration(12_345)
    ('0 ns', '870 ns', '2.6 us', '12 us')
    """
    unit, length = next(((unit, length) for unit, length in _UNITS if ns >= length), ("ns", 1))
    return f"{ns / length:.1f} {unit}" if length <= ns < 10 * length and length > 1 else f"{round(ns / length)} {unit}"


def given_offsets(given: Mapping[str, GivenOffset], ranks: Sequence[Rank]) -> Alignment:
    """Return the alignment that the user gives: host -> offset; other hosts keep their times.

    Raises:
        UsageError: no rank ran on a host.
    """
    by_host = by_key((rank.hostname, rank.number) for rank in ranks)
    for host in given:
        if host not in by_host:
            known = ", ".join(sorted(map(str, by_host)))
            raise UsageError(f"clock offset for {host}: no rank ran there", f"hosts: {known}")
    offsets = {host: offset if isinstance(offset, tuple) else (offset, None) for host, offset in given.items()}
    clocks = []
    for hostname, numbers in by_host.items():
        ns, within = offsets.get(hostname or "", (0, None))
        clocks.append(Clock(tuple(numbers), "given" if hostname in offsets else "none", Shift(ns), within))
    shown = ((f"{host} {ns:+d} ns", within) for host, (ns, within) in offsets.items())
    listed = ", ".join(text if within is None else f"{text} ±{duration(within)}" for text, within in shown)
    return Alignment(clocks, f"time: clocks shifted by {listed}")
