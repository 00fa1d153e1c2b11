"""The state of every agent at any time, in pieces that add up to its time exactly, with the cause of idle time.

Where operations overlap on an agent, the time belongs to compute, then to communication, then to copies; within one
kind, to the operation that started first. Other operations that run meanwhile are hidden. The cause of idle time is the
activity of the thread that launches the next operation:

- until the launching call returns: inside a call of HIP, HSA or RCCL (the outermost one) the kind of that call; outside
  calls, up to `PAUSE` between two of them is launching too (an interpreter prepares the next call), and more is work of
  the host, named by the innermost marker around it;
- from then on the operation is launched and not started: it waits for another operation, or to be dispatched;
- before its first operation an agent is not started, after its last one finished.

Causes are those of the whole trace. Where a filter leaves operations out, their time counts as idle, with the cause
that it is left out.

Processes share an agent if both ran work on an agent with the same PCI address, on one machine since one boot, in one
run, on clocks that compare. Where a profiler writes no such address, each process has agents of its own. By rank, agent
and stream, each process has all its time of the agent. By job, host, run, step and marker, the time of the agent is the
union over processes: at each moment it belongs to a process that computes, else one that communicates, copies, idles;
among several to the lowest rank. This division is a fact of the whole trace, regardless of the selection.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import NULL, Flags, Ints, by_key, few, frozen
from rocpd.facts.columns import Names, at_rows, filled, first_of, grouped, numbered
from rocpd.facts.operations import OperationNames, Ops, all_lanes, has_its_time, kinds_of, read_ops
from rocpd.facts.rank import LANES, Base, By, Options, RankReading
from rocpd.facts.regions import HostCall, RankRegions, host_call, innermost, read_regions
from rocpd.facts.timeline import (
    ALWAYS,
    FOREVER,
    IDLE,
    KINDS,
    NOTHING,
    PARTS,
    Course,
    Pieces,
    Union,
    busy_pieces,
    divided,
    gaps_between,
    outside,
    owned,
    union,
    unite,
)
from rocpd.facts.units import (
    HadByOthers,
    RankTime,
    Taken,
    Times,
    active_times,
    agents_of_ranks,
    had_by_others,
    times_that_count,
)
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import OPERATIONS_BYTES, Fact, RankReader
from rocpd.schema.rules.kernel_categories import load
from rocpd.schema.rules.launch import launching_regions

PAUSE = 100_000
"""Time between two calls of a thread that still counts as launching [ns]."""

NOT_STARTED, FINISHED, QUEUED, HOST = "not started", "finished", "launched, not started", "host work"
LEFT_OUT, UNKNOWN = "left out", "unknown"

CAUSES = (NOT_STARTED, *(call.value for call in HostCall), HOST, QUEUED, FINISHED, LEFT_OUT, UNKNOWN)
"""The causes that idle time is divided into."""

CAUSES_SAID = (
    f"activity of the host, or state of the agent; {HostCall.LAUNCH}: in calls that launch, and up to "
    f"{PAUSE // 1000} us between two calls; {HOST}: longer between calls; {QUEUED}: the next operation is queued, and "
    "waits for another one or for the GPU to start it"
)
"""The meaning of causes, in words."""


BETWEEN = "between calls"
"""The name of idle time that is launching, but in no call."""
_ADDRESS = """SELECT json_extract(extdata, '$.domain') AS domain, json_extract(extdata, '$.location_id') AS location
FROM rocpd_info_agent WHERE id = ? AND json_valid(extdata) AND location IS NOT NULL"""


def cause_code(cause: str) -> int:
    """Return the number of a cause."""
    return CAUSES.index(cause)


_CAUSES_OF_CALLS = np.array([*map(cause_code, HostCall), -1])  # -1: no call


@frozen
class AgentTime:
    """The time of one agent, in pieces in order of time; all columns are equally long.

    Args:
        agent: its id, `NULL` where unknown.
        lane: its stream where streams divide the time, else `agent`.
        start, end: [ns].
        part: number in `PARTS`.
        operation: row of the operation that has the time, among those that count; -1: idle.
        hides: sum of `HIDES_COMMUNICATION` and `HIDES_COPIES`: the kinds of work that also run meanwhile.
        cause: number in `CAUSES`; -1: not idle, or not asked for.
        what: for idle time, number in `Names` of the call, or of the marker of the host's work; `NULL`: unknown.
    """

    agent: int
    lane: int
    start: Ints
    end: Ints
    part: Ints
    operation: Ints
    hides: Ints
    cause: Ints
    what: Ints

    @property
    def length(self) -> Ints:
        """Length of each piece [ns]."""
        return self.end - self.start

    def take(self, rows: Ints | Flags) -> AgentTime:
        """Return some of the pieces."""
        return AgentTime(self.agent, self.lane, *[column[rows] for column in self.columns()])

    def columns(self) -> tuple[Ints, ...]:
        """Return all columns, in the order of the arguments."""
        return self.start, self.end, self.part, self.operation, self.hides, self.cause, self.what

    def cut(self, pieces: Pieces) -> AgentTime:
        """Return these pieces cut to `pieces`, whose `of` are rows of these."""
        if pieces.start is self.start and pieces.end is self.end:
            return self
        return replace(self.take(pieces.of), start=pieces.start, end=pieces.end)

    @property
    def span(self) -> Base:
        """First start and last end of the pieces [ns]; there is at least one."""
        return int(self.start[0]), int(self.end[-1])

    def hidden(self, bit: int) -> int:
        """Return how long the work behind a bit of `hides` runs while other work has the time [ns]."""
        return int(self.length[self.hides & bit > 0].sum())

    def pieces(self) -> Pieces:
        """Return start and end of each piece."""
        return Pieces.each(self.start, self.end)

    def within(self, low: int, high: int) -> AgentTime:
        """Return the part between two times [ns]."""
        return self.cut(self.pieces().within(low, high))

    def idle(self) -> AgentTime:
        """Return the idle time."""
        return self.take(self.part == IDLE)

    def times(self) -> tuple[int, ...]:
        """Return the time of each of `PARTS` [ns]."""
        return tuple(int(self.length[self.part == part].sum()) for part in range(len(PARTS)))

    def gaps(self) -> tuple[Ints, Ints]:
        """Return start and end of each time without operation [ns]; idle pieces that touch are joined."""
        idle = self.idle()
        return union(idle.start, idle.end)


def read_agent_times(
    reading: RankReading, time: RankTime | None, ops: Ops, kinds: Ints, *, causes: bool = False
) -> list[AgentTime]:
    """Return the time of each agent of a rank, or of each stream where streams divide it; do not change the result.

    Args:
        reading: reads the rank.
        time: the time that counts; None: each agent's own time, from its first to its last operation that counts.
        ops: the operations of the rank that count.
        kinds: kind of each operation, as `kinds_of` returns it.
        causes: whether to find the causes of idle time.
    """
    key = "agent times", time, reading.options.by is By.STREAM, reading.options.categories
    history = read_history(reading) if causes else None  # outside `once`, so that each caller counts rows left out
    return reading.reader.once((*key, causes), lambda: list(_agent_times(reading, time, ops, kinds, history)))


def _agent_times(
    reading: RankReading, time: RankTime | None, ops: Ops, kinds: Ints, history: History | None
) -> Iterator[AgentTime]:
    is_part = reading.reader.selects("rocpd_kernel_dispatch") or reading.reader.selects("rocpd_memory_copy")
    # The same for any time that counts; with fewer operations, rows have other numbers.
    key = "busy", reading.options.by is By.STREAM, reading.options.categories, len(ops.start)
    for lane, agent, rows, (low, high) in lanes_in_time(reading, time, ops):
        whole = reading.reader.once((*key, lane), partial(_busy, ops, kinds, agent, rows))
        busy = whole.within(low, high)
        start, end = gaps_between((busy.start, busy.end), low, high)
        idle = _idle(agent, start, end)
        if history:
            known = history.idle(agent, history.ops.lane(reading.options.by) == lane, low, high)
            idle = _with_causes(idle, _in_order(known)) if is_part else known
        spent = replace(_in_order(_joined(agent, (busy, idle))), lane=lane)
        if time and time.taken:
            spent = spent.cut(outside(spent.pieces(), had_by_others(time.taken, agent)))
        if time and time.skipped:
            low, high = time.skipped
            spent = spent.cut(outside(spent.pieces(), (np.array([low]), np.array([high]))))
        if len(spent.start):
            yield spent


def lanes_in_time(
    reading: RankReading, time: RankTime | None, ops: Ops
) -> Iterator[tuple[int, int, Ints, tuple[int, int]]]:
    """Yield lane and agent, the rows of operations, and start and end of the time that counts [ns].

    Arguments as for `read_agent_times`. Lanes without time that counts are left out.
    """
    has_time = has_its_time(reading.reader)
    for lane, agent, rows in all_lanes(reading, ops):
        low, high = (int(ops.start[rows].min()), int(ops.end[rows].max())) if len(rows) else (0, 0)
        if time and has_time(agent):
            low, high = time.start, time.end
        elif time:
            low, high = max(low, time.start), min(high, time.end)
        if low < high:
            yield lane, agent, rows, (low, high)


def _busy(ops: Ops, kinds: Ints, agent: int, rows: Ints) -> AgentTime:
    """Return the time of some operations of one agent."""
    pieces, part, hides = busy_pieces(ops.start[rows], ops.end[rows], kinds[rows])
    unknown, nothing = filled(len(part), -1), filled(len(part), NULL)
    return AgentTime(agent, agent, pieces.start, pieces.end, part, rows[pieces.of], hides, unknown, nothing)


def _idle(agent: int, start: Ints, end: Ints, cause: Ints | int = -1, what: Ints | int = NULL) -> AgentTime:
    """Return idle time; a single cause, or a single call or marker, applies to all pieces."""
    part, operation, hides, *why = (
        filled(len(start), each) if isinstance(each, int) else each for each in (IDLE, -1, 0, cause, what)
    )
    return AgentTime(agent, agent, start, end, part, operation, hides, *why)


def _joined(agent: int, parts: Sequence[AgentTime]) -> AgentTime:
    return AgentTime(agent, agent, *map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))


def _in_order(spent: AgentTime) -> AgentTime:
    return spent.take(np.argsort(spent.start, kind="stable"))


def _with_causes(idle: AgentTime, known: AgentTime) -> AgentTime:
    """Return idle time with the known causes; operations that are left out run in the rest of it."""
    at, cut = divided(idle.pieces(), np.stack([known.start, known.end], 1).reshape(-1))
    cut, at = cut.take(cut.end > cut.start), at[cut.end > cut.start]
    is_known = (at >= 0) & (at % 2 == 0)
    row = np.where(is_known, at // 2, 0)
    cause = np.where(is_known, known.cause[row] if len(known.cause) else 0, cause_code(LEFT_OUT))
    what = np.where(is_known, known.what[row] if len(known.what) else 0, NULL)
    return replace(idle.cut(cut), cause=cause, what=what)


@frozen
class Activity:
    """The state of a thread at any time.

    Args:
        course: row of its activity at any time.
        cause, what: for each row, see `AgentTime`.
    """

    course: Course
    cause: Ints
    what: Ints

    def idle(self, agent: int, start: Ints, end: Ints) -> AgentTime:
        """Return idle time, given as intervals that are not empty, divided by the activity of the thread."""
        rows, cut = self.course.divide(Pieces.each(start, end))
        return _idle(agent, cut.start, cut.end, self.cause[rows], self.what[rows])


@frozen
class History:
    """The parts of a rank's whole trace that explain idle agents.

    Args:
        ops: all operations.
        regions: all regions, outer ones before inner ones.
        names: names of the numbers in regions.
        calls: number in `HostCall` of each region; -1: it is no call.
        threads: thread id -> its activity.
    """

    ops: Ops
    regions: RankRegions
    names: Names
    calls: Ints
    threads: dict[int, Activity]

    def idle(self, agent: int, rows: Flags, low: int, high: int) -> AgentTime:
        """Return the idle time of an agent, or a stream of it, between two times, with causes; in no order.

        Args:
            agent: its id.
            rows: whether each of all operations belongs to it.
            low, high: the times [ns].
        """
        order = rows.nonzero()[0]
        ran = self.ops.take(order[np.lexsort((self.ops.end[order], self.ops.start[order]))])
        if not len(ran):
            return _idle(agent, np.array([low]), np.array([high]), cause_code(UNKNOWN))
        latest = np.maximum.accumulate(ran.end)
        after = (ran.start[1:] > latest[:-1]).nonzero()[0] + 1
        parts = self._of_gaps(agent, latest[after - 1], ran.start[after], ran.take(after))
        first, last = int(ran.start[0]), int(latest[-1])
        for start, end, cause in ((low, min(first, high), NOT_STARTED), (max(last, low), high, FINISHED)):
            if end > start:
                parts.append(_idle(agent, np.array([start]), np.array([end]), cause_code(cause)))
        return _joined(agent, parts).within(low, high)

    def _of_gaps(self, agent: int, start: Ints, end: Ints, after: Ops) -> list[AgentTime]:
        regions = self.regions
        call = launching_regions(regions.stack, regions.start, regions.end, after.stack)
        known = call >= 0
        returned = np.clip(np.where(known, at_rows(regions.end, call), end), start, end)
        parts = [_all(agent, start, end, UNKNOWN, ~known), _all(agent, returned, end, QUEUED, known)]
        for (number,), rows in grouped([at_rows(regions.thread, call)]):
            rows = rows[known[rows] & (returned[rows] > start[rows])]
            if len(rows):
                parts.append(self.threads[number].idle(agent, start[rows], returned[rows]))
        return parts


_ACTIVITIES = Fact("activities", 1, (Activity, Course))


def read_history(reading: RankReading) -> History:
    """Return the history of a rank, which explains its idle agents; do not change the result."""
    whole = reading.whole()
    history, left_out = whole.reader.once("history", lambda: (_read_history(whole), whole.left_out))
    reading.also_left_out(left_out)
    return history


def _read_history(whole: RankReading) -> History:
    ops = read_ops(whole, OperationNames(), stacks=True)
    regions, names = read_regions(whole)
    calls = host_calls(regions, names)
    threads = whole.reader.once(_ACTIVITIES, lambda: activities(regions, calls))
    return History(ops, regions, names, calls, threads)


def host_calls(regions: RankRegions, names: Names) -> Ints:
    """Return the number in `HostCall` of each region; -1: it is no call."""
    numbers = {kind: number for number, kind in enumerate(HostCall)}
    place = numbered(regions.name, regions.category)
    first = first_of(place)
    pairs = zip(regions.name[first].tolist(), regions.category[first].tolist(), strict=True)
    calls = (host_call(names.texts[name], names.texts[category]) for name, category in pairs)
    return np.array([numbers[call] if call else -1 for call in calls], np.int64)[place]


def activities(regions: RankRegions, calls: Ints) -> dict[int, Activity]:
    """Return thread id -> its activity; `calls`: `host_calls` of the regions, where outer ones come first."""
    cause = _CAUSES_OF_CALLS[calls]
    return {thread: _activity(regions.take(rows), cause[rows]) for (thread,), rows in grouped([regions.thread])}


def _activity(regions: RankRegions, cause: Ints) -> Activity:
    """Return the activity of one thread; `cause` of its regions is -1 where they are no calls."""
    rows = (cause >= 0).nonzero()[0]
    outermost = owned(regions.start[rows], regions.end[rows])  # cut where a damaged file lets them overlap
    calls = _idle(NULL, outermost.start, outermost.end, cause[rows[outermost.of]], regions.name[rows[outermost.of]])
    around = innermost(regions.take((cause < 0).nonzero()[0]))
    # Between calls: short stretches are launching, longer ones are work of the host in the innermost marker there.
    start, end = np.concatenate(([ALWAYS], calls.end)), np.concatenate((calls.start, [FOREVER]))
    is_long = (start == ALWAYS) | (end == FOREVER) | (end - np.maximum(start, 0) > PAUSE)
    is_between = end > start
    is_host, is_short = is_between & is_long, is_between & ~is_long
    marker, host = around.divide(Pieces.each(start[is_host], end[is_host]))
    launching = _idle(NULL, start[is_short], end[is_short], cause_code(HostCall.LAUNCH.value))
    spent = _in_order(_joined(NULL, (calls, _idle(NULL, host.start, host.end, cause_code(HOST), marker), launching)))
    return Activity(Course(spent.start, np.arange(len(spent.start))), spent.cause, spent.what)


def _all(agent: int, start: Ints, end: Ints, cause: str, rows: Flags) -> AgentTime:
    lasting = rows & (end > start)
    return _idle(agent, start[lasting], end[lasting], cause_code(cause))


def times_of_job(session: Federation, options: Options) -> Times:
    """Return the time of each rank that counts, without the time of its agents that other processes have.

    Args:
        session: the job and the window.
        options: the division, the markers that are steps, and whether all time counts.
    """
    times = times_that_count(session, options)
    if options.by in (By.RANK, *LANES) or len(session.ranks) < 2:
        return times
    taken = taken_from(session, options)
    return {rank: replace(time, taken=taken[rank]) if rank in taken else time for rank, time in times.items()}


def taken_from(session: Federation, options: Options) -> Mapping[int, Taken]:
    """Return rank -> time of its agents that other processes of the job have; without ranks that share no agent."""
    return session.job.once(("taken", options.categories), lambda: _taken(session, options))


def _taken(session: Federation, options: Options) -> dict[int, Taken]:
    shared = list(_shared(session, options))
    agents: defaultdict[int, set[int]] = defaultdict(set)
    for users in shared:
        for rank, agent in users.items():
            agents[rank].add(agent)
    if not agents:
        return {}
    active: dict[int, RankTime] = {}
    for ranks in session.job.by_run:
        active |= active_times(session, [rank.number for rank in ranks], {})
    sharing = session.job.of_ranks(tuple(rank for rank in session.ranks if rank.number in agents), keep_alignment=False)
    work = partial(_parts, agents=agents, active=active, options=Options(categories=options.categories))
    parts = {rank.number: of_rank for rank, of_rank in sharing.map_ranks(work, brief_bytes=OPERATIONS_BYTES)}
    which = few([few([*users]) for users in shared], joined="; ")
    session.note(f"ranks {which} share a GPU: its time counts once, and by rank or agent for each of them")
    taken: dict[int, Taken] = {}
    for users in shared:
        for rank, (start, end) in divided_among({rank: parts[rank][agent] for rank, agent in users.items()}).items():
            taken[rank] = (*taken.get(rank, ()), HadByOthers.of(users[rank], start, end))
    return taken


def _shared(session: Federation, options: Options) -> Iterator[dict[int, int]]:
    """Yield rank -> agent id for each agent that several ranks use."""
    alike: defaultdict[object, list[tuple[int, int]]] = defaultdict(list)
    used = agents_of_ranks(session, options)
    for rank in session.ranks:
        for agent, index in used[rank.number]:
            alike[rank.run, rank.boot or rank.hostname, index].append((rank.number, agent))
    several = [candidates for candidates in alike.values() if len(candidates) > 1]  # few jobs: spans take a while
    domains = {rank: at for at, each in enumerate(session.clock_domains) for rank in each.ranks} if several else {}
    for near in several:
        for candidates in by_key((domains.get(number), (number, agent)) for number, agent in near).values():
            users: defaultdict[object, dict[int, int]] = defaultdict(dict)
            for number, agent in candidates if len(candidates) > 1 else ():  # reading addresses takes half of the time
                for address in session.reader(number).rows(_ADDRESS, (agent,)):
                    users[address][number] = agent
            yield from (ranks for ranks in users.values() if len(ranks) > 1)


def _parts(
    reader: RankReader, agents: Mapping[int, set[int]], active: Times, options: Options
) -> dict[int, tuple[Ints, Ints, Ints]]:
    """Return agent -> start, end [ns] and number in `PARTS` of its pieces of time, for the shared agents of a rank."""
    reading, names = RankReading.of(reader, {}, options), OperationNames()
    ops = read_ops(reading, names)
    kinds = kinds_of(ops, load(options.categories), names)
    by_agent = dict.fromkeys(agents[reader.rank.number], (*NOTHING, NOTHING[0]))
    for _, agent, rows, (low, high) in lanes_in_time(reading, active.get(reader.rank.number), ops):
        if agent in by_agent:
            kind, start, end = kinds[rows], *(np.clip(side[rows], low, high) for side in (ops.start, ops.end))
            unions = [union(start[kind == number], end[kind == number]) for number in range(len(KINDS))]
            unions.append((np.array([low]), np.array([high])))
            start, end = (np.concatenate(side) for side in zip(*unions, strict=True))
            by_agent[agent] = start, end, np.repeat(np.arange(len(PARTS)), [len(side) for side, _ in unions])
    return by_agent


def divided_among(parts: Mapping[int, tuple[Ints, Ints, Ints]]) -> dict[int, Union]:
    """Return rank -> start and end of the times in which other ranks have an agent [ns].

    Args:
        parts: rank -> start, end [ns] and number in `PARTS` of its time of the agent: of several parts at once the
            first has it, and the last, idle, covers all of its time.

    >>> computes, idles = (np.array([0]), np.array([5]), np.array([0])), (np.array([0]), np.array([9]), np.array([3]))
    >>> had = divided_among({0: idles, 1: computes})
    >>> [column.tolist() for column in had[0]], had[1][0][1].item(), had[1][1][0].item()
    ([[0], [5]], 5, 0)
    """
    kept: dict[int, list[Union]] = {rank: [] for rank in parts}
    before = NOTHING
    for part in range(len(PARTS)):
        for rank in sorted(parts):
            start, end, of = parts[rank]
            taken = union(start[of == part], end[of == part])
            mine = outside(Pieces.each(*taken), before)
            kept[rank].append((mine.start, mine.end))
            before = unite(before, taken)
    kept[min(parts)].append(gaps_between(before, ALWAYS, FOREVER))
    return {
        rank: gaps_between(union(*(np.concatenate(side) for side in zip(*spans, strict=True))), ALWAYS, FOREVER)
        for rank, spans in kept.items()
    }
