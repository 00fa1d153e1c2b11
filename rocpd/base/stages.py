"""How long work still takes that goes on: by its pace, and over the stages of a command, each with its cost."""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from rocpd.base import Progress, frozen

Item = TypeVar("Item")

_KEPT = 2  # times as fast as expected: a pass over ranks found a part of its answers kept
_GRAPHS = 0.4  # of reading graphs, where a part is kept
_DOUBT_S = 0.4  # of work says half of how fast a machine is
_END_S = 0.2  # that a process takes to end
_SURE = 0.25  # of a stage says at which pace it goes on: its first part took what processes need to start


class Stage(enum.Enum):
    """The stages of commands."""

    FIRST = "steps, first and last times, collectives that align clocks"
    READING = "rows, and what analyses do with them: as many as there are analyses"
    TABLES = "tables: as many as there are analyses"
    BLAME = "the job replayed by analyses"
    WRITING = "sections and charts: as many as there are"
    REPLAYS = "changes that the job is replayed with: as many as there are"
    CAUSES = "causes that are taken away one by one: as many as there are, and all of them"
    ANEW = "the job replayed where analyses knew the answer"
    GRAPHS = "graphs of ranks, where analyses did not read them"


@frozen
class Cost:
    """The time that one core was measured to take for one of a stage.

    Args:
        per_rank: for each rank, whatever its size [ms].
        per_megabyte: for each megabyte of files [ms].
        is_shared: cores share it, rank by rank.
        before: what comes first, whatever the amount: reading rows.
    """

    per_rank: float
    per_megabyte: float
    is_shared: bool = False
    before: Cost | None = None

    def seconds(self, ranks: int, size: float, cores: int, amount: float = 1) -> float:
        """Return how long a stage takes [s].

        Args:
            ranks: how many there are.
            size: of all their files [bytes].
            cores: that share the work.
            amount: how many of the stage there are.
        """
        seconds_each = (self.per_rank * ranks + self.per_megabyte * size / 1e6) / 1e3
        first = self.before.seconds(ranks, size, 1) if self.before else 0.0
        return (first + seconds_each * amount) / (max(min(cores, ranks), 1) if self.is_shared else 1)


COSTS = {
    Stage.FIRST: Cost(3.5, 3.3, is_shared=True),
    Stage.READING: Cost(0.83, 0.6, is_shared=True, before=Cost(11.4, 3.0)),
    Stage.TABLES: Cost(0.18, 0.025),
    Stage.BLAME: Cost(0.93, 1.15),
    Stage.GRAPHS: Cost(7.2, 6.8, is_shared=True),
    Stage.ANEW: Cost(0.93, 1.15),
    Stage.WRITING: Cost(0.1, 0.107),
    Stage.REPLAYS: Cost(0.0, 0.75),
    Stage.CAUSES: Cost(0.0, 0.6),
}
"""By jobs of 16 to 256 ranks on two cores."""

_ONLY_BEFORE = dict.fromkeys((Stage.READING, Stage.ANEW), (Stage.FIRST,))
"""A stage -> those that come no more once it is over."""


class Pace:
    """How long work takes that is still to be done, if it goes on as the second half of what is done.

    What began the work, such as starting processes, went at a pace of its own.

    Args:
        start: when the work began [s]; a report that nothing is done yet begins anew: it was preparation.
        at_once: how much is under way at a time: so much is done before a pace is measured; until then the rest of what
            is under way counts as half done.
    """

    def __init__(self, start: float, at_once: int) -> None:
        self._at_once = at_once
        self._course = [(start, 0)]
        self._total = 0

    def update(self, done: int, total: int, now: float) -> None:
        """Take in how much is done, of how much, at a time [s]."""
        self._total = total
        if not done:
            self._course.clear()
        self._course.append((now, done))

    def left(self, now: float) -> float | None:
        """Return how long it still takes at a time [s]; None: nothing is done yet.

        >>> pace = Pace(0.0, at_once=2)
        >>> pace.left(9.0) is None
        True
        >>> pace.update(2, 16, now=15.0)
        >>> pace.left(15.0), pace.left(16.0)
        (84.0, 83.0)
        >>> pace.update(4, 16, now=17.0)
        >>> pace.update(8, 16, now=27.0)
        >>> pace.left(27.0)
        20.0
        """
        last, done = self._course[-1]
        if not done:
            return None
        began, before = next(each for each in reversed(self._course) if each[1] * 2 <= done)
        if before and done - before >= self._at_once:
            each = (last - began) / (done - before)
        else:
            each = (last - self._course[0][0]) / (done + (self._at_once - 1) / 2)
        return max(each * (self._total - done) - (now - last), 0.0)


@dataclass(eq=False)
class _Planned:
    """A stage: how long it is expected to take, and how long it took without the stages that are part of it [s]."""

    expected: float
    at_once: int
    may_be_kept: bool
    took: float = 0.0
    share: float = 0.0
    has_begun: bool = False
    is_over: bool = False

    def __post_init__(self) -> None:
        self.pace = Pace(0.0, self.at_once)

    def step(self, done: int, of: int) -> None:
        """Take in how much of it is done."""
        self.pace.update(done, of, self.took)
        self.share = done / of if done == of or done > self.at_once else 0.0

    @property
    def expected_so_far(self) -> float:
        """How long what is done of it was expected to take [s]."""
        return self.expected * (1.0 if self.is_over else self.share)

    @property
    def is_kept(self) -> bool:
        """Whether a part of what is done was kept, by how quick it was."""
        return self.may_be_kept and self.took * _KEPT < self.expected_so_far

    def left(self, slowness: float) -> float:
        """Return how long it still takes, where work takes so many times as long as expected [s]."""
        if self.is_over:
            return 0.0
        if not self.share:
            return max(slowness * self.expected - self.took, 0.0)
        weight, left = min(self.share / _SURE, 1.0), self.pace.left(self.took) or 0.0
        return weight * left + (1 - weight) * slowness * self.expected * (1 - self.share)


class Stages:
    """Reports how far a command is: (time that it took, time that it takes in all), in milliseconds.

    A stage that goes on is judged by its own pace, once a quarter is done. Those that come take what they were measured
    to take, by how much slower the others went here than where that was measured. A stage that was answered from what
    is kept says nothing about that, and those that follow it may be kept in part: they don't make the rest shorter.
    What is not planned, or comes again, is part of the stage around it.

    Args:
        report: called with how far it is; None: nobody asks.
        planned: stage -> how many of it there are.
        seconds: returns how long so many of a stage were measured to take [s].
        at_once: how much of a stage that cores share is under way at a time.
        clock: returns the time [s].
    """

    def __init__(
        self,
        report: Progress | None,
        planned: Mapping[Stage, float] | None = None,
        seconds: Callable[[Stage, float], float] = lambda _stage, _amount: 0.0,
        at_once: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._seconds, self._at_once, self._clock = report, seconds, at_once, clock
        self._start = self._last = clock()
        self._plan: dict[Stage, _Planned] = {}
        self._open: list[_Planned] = []
        for stage, amount in (planned or {}).items():
            self._expect(stage, amount)

    def _expect(self, stage: Stage, amount: float = 1) -> None:
        if self._report and not self._has_begun(stage):
            is_pass = COSTS[stage].is_shared
            self._plan[stage] = _Planned(self._seconds(stage, amount), self._at_once if is_pass else 1, is_pass)

    def know_blame(self) -> None:
        """Take it that analyses know what replays of the job say: who replays it makes it anew, if anybody does."""
        self._skip(Stage.BLAME)
        if self._plan.keys() & {Stage.REPLAYS, Stage.CAUSES}:
            self._expect(Stage.ANEW)
            self._expect(Stage.GRAPHS, _GRAPHS)

    def leave(self) -> None:
        """Report no more: what was to be done is done, or has failed."""
        self._report = None

    def _skip(self, *stages: Stage) -> None:
        for stage in stages:
            if not self._has_begun(stage):
                self._plan.pop(stage, None)

    def each(self, stage: Stage, items: Iterable[Item], of: int) -> Iterator[Item]:
        """Yield the items that a stage consists of, and report each that is done.

        >>> now, seen = [0.0], []
        >>> costs = lambda _, of: 2.0 * of
        >>> stages = Stages(lambda *told: seen.append(told), {Stage.TABLES: 4}, costs, 1, lambda: now[0])
        >>> for _ in stages.each(Stage.TABLES, range(4), of=4):
        ...     now[0] += 1.0
        >>> seen[0], seen[1], seen[2], seen[-1]
        ((0, 8200), (1000, 8200), (2000, 4200), (4000, 4200))
        """
        with self.during(stage, 0 if COSTS[stage].is_shared else of) as planned:
            for done, item in enumerate(items, 1):
                yield item
                self.step(planned, done, of)

    @contextlib.contextmanager
    def during(self, stage: Stage, amount: float = 0) -> Iterator[_Planned | None]:
        """Report the begin and the end of a stage; `amount` is how many of it there are, where that is known now."""
        planned = self._begin(stage, amount)
        try:
            yield planned
        finally:
            if planned:
                self._tell()
                planned.is_over = True
                self._open.remove(planned)
                self._skip(*_ONLY_BEFORE.get(stage, ()))
                self._tell()

    def step(self, planned: _Planned | None, done: int, of: int) -> None:
        """Report how much of a stage is done."""
        if planned:
            self._pass()
            planned.step(done, of)
            self._tell()

    def _begin(self, stage: Stage, amount: float) -> _Planned | None:
        """Return a stage that begins; None: it is not planned, or has begun before."""
        planned = self._plan.get(stage)
        if planned is None or planned.has_begun:
            return None
        self._pass()
        planned.has_begun = True
        if amount:
            planned.expected = self._seconds(stage, amount)
        self._open.append(planned)
        self._tell()
        return planned

    def _has_begun(self, stage: Stage) -> bool:
        return stage in self._plan and self._plan[stage].has_begun

    def _pass(self) -> None:
        """Take the time since the last report for the stage that goes on, without those that it is part of."""
        now = self._clock()
        if self._open:
            self._open[-1].took += now - self._last
        self._last = now

    def _tell(self) -> None:
        self._pass()
        if self._report:
            passed, slowness = self._last - self._start, self._slowness()
            left = sum(planned.left(slowness) for planned in self._plan.values()) + _END_S
            self._report(round(passed * 1000), round((passed + left) * 1000))

    def _slowness(self) -> float:
        """Return how many times as long as expected the work takes here, by what is done of it."""
        known = [each for each in self._plan.values() if each.expected_so_far]
        new = [each for each in known if not each.is_kept]
        took, expected = sum(each.took for each in new), sum(each.expected_so_far for each in new)
        slowness = (took + _DOUBT_S) / (expected + _DOUBT_S)
        return slowness if len(new) == len(known) else max(slowness, 1.0)


class InTurn:
    """Reports what is done one after the other as one; what is to come takes as long as the mean of the others.

    Args:
        report: called with (time that passed, time that all takes) [ms]; None: nobody asks.
        count: how many there are.
    """

    def __init__(self, report: Progress | None, count: int) -> None:
        self._report, self._count = report, count
        self._took: list[int] = []

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Progress | None]:
        """Yield what is called while the next one is done; None: nobody asks.

        >>> seen = []
        >>> in_turn = InTurn(lambda done, of: seen.append((done, of)), 2)
        >>> for took in 4, 6:
        ...     with in_turn() as report:
        ...         report(2, took)
        >>> seen
        [(2, 8), (6, 10)]
        """
        report, before, whole = self._report, sum(self._took), 0

        def of_all(done: int, of: int) -> None:
            nonlocal whole
            whole = of
            to_come = max(self._count - len(self._took) - 1, 0) * (before + of) // (len(self._took) + 1)
            if report:
                report(before + done, before + of + to_come)

        yield of_all if report else None
        self._took.append(whole)
