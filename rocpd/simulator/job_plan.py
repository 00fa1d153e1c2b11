"""Decides everything about a job before a row is written: places of ranks, clocks, planted facts, and the true time of
everything that each rank does. Does not touch the disk.

With the meetings of ranks and the last of each, this is the answer key for analyses. True times know no clocks. A round
is the setup, one step, or the teardown. Each op of its template gives an anchor. Ranks of one group meet in exchanges,
and a stage of a pipeline meets its neighbours; between these, each stage goes on alone, and the work of a lane starts
after its launch and after the work before it.

Lanes work on all steps, or on all ranks, at the same time: a row of `anchors` and an element of `stretch` for each.
`before` is the duration of the work before a piece; a piece that the GPU never waited for starts this long after the
first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from rocpd.base import Floats, Ints, frozen
from rocpd.schema.versions import VERSIONS
from rocpd.simulator import workload
from rocpd.simulator.conditions import Conditions, NodeClock, PlantedFact, conditions, make_clock, planted
from rocpd.simulator.layout import ExchangeKind, ExchangeRequest, GroupKind, Layout, RankGroup, layout_of, places_of
from rocpd.simulator.options import CounterSet, JobOptions, Plant, Planting, check, parse
from rocpd.simulator.script import LANE_GAP, After, Exchange, Lane, LaneEnd, Template, Time
from rocpd.simulator.workload import SPECIAL_EVERY, Recording, Role


def time_columns(times: Sequence[Time]) -> tuple[Ints, Ints]:
    """Return the anchors and the distances from them [ns]."""
    anchor, fixed = np.array(times, dtype=np.int64).reshape(-1, 2).T
    return anchor, fixed


class LaneTimes:
    """A lane as arrays, one element for each piece of work."""

    def __init__(self, lane: Lane) -> None:
        self.start = lane.start
        self.scales = lane.scales
        self.anchor, self.fixed = time_columns(lane.ready)
        self.lengths = np.array(lane.lengths, dtype=np.int64)
        self.before = np.concatenate(([0], np.cumsum(self.lengths + LANE_GAP)[:-1]))

    def runs(self, anchors: Ints, stretch: Floats) -> tuple[Ints, Ints]:
        """Return start and end of each piece [ns]: a row for each row of `anchors`."""
        factor = (stretch if self.scales else np.ones(1))[:, None]
        before, lengths = scaled(factor, self.before), scaled(factor, self.lengths)
        ready = anchors[:, self.anchor] + self.fixed
        begin = anchors[:, self.start.anchor] + self.start.fixed
        # Start of the first piece if the GPU had no pause until this one; the latest of these so far applies.
        start: Ints = np.maximum.accumulate(np.maximum(ready - before, begin[:, None]), axis=1) + before
        return start, start + lengths


def scaled(factor: Floats, ns: Ints | int) -> Ints:
    """Return times multiplied by a factor, in whole ns."""
    return (factor * ns).astype(np.int64)


@frozen
class Meeting:
    """An exchange, with all groups that make it at this point.

    Args:
        exchange: the exchange; of a transfer, the send.
        members: ranks, a row for each group; of a transfer the sender and the receiver.
        start: anchor at which each member starts.
        end: anchor at which each member ends.
    """

    exchange: ExchangeRequest
    members: Ints
    start: Ints
    end: Ints


@frozen
class Latest:
    """An event that ranks of a stage wait for: `anchor` gets the latest time, plus a stall."""

    ranks: slice
    anchor: int
    times: tuple[Time, ...]
    lanes: tuple[tuple[LaneTimes, int], ...]
    stalls: bool

    def set(self, anchors: Ints, stretch: Floats, stall: Ints) -> None:
        """Set the anchor in the rows of the stage."""
        here = anchors[self.ranks]
        terms = [here[:, time.anchor] + time.fixed for time in self.times]
        terms += [lane.runs(here, stretch[self.ranks])[1][:, position] for lane, position in self.lanes]
        here[:, self.anchor] = functools.reduce(np.maximum, terms)
        if self.stalls:
            here[:, self.anchor] += stall[self.ranks]


Move: TypeAlias = Latest | Meeting


class RoundProgram:
    """The templates of one round, one per pipeline stage, as moves in a feasible order."""

    def __init__(self, templates: Sequence[Template], layout: Layout) -> None:
        self.templates = tuple(templates)
        self.width = 1 + max(len(template.ops) for template in templates)
        self._last = np.array([len(templates[layout.stage(rank)].ops) for rank in range(layout.ranks)], dtype=np.int64)
        self._moves = tuple(_Ordering(templates, layout).moves())

    @property
    def meetings(self) -> tuple[Meeting, ...]:
        """The exchanges, in order."""
        return tuple(move for move in self._moves if isinstance(move, Meeting))

    def run(self, anchors: Ints, stretch: Floats, stall: Ints, durations: Callable[[Meeting], Ints]) -> Ints:
        """Fill `anchors[rank, :]`, whose first column is given; return the end of each rank [ns].

        Args:
            anchors: anchors of one round, numbered as in `template.Time`.
            stretch: factor on the duration of kernels, by rank.
            stall: stall of the host, by rank [ns].
            durations: returns the time from the last arrival to the end of each member of each group [ns].
        """
        for move in self._moves:
            if isinstance(move, Latest):
                move.set(anchors, stretch, stall)
            else:
                arrived = anchors[move.members, move.start].max(axis=1, keepdims=True)
                anchors[move.members, move.end] = arrived + durations(move)
        return anchors[np.arange(len(anchors)), self._last]


class _Ordering:
    """Finds the order of moves: each stage goes on until it needs another stage."""

    def __init__(self, templates: Sequence[Template], layout: Layout) -> None:
        self._ops = [template.ops for template in templates]
        self._lanes = [[LaneTimes(lane) for lane in template.lanes] for template in templates]
        self._layout = layout
        self._at = [0] * len(templates)  # the next op of each stage

    def moves(self) -> Iterator[Move]:
        """Yield all moves."""
        while any(self._next(stage) for stage in range(len(self._ops))):
            before = list(self._at)
            for stage in range(len(self._ops)):
                yield from self._of_stage(stage)
            if before == self._at:
                raise RuntimeError(f"pipeline stages wait for each other, at ops {before}")

    def _next(self, stage: int) -> After | Exchange | None:
        ops, at = self._ops[stage], self._at[stage]
        return ops[at] if at < len(ops) else None

    def _of_stage(self, stage: int) -> Iterator[Move]:
        """Yield the moves that a stage can make now."""
        while (op := self._next(stage)) is not None:
            if isinstance(op, After):
                yield self._latest(op, stage)
                self._at[stage] += 1
                continue
            stages = self._stages(op.request, stage)
            if not all(self._is_answer(op.request, stage, other) for other in stages):
                return
            yield self._meeting(op.request, stages)
            for other in stages:
                self._at[other] += 1

    def _stages(self, asked: ExchangeRequest, stage: int) -> list[int]:
        """Return the stages that make an exchange together; for a transfer the sender's first."""
        if asked.group is GroupKind.WORLD:
            return list(range(len(self._ops)))
        if not asked.peer:
            return [stage]
        return [stage, stage + asked.peer] if asked.kind is ExchangeKind.SEND else [stage + asked.peer, stage]

    def _is_answer(self, asked: ExchangeRequest, stage: int, other: int) -> bool:
        """Whether another stage has reached its side of an exchange."""
        op = self._next(other)
        if not isinstance(op, Exchange) or op.request.group is not asked.group:
            return False
        kind, peer = op.request.kind, op.request.peer
        if not asked.peer or other == stage:
            return (kind, peer) == (asked.kind, asked.peer)
        return kind is not asked.kind and peer == -asked.peer

    def _latest(self, op: After, stage: int) -> Latest:
        latest: dict[int, int] = {}
        for term in op.terms:
            if isinstance(term, Time):
                latest[term.anchor] = max(term.fixed, latest.get(term.anchor, 0))
        lanes = ((self._lanes[stage][t.lane], t.position) for t in op.terms if isinstance(t, LaneEnd))
        times = tuple(Time(anchor, fixed) for anchor, fixed in latest.items())
        return Latest(self._layout.of_stage(stage), self._at[stage] + 1, times, tuple(lanes), op.stalls)

    def _meeting(self, asked: ExchangeRequest, stages: Sequence[int]) -> Meeting:
        first, last = self._layout.of_stage(stages[0]), self._layout.of_stage(stages[-1])
        if asked.peer:
            members = np.stack([np.arange(first.start, first.stop), np.arange(last.start, last.stop)], axis=1)
        else:
            groups = self._layout.members(asked.group)
            members = groups[(groups[:, 0] >= first.start) & (groups[:, 0] < last.stop)]
        of_members = [self._layout.stage(rank) for rank in members[0].tolist()]
        ops = [op for op in map(self._next, of_members) if isinstance(op, Exchange)]
        start = np.array([op.start for op in ops], dtype=np.int64)
        end = np.array([self._at[stage] + 1 for stage in of_members], dtype=np.int64)
        return Meeting(ops[0].request, members, start, end)


LEAST_JITTER = 5.0
"""Smallest distance between the ends of the members of an exchange [us], unless the options ask for less."""

_ROUND_GAP = 5000  # between two rounds [ns]
_LATENCY = 18_000  # of an exchange of any size [ns]
_CONNECTING = 2_500_000  # additional time of the first exchange of a group [ns]
_GROUP_RATE, _LINK_RATE = 320.0, 50.0  # bytes per ns, of a group and between two ranks


@frozen
class Timing:
    """True times [ns] of a job.

    Args:
        anchors: `[round, rank, anchor]`, numbered as in `template.Time`.
        end: end of each rank.
    """

    anchors: Ints
    end: Ints


class Exchanging:
    """The durations of exchanges."""

    def __init__(self, jitter: float, seed: int) -> None:
        """Let the members of each exchange end up to `jitter` us apart."""
        self._least, self._most = min(LEAST_JITTER, jitter) * 1000, jitter * 1000
        self._random = np.random.default_rng([seed, 4])

    def durations(self, meeting: Meeting, factor: Floats) -> Ints:
        """Return the time from the last arrival to the end of each member of each group [ns].

        Args:
            meeting: the exchange.
            factor: factor on the duration of transfers: a row for each group.
        """
        exchange, shape = meeting.exchange, meeting.members.shape
        rate = _LINK_RATE if exchange.peer else _GROUP_RATE
        shortest = _LATENCY + exchange.connects * _CONNECTING + exchange.size / rate * factor
        chance = self._random.random((shape[0], shape[1] + 1))
        apart = self._least + (self._most - self._least) * chance[:, :1]
        # End of each member between the first (0) and the last (1) of its group.
        share = chance[:, 1:] - np.minimum.reduce(chance[:, 1:], axis=1, keepdims=True)
        if shape[1] > 1:
            share /= np.maximum.reduce(share, axis=1, keepdims=True)
        return (shortest + apart * share).astype(np.int64)


def run_programs(
    programs: Sequence[RoundProgram], conditions: Conditions, begin: Ints, exchanging: Exchanging
) -> Timing:
    """Return the times of a job.

    Args:
        programs: one for each round.
        conditions: conditions of each round.
        begin: time at which each rank begins the first round [ns].
        exchanging: the durations of exchanges.
    """
    anchors = np.zeros((len(programs), len(begin), max(program.width for program in programs)), dtype=np.int64)
    now = begin
    for n, program in enumerate(programs):
        anchors[n, :, 0] = now + conditions.delay[n]

        def durations(meeting: Meeting, number: int = n) -> Ints:
            longer = conditions.transfers(number, meeting.exchange.group, meeting.members)
            return exchanging.durations(meeting, longer)

        now = program.run(anchors[n], conditions.stretch[n], conditions.stall[n], durations) + _ROUND_GAP
    return Timing(anchors, now)


@frozen
class TrueCollective:
    """A collective of a group of two ranks or more.

    Args:
        kind: kind of the exchange.
        group: its members.
        size: bytes.
        step: its step; None: before the first or after the last.
        starts: true time at which the kernel of each member starts [ns].
        ends: true time at which it ends [ns].
        last: members that came last: several if they came within the jitter of each other.
    """

    kind: ExchangeKind
    group: RankGroup
    size: int
    step: int | None
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def end(self) -> int:
        """True time at which the last member ends [ns]."""
        return max(self.ends)


@frozen
class TrueTransfer:
    """A transfer between stages of a pipeline; `sent` and `received` are the true times of its two kernels [ns]."""

    sender: int
    receiver: int
    size: int
    step: int
    sent: tuple[int, int]
    received: tuple[int, int]


DISK_STATES: tuple[str, ...] = ("plain", "wal_header", "leftover_wal", "hot_journal")
"""State of a file on disk; all but `plain` occur only with faults.

`wal_header`: in WAL mode, closed well. `leftover_wal`, `hot_journal`: with leftovers of a killed writer.
"""

_PROCESS_ROOM = 4_000_000  # from the start of a process to its first call [ns]


@frozen
class RankPlan:
    """The place of a rank, and the form of its file.

    Args:
        start_ns: true time at which the process starts.
        empty: whether its file has no events.
        idle: whether it has no GPU work, and is in no group.
        lost: whether its file is missing.
    """

    number: int
    node: int
    local_rank: int
    local_size: int
    pid: int
    guid: str
    start_ns: int
    version: str
    disk_state: str
    empty: bool
    idle: bool = False
    lost: bool = False


@frozen
class JobPlan:
    """The truth about a job.

    Args:
        layout: groups of ranks.
        steps: number of steps.
        facts: the planted facts with their targets.
        nodes: clocks, by node number.
        ranks: their plans, by rank; ranks without GPU work come last.
        conditions: speeds of everything.
        timing: true times of everything.
    """

    options: JobOptions
    layout: Layout
    steps: int
    facts: tuple[PlantedFact, ...]
    nodes: tuple[NodeClock, ...]
    ranks: tuple[RankPlan, ...]
    conditions: Conditions = field(repr=False, compare=False)
    timing: Timing = field(repr=False, compare=False)

    @property
    def groups(self) -> tuple[RankGroup, ...]:
        """Groups of two ranks or more; each has a communicator."""
        return self.layout.groups()

    @property
    def planting(self) -> Planting:
        """The facts to plant."""
        return planting_of(self.options)

    def fact(self, plant: Plant) -> PlantedFact | None:
        """Return a planted fact, or None."""
        return next((fact for fact in self.facts if fact.plant is plant), None)

    def factor(self, plant: Plant) -> float:
        """Return the factor on a duration by a planted fact; 1 if it is not planted."""
        fact = self.fact(plant)
        return fact.factor if fact else 1.0

    @property
    def straggler_rank(self) -> int | None:
        """Rank with a slow GPU throughout, or None."""
        fact = self.fact(Plant.STRAGGLER)
        return fact.rank if fact else None

    @property
    def slow_step(self) -> int | None:
        """Step in which all ranks are slow, or None."""
        fact = self.fact(Plant.SLOW_STEP)
        return fact.steps[0] if fact else None

    def collectives(self) -> tuple[TrueCollective, ...]:
        """Return all collectives of two ranks or more, round by round, in their order."""
        made = []
        for step, meeting, members, starts, ends in self._exchanges():
            if not meeting.exchange.peer and len(members) > 1:
                # Members may end this far apart and go on at once: one within it of the last is as late.
                is_last = starts >= starts.max() - self.options.jitter * 1000
                group = RankGroup(GroupKind(meeting.exchange.group), tuple(members.tolist()))
                what = meeting.exchange.kind, group, meeting.exchange.size, step
                times = tuple(starts.tolist()), tuple(ends.tolist())
                made.append(TrueCollective(*what, *times, tuple(members[is_last].tolist())))
        return tuple(made)

    def transfers(self) -> tuple[TrueTransfer, ...]:
        """Return the transfers between stages of a pipeline, step by step."""
        made = []
        for step, meeting, members, starts, ends in self._exchanges():
            if meeting.exchange.peer and step is not None:
                sent, received = zip(starts.tolist(), ends.tolist(), strict=True)
                sender, receiver = members.tolist()
                made.append(TrueTransfer(sender, receiver, meeting.exchange.size, step, sent, received))
        return tuple(made)

    def role(self, rank: int) -> Role:
        """Return the role of a rank that computes, on which its calls depend."""
        return Role(self.options.profile, self.layout, self.layout.stage(rank), self.planting)

    def life(self, rank: int) -> Iterator[tuple[Template, Ints]]:
        """Yield the template of each round of a rank that computes, with its anchors in true time [ns]."""
        for program, anchors in zip(self._programs(), self.timing.anchors[:, rank], strict=True):
            yield program.templates[self.layout.stage(rank)], anchors

    def _exchanges(self) -> Iterator[tuple[int | None, Meeting, Ints, Ints, Ints]]:
        """Yield step, meeting, members, starts and ends of every exchange of every group."""
        programs = self._programs()
        for n, program in enumerate(programs):
            step = n - 1 if 0 < n < len(programs) - 1 else None
            for meeting in program.meetings:
                columns = (self.timing.anchors[n][meeting.members, at] for at in (meeting.start, meeting.end))
                for row in zip(meeting.members, *columns, strict=True):
                    yield step, meeting, *row

    def _programs(self) -> list[RoundProgram]:
        return _programs(self.options.profile, self.layout, self.planting, self.steps)


def planting_of(options: JobOptions) -> Planting:
    """Return the facts to plant, and whether many counters are recorded."""
    return Planting(parse(options.plant).sizes, options.counters == CounterSet.MANY)


def plan(options: JobOptions) -> JobPlan:
    """Plan a whole job; equal options give an equal plan.

    Raises:
        UsageError: the options make no sense.
    """
    check(options)
    planting = planting_of(options)
    layout = layout_of(options)
    random = np.random.default_rng([options.seed, 0])
    steps = _steps(options, Role(options.profile, layout, 0, planting))
    nodes = tuple(make_clock(random, n, options.drift) for n in range(options.nodes))
    straggler = int(random.random() * options.ranks)
    slow = 1 + int(random.random() * (steps - 1))
    base_pid = 4000 + int(random.random() * 20000)
    facts = planted(planting, options, steps, straggler, slow)
    lost = [fact.rank for fact in facts if fact.plant is Plant.LOST_RANK]
    places = places_of(options)
    ranks = tuple(_rank_plan(options, nodes, places, rank, base_pid, rank in lost) for rank in range(len(places)))
    condition = conditions(facts, options, steps)
    begin: Ints = np.array([rank.start_ns + _PROCESS_ROOM for rank in ranks if not rank.idle], dtype=np.int64)
    programs = _programs(options.profile, layout, planting, steps)
    times = run_programs(programs, condition, begin, Exchanging(options.jitter, options.seed))
    nodes = tuple(_with_steps(node, clock, facts, times) for node, clock in enumerate(nodes))
    return JobPlan(options, layout, steps, facts, nodes, ranks, condition, times)


def _steps(options: JobOptions, role: Role) -> int:
    if options.events_per_rank is None:
        return options.steps
    recorder = Recording(options.rccl, role.planting)
    special, plain = (recorder.recorded(workload.step(role, kind)).events for kind in (True, False))
    around = sum(recorder.recorded(part(role)).events for part in (workload.setup, workload.teardown))
    mean = plain + (special - plain) / SPECIAL_EVERY
    return max(1, round((options.events_per_rank - around) / mean))


@functools.lru_cache(4)
def _programs(profile: str, layout: Layout, planting: Planting, steps: int) -> list[RoundProgram]:
    """Return the program of each round."""
    roles = tuple(Role(profile, layout, stage, planting) for stage in range(layout.pp))
    special, plain = (RoundProgram([workload.step(role, kind) for role in roles], layout) for kind in (True, False))
    middle = [plain if step % SPECIAL_EVERY else special for step in range(steps)]
    first, last = (RoundProgram([part(role) for role in roles], layout) for part in (workload.setup, workload.teardown))
    return [first, *middle, last]


def _with_steps(node: int, clock: NodeClock, facts: tuple[PlantedFact, ...], times: Timing) -> NodeClock:
    """Return the clock of a node with its planted jump, at the start of the struck step."""
    for fact in facts:
        if fact.plant is Plant.CLOCK_STEP and fact.node == node:
            at = int(times.anchors[fact.steps[0] + 1, :, 0].min())
            return replace(clock, step_ns=int(fact.size * 1000), step_at=at)
    return clock


def _rank_plan(
    options: JobOptions, nodes: tuple[NodeClock, ...], places: list[int], rank: int, base_pid: int, lost: bool
) -> RankPlan:
    node = places[rank]
    local_rank = places[:rank].count(node)
    random = np.random.default_rng([options.seed, 1, rank])
    start = int(random.random() * options.start_spread * 1e9)
    turn = rank + options.seed
    return RankPlan(
        number=rank,
        node=node,
        local_rank=local_rank,
        local_size=places.count(node),
        # The same on every node, as in containers: a pid does not identify a process.
        pid=base_pid + 7 * local_rank,
        guid=_guid(random, int(nodes[node].local(np.array([start]))[0])),
        start_ns=start,
        version=VERSIONS[turn % len(VERSIONS)] if options.faults else options.version,
        disk_state=DISK_STATES[turn % len(DISK_STATES)] if options.faults else "plain",
        empty=options.faults and rank % 8 == 6,
        idle=rank >= options.ranks,
        lost=lost,
    )


def _guid(random: np.random.Generator, init_ns: int) -> str:
    """Return a GUID in rocprofv3's form: milliseconds of its clock, then version, variant and random bits."""
    millis = f"{init_ns // 1_000_000:012x}"
    low, mid, high = (int(x * 2**16) for x in random.random(3))
    variant = 0x8000 | int(random.random() * 2**14)
    return f"{millis[:8]}-{millis[8:]}-7{millis[9:]}-{variant:04x}-{low:04x}{mid:04x}{high:04x}"
