"""Estimates the remaining time of running work: by its pace, and over the stages of a command with their costs."""

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
_GRAPHS = 0.4  # of the time of reading graphs, where a part is kept
_DOUBT_S = 0.4  # seconds of work, after which the measured speed of the machine counts half
_END_S = 0.2  # seconds that a process takes to end
_SURE = 0.25  # of a stage, after which its pace counts fully: the first part includes the start of processes


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
    """The measured time of one core for one unit of a stage.

    Args:
        per_rank: time for each rank, regardless of its size [ms].
        per_megabyte: time for each megabyte of files [ms].
        is_shared: cores share the work, rank by rank.
        before: cost of the work that comes first, regardless of the amount: reading rows.
    """

    per_rank: float
    per_megabyte: float
    is_shared: bool = False
    before: Cost | None = None

    def seconds(self, ranks: int, size: float, cores: int, amount: float = 1) -> float:
        """Return the duration of a stage [s].

        Args:
            ranks: number of ranks.
            size: size of all their files [bytes].
            cores: number of cores that share the work.
            amount: number of units of the stage.
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
"""Measured on jobs of 16 to 256 ranks on two cores."""

_ONLY_BEFORE = dict.fromkeys((Stage.READING, Stage.ANEW), (Stage.FIRST,))
"""A stage -> stages that no longer come once it is over."""


class Pace:
    """The remaining time of work, if it goes on at the pace of the second half of the work done.

    The beginning of the work, such as starting processes, has a different pace.

    Args:
        start: time when the work began [s]; a report that nothing is done yet restarts it: that was preparation.
        at_once: amount that is under way at a time: a pace is measured after so much is done; until then the other work
            under way counts as half done.
    """

    def __init__(self, start: float, at_once: int) -> None:
        self._at_once = at_once
        self._course = [(start, 0)]
        self._total = 0

    def update(self, done: int, total: int, now: float) -> None:
        """Note the amount that is done, and the total amount, at a time [s]."""
        self._total = total
        if not done:
            self._course.clear()
        self._course.append((now, done))

    def left(self, now: float) -> float | None:
        """Return the remaining time at a time [s]; None: nothing is done yet.

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
    """A stage: its expected duration, and the time spent on it, without the stages that are part of it [s]."""

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
        """Note the amount of the stage that is done."""
        self.pace.update(done, of, self.took)
        self.share = done / of if done == of or done > self.at_once else 0.0

    @property
    def expected_so_far(self) -> float:
        """Expected duration of the part that is done [s]."""
        return self.expected * (1.0 if self.is_over else self.share)

    @property
    def is_kept(self) -> bool:
        """Whether a part of its answers was kept, judged by its speed."""
        return self.may_be_kept and self.took * _KEPT < self.expected_so_far

    def left(self, slowness: float) -> float:
        """Return the remaining time of the stage [s], if work takes `slowness` times as long as expected."""
        if self.is_over:
            return 0.0
        if not self.share:
            return max(slowness * self.expected - self.took, 0.0)
        weight, left = min(self.share / _SURE, 1.0), self.pace.left(self.took) or 0.0
        return weight * left + (1 - weight) * slowness * self.expected * (1 - self.share)


class Stages:
    """Reports the progress of a command: (elapsed time, estimated total time), in milliseconds.

    A running stage is judged by its own pace, once a quarter is done. Later stages are expected to take their measured
    time, multiplied by the slowness of the finished ones on this machine. A stage that was answered from kept results
    does not count for that, and later stages may be kept in part: they don't make the rest shorter. A stage that is not
    planned, or comes again, is part of the stage around it.

    Args:
        report: called with the progress; None: no report.
        planned: stage -> its amount.
        seconds: returns the measured duration of an amount of a stage [s].
        at_once: amount of a shared stage that is under way at a time.
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
        """Note that analyses know the results of replays of the job: later stages replay it anew if they need it."""
        self._skip(Stage.BLAME)
        if self._plan.keys() & {Stage.REPLAYS, Stage.CAUSES}:
            self._expect(Stage.ANEW)
            self._expect(Stage.GRAPHS, _GRAPHS)

    def leave(self) -> None:
        """Stop reporting: the work is done, or has failed."""
        self._report = None

    def _skip(self, *stages: Stage) -> None:
        for stage in stages:
            if not self._has_begun(stage):
                self._plan.pop(stage, None)

    def each(self, stage: Stage, items: Iterable[Item], of: int) -> Iterator[Item]:
        """Yield the items of a stage, and report each that is done.

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
        """Report the begin and the end of a stage; `amount`: its amount, if known now."""
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
        """Report the amount of a stage that is done."""
        if planned:
            self._pass()
            planned.step(done, of)
            self._tell()

    def _begin(self, stage: Stage, amount: float) -> _Planned | None:
        """Begin a stage and return it; None: it is not planned, or has begun before."""
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
        """Add the time since the last report to the innermost running stage."""
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
        """Return the ratio of actual to expected time of the work that is done."""
        known = [each for each in self._plan.values() if each.expected_so_far]
        new = [each for each in known if not each.is_kept]
        took, expected = sum(each.took for each in new), sum(each.expected_so_far for each in new)
        slowness = (took + _DOUBT_S) / (expected + _DOUBT_S)
        return slowness if len(new) == len(known) else max(slowness, 1.0)


class InTurn:
    """Reports works done one after the other as one; each later work is expected to take the mean time of the others.

    Args:
        report: called with (elapsed time, estimated total time) [ms]; None: no report.
        count: number of works.
    """

    def __init__(self, report: Progress | None, count: int) -> None:
        self._report, self._count = report, count
        self._took: list[int] = []

    @contextlib.contextmanager
    def __call__(self) -> Iterator[Progress | None]:
        """Yield the function for reports of the next work; None: no report.

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
