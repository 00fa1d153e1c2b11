"""Decides everything about a job before a row is written: places of ranks, clocks, planted facts, and the true time of
everything that each rank does.

With the meetings of ranks and the last of each, this is the answer key for analyses. Does not touch the disk.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import field, replace

import numpy as np

from rocpd.base import Ints, frozen
from rocpd.schema.versions import VERSIONS
from rocpd.simulator import timing, workload
from rocpd.simulator.conditions import Conditions, NodeClock, PlantedFact, conditions, make_clock, planted
from rocpd.simulator.layout import ExchangeKind, GroupKind, Layout, RankGroup, layout_of, places_of
from rocpd.simulator.options import CounterSet, JobOptions, Plant, Planting, check, parse
from rocpd.simulator.script import Template
from rocpd.simulator.timing import Meeting, RoundProgram, Timing
from rocpd.simulator.workload import SPECIAL_EVERY, Recording, Role


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
    times = timing.run(programs, condition, begin, timing.Exchanging(options.jitter, options.seed))
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
    special, plain = (_step_program(roles, kind) for kind in (True, False))
    middle = [plain if step % SPECIAL_EVERY else special for step in range(steps)]
    first, last = (RoundProgram([part(role) for role in roles], layout) for part in (workload.setup, workload.teardown))
    return [first, *middle, last]


@functools.lru_cache(16)
def _step_program(roles: tuple[Role, ...], special: bool) -> RoundProgram:
    return RoundProgram([workload.step(role, special) for role in roles], roles[0].layout)


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
