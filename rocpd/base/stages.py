"""How long work still takes that goes on: by its pace, and over stages of which each has a pace of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rocpd.base import Progress, frozen

_KEPT = 8  # times as fast as expected: a stage was answered from what is kept
_FEWEST = 0.1  # of a stage: its first part took what processes need to start


@frozen
class Cost:
    """The time that one core was measured to take for a stage of work.

    Args:
        per_rank: for each rank, whatever its size [ms].
        per_megabyte: for each megabyte of files [ms].
    """

    per_rank: float
    per_megabyte: float

    def seconds(self, ranks: int, size: float, cores: int = 1) -> float:
        """Return how long a stage takes [s].

        Args:
            ranks: how many there are.
            size: of all their files [bytes].
            cores: that share the work.
        """
        return (self.per_rank * ranks + self.per_megabyte * size / 1e6) / 1e3 / max(min(cores, ranks), 1)


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


class Stages:
    """Reports how far work in stages is: (time that it took, time that it takes in all), in milliseconds.

    A stage that goes on is judged by its own pace. Those that come take what they were measured to take, by how much
    slower the stages before went here than where that was measured. A stage that was answered from what is kept says
    nothing about that, and those that follow it may be kept in part: they don't make the rest shorter. A stage that was
    passed over is still to come.

    Args:
        report: called with how far it is; None: nobody asks.
        expected: how long each stage was measured to take [s].
        at_once: how much of a stage is under way at a time.
        clock: returns the time [s].
    """

    def __init__(
        self,
        report: Progress | None,
        expected: Sequence[float],
        at_once: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._expected, self._at_once, self._clock = report, tuple(expected), at_once, clock
        self._start = self._since = clock()
        self._took = [0.0] * len(self._expected)
        self._stage, self._share, self._later = 0, 0.0, 0.0
        self._pace = Pace(self._start, at_once)

    def step(self, stage: int, done: int = 0, of: int = 1) -> None:
        """Report how much of a stage is done; those before it are over.

        >>> now, seen = [0.0], []
        >>> course = Stages(lambda done, of: seen.append((done, of)), [2.0, 8.0], 1, lambda: now[0])
        >>> course.step(0)
        >>> now[0] = 2.0
        >>> course.step(0, 2, 4)
        >>> now[0] = 4.0
        >>> course.step(1)
        >>> now[0] = 10.0
        >>> course.step(1, 2, 4)
        >>> seen
        [(0, 10000), (2000, 20000), (4000, 20000), (10000, 16000)]
        """
        now = self._clock()
        if stage > self._stage:
            self._took[self._stage] = now - self._since
            self._later += sum(self._expected[self._stage + 1 : stage])
            self._stage, self._since, self._share, self._pace = stage, now, 0.0, Pace(now, self._at_once)
        if done:
            self._pace.update(done, of, now)
            self._share = done / of if done == of or done > max(self._at_once, _FEWEST * of) else 0.0
        if self._report:
            passed = now - self._start
            self._report(round(passed * 1000), round((passed + self._left(now)) * 1000))

    def _left(self, now: float) -> float:
        """Return how long the work still takes [s]."""
        passed, slowness = now - self._since, self._slowness(now)
        left = self._pace.left(now) if self._share else None
        if left is None:
            left = max(slowness * self._expected[self._stage] - passed, 0.0)
        return left + slowness * (self._later + sum(self._expected[self._stage + 1 :]))

    def _slowness(self, now: float) -> float:
        """Return how many times as long as expected the work takes here, by what is done of it."""
        took = [*self._took[: self._stage], now - self._since]
        expected = [*self._expected[: self._stage], self._expected[self._stage] * self._share]
        pairs = [(took, of) for took, of in zip(took, expected, strict=True) if of]
        new = [pair for pair in pairs if pair[0] * _KEPT > pair[1]]
        slowness = sum(pair[0] for pair in new) / sum(pair[1] for pair in new) if new else 1.0
        return slowness if len(new) == len(pairs) else max(slowness, 1.0)
