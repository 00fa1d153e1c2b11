"""The input of every analysis: the session, the options, work on each rank, and how rows are divided.

Also the columns that divisions put in front of a table, and those of a distribution.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Self, TypeAlias

from rocpd.base import Answer, RocpdError, Row
from rocpd.base.stages import Stage
from rocpd.facts.agent_time import times_of_job
from rocpd.facts.rank import By, Options, RankReading, RankWindow
from rocpd.facts.spread import Spread
from rocpd.facts.units import Times, steps_of_ranks, warm_steps, windows
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.federate.select.align import Shift
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.events import INVALID
from rocpd.summary.findings import Finding
from rocpd.summary.result import Field, Summary, TableDefinition

RANK = Field("rank", "", "rank number")
AGENT = Field("agent", "", "agent id in the rank's file; NULL for events of no agent")
DIVISIONS: dict[By | None, tuple[Field, ...]] = {
    None: (),
    By.RANK: (RANK,),
    By.HOST: (Field("hostname", "", "host name"),),
    By.RUN: (Field("run", "", "number of the run, as `rocpd info` has it"),),
    By.COMMAND: (Field("command", "", "command line of the process"),),
    By.AGENT: (RANK, AGENT),
    By.STREAM: (RANK, Field("stream", "", "HIP stream id; NULL for events of no stream")),
    By.DISPATCH: (RANK, Field("dispatch", "", "number of the dispatch in its rank, as the profiler counts")),
    By.API: (Field("api", "", "function that launched it"),),
    By.STEP: (Field("step", "", "step that launched it, or that the rank is in then; NULL outside of steps"),),
    By.MARKER: (Field("marker", "", "path of ranges around the launch, or that time; # for numbers, NULL outside"),),
}
"""Columns that `--by` puts in front of a table."""

STATISTICS = (
    Field("calls", "", "events"),
    Field("total_ns", "ns", "sum of durations"),
    Field("mean_ns", "ns", "mean duration", True),
    Field("min_ns", "ns", "shortest", True),
    Field("median_ns", "ns", "median, between the two middle ones when their number is even"),
    Field("p95_ns", "ns", "95th percentile, by straight line between neighbours", True),
    Field("p99_ns", "ns", "99th percentile", True),
    Field("max_ns", "ns", "longest"),
    Field("std_ns", "ns", "sample deviation (n - 1), NULL for one call", True),
)
PERCENT = Field("percent", "%", "share of the total time of the table, with --by of its division", is_share=True)


class Reading:
    """The job that an analysis reads, and its options.

    Args:
        session: the job to read; of several passes of a program only the first counts, `with_passes` has all.
        options: the options.
        wanted: tables that are used; None: all.

    Attributes:
        on_preliminary: called once with (ranks read, findings from these alone) where reading takes several seconds;
            None: nobody uses them.
    """

    def __init__(
        self, session: Federation, options: Options | None = None, wanted: frozenset[str] | None = None
    ) -> None:
        self.every_pass = session
        self.session = session.counted_once()
        self.options = options or Options()
        self.wanted = wanted
        self.on_preliminary: Callable[[int, Sequence[Finding]], None] | None = None

    def on(self, session: Federation) -> Reading:
        """Return the reading of another session with the same options."""
        return self._with(session=session.counted_once(), every_pass=session)

    def with_passes(self) -> Reading:
        """Return the reading of all passes of a program, whose counters belong together."""
        return self if self.every_pass is self.session else self._with(session=self.every_pass)

    def asking(self, options: Options) -> Reading:
        """Return the reading of the same session with other options."""
        return self._with(options=options)

    def of_tables(self, wanted: Iterable[str]) -> Reading:
        """Return the reading with only some tables wanted."""
        return self._with(wanted=frozenset(wanted))

    def _with(self, **changed: object) -> Self:
        """Return a copy with some attributes changed."""
        other = copy.copy(self)
        vars(other).update(changed)
        return other

    def wants(self, table: str) -> bool:
        """Whether a table is used: data read for it alone may be left out otherwise."""
        return self.wanted is None or table in self.wanted

    @property
    def by(self) -> By | None:
        """The division of the job."""
        return self.options.by

    def each(
        self,
        work: Callable[..., Answer],
        fact: Fact | None = None,
        *asked: object,
        given: Mapping[int, Any] | None = None,
    ) -> RankAnswers[Answer]:
        """Return the answers of ranks to `work`, in rank order; iterating them reports the events left out.

        Args:
            work: a module-level function or a `functools.partial` of one, which takes a `RankReading`; it and what it
                returns can be pickled.
            fact: name under which the answer is kept for other commands; None: it is not kept.
            asked: as in `RankReading.derived`.
            given: number of a rank -> the second argument of `work`; a kept answer depends on it, too.
        """
        return RankAnswers(self, partial(_derived, work=work, fact=fact, asked=asked, given=given) if fact else work)

    def summary(
        self, table: TableDefinition, rows: Iterable[Row], by: By | None = None, findings: Iterable[Finding] = ()
    ) -> Summary:
        """Return a table whose rows start with the values of the division, or else of `by`, with their columns."""
        return Summary(table, (*DIVISIONS[self.by or by], *table.fields), rows, findings=findings)

    def origin(self) -> int:
        """Return the start of the aligned time line [ns]; times in tables count from there."""
        time_range = self.session.time_range
        if time_range is None:
            raise RocpdError("no events with valid timestamps", "`rocpd info` shows what the inputs hold")
        return time_range[0]

    def line(self) -> tuple[int, int]:
        """Return start and end of the part of the time line that counts, from its start [ns]: the window, else all."""
        origin = self.origin()
        first, last = self.session.time_range or (origin, origin)
        parts = [self.part(rank.number) for rank in self.session.ranks if rank.number in self.session.spans]
        starts = [first if part.start is None else part.start + origin for part in parts]
        ends = [last if part.end is None else part.end + origin for part in parts]
        return min(starts, default=first) - origin, max(ends, default=last) - origin

    def windows(self) -> dict[int, RankWindow]:
        """Return rank -> its part of the window; empty without one."""
        return windows(self.session)

    def times(self) -> Times:
        """Return the part of each rank's time that counts: the window; its steps without warm-up; else the active part.

        The time of an agent that several processes use counts once, unless each rank or agent has its own rows.
        """
        return times_of_job(self.session, self.options)

    def warm_up(self) -> frozenset[int]:
        """Return the numbers of the steps that are warm-up; none if everything is asked for."""
        steps = steps_of_ranks(self.session, self.options.step_marker) if not self.options.everything else {}
        return warm_steps(list(steps.values()))

    def part(self, rank: int) -> Part:
        """Return the part of a rank that counts, from the start of the time line [ns]; an open side is None."""
        window = self.session.window
        return window.part(rank).on_line(self.shift(rank)) if window else Part(None, None)

    def shift(self, rank: int) -> Shift:
        """Return the offset that makes the times of a rank count from the start of the time line [ns]."""
        shift = self.session.alignment.shift(rank)
        return replace(shift, offset=shift.offset - self.origin())

    def note_invalid(self, what: str, invalid: int, calls: int) -> None:
        """Report the number of events with invalid timestamps, if there are any."""
        if invalid:
            self.session.note(
                f"{what.replace('_', ' ')}: {invalid} of {calls} have {INVALID}: they count as calls, not as time"
            )


def _derived(
    reading: RankReading,
    work: Callable[..., Answer],
    fact: Fact,
    asked: Sequence[object],
    given: Mapping[int, Any] | None,
) -> Answer:
    if given is None:
        return reading.derived(fact, work, *asked)
    of_rank = given.get(reading.rank.number)
    return reading.derived(fact, lambda read: work(read, of_rank), of_rank, *asked)


class RankAnswers(Iterator[tuple[Rank, Answer]], Generic[Answer]):
    """The answers of ranks to the work of an analysis, in rank order, once.

    An analysis that yields these answers before it iterates them, and before its tables, shares one pass over the ranks
    with other analyses. If they are just iterated, the ranks are read by that.

    Args:
        reading: the job.
        work: the work on each rank.

    Attributes:
        known: ranks with the result of `work_on_rank`, or its error; None: the ranks have not been read.
    """

    def __init__(self, reading: Reading, work: Callable[[RankReading], Answer]) -> None:
        self.reading = reading
        self.known: list[tuple[Rank, tuple[Answer, Counter[str]] | Exception]] | None = None
        self._work = work
        self._answers = self._read()
        self._add_up: Callable[[Sequence[Answer]], Answer] | None = None
        self._levels: list[int] = []  # of each known answer, how often it was added up
        self._then: Callable[[Sequence[tuple[Rank, Answer]]], None] | None = None

    def __next__(self) -> tuple[Rank, Answer]:
        return next(self._answers)

    def adding(self, add_up: Callable[[Sequence[Answer]], Answer]) -> Self:
        """Return the same answers, of which consecutive ones may be added up into one, with the first of their ranks.

        Args:
            add_up: makes one answer of several: those of a thousand ranks fill memory.
        """
        self._add_up = add_up
        return self

    def then(self, tell: Callable[[Sequence[tuple[Rank, Answer]]], None]) -> Self:
        """Return these answers; `tell` gets all of them once the ranks are read together with other analyses.

        It is called before there are any tables, but not if an answer is an error.
        """
        self._then = tell
        return self

    def take(self, rank: Rank, answer: tuple[Answer, Counter[str]] | Exception) -> None:
        """Take the answer of the next rank, read together with other analyses.

        Answers are added up when enough are held, then two sums of equally many ranks: each is added a few times,
        however many ranks there are, and few sums are held.
        """
        self.known = known = self.known or []
        known.append((rank, answer))
        self._levels.append(0)
        levels = self._levels
        while self._add_up:
            count = 2 if levels[-1] else _HELD
            if levels[-count:] != [levels[-1]] * count:
                break
            last = known[-count:]
            answered = [each for _, each in last if not isinstance(each, Exception)]
            if len(answered) < count:
                break
            left_out = sum((counts for _, counts in answered), Counter[str]())
            known[-count:] = [(last[0][0], (self._add_up([each for each, _ in answered]), left_out))]
            levels[-count:] = [levels[-1] + 1]

    def read(self) -> None:
        """Note that all ranks have been read, and call the function given to `then`."""
        known = self.known = self.known or []
        answered = [(rank, each[0]) for rank, each in known if not isinstance(each, Exception)]
        if self._then and len(answered) == len(known):
            self._then(answered)

    def beside(self, others: Reading) -> Tables:
        """Ask the same as part of other analyses, without notes; these answers then hold the result."""
        yield (asked := others.each(self._work))
        self.known = asked.known

    def task(self, windows: Mapping[int, RankWindow]) -> Callable[[RankReader], tuple[Answer, Counter[str]]]:
        """Return the work as `map_ranks` takes it."""
        return partial(work_on_rank, work=self._work, options=self.reading.options, windows=windows)

    def _read(self) -> Iterator[tuple[Rank, Answer]]:
        left_out: Counter[str] = Counter()
        for rank, answer in self._ranks() if self.known is None else _let_go(self.known):
            if isinstance(answer, Exception):
                raise answer
            left_out += answer[1]
            yield rank, answer[0]
        for what, count in left_out.items():
            self.reading.session.note(f"{count} {what} left out: {INVALID}")

    def _ranks(self) -> Iterator[tuple[Rank, tuple[Answer, Counter[str]]]]:
        session = self.reading.session
        return session.job.counted(Stage.READING, session.map_ranks(self.task(self.reading.windows())))


_HELD = 32
"""Number of answers that are held before they are added up."""


def _let_go(answers: list[Answer]) -> Iterator[Answer]:
    """Yield answers and release each: those of a thousand ranks fill memory."""
    answers.reverse()
    while answers:
        yield answers.pop()


Tables: TypeAlias = "Iterator[Summary | RankAnswers[Any]]"
"""The items that an analysis yields: optionally first its answers from ranks; then its tables."""


def work_on_rank(
    reader: RankReader, work: Callable[[RankReading], Answer], options: Options, windows: Mapping[int, RankWindow]
) -> tuple[Answer, Counter[str]]:
    """Do the work of an analysis on one rank; return its answer, and the counts of events left out."""
    reading = RankReading.of(reader, windows, options)
    return work(reading), reading.left_out


def statistics(spread: Spread) -> Row:
    """Return the values of `STATISTICS`."""
    m = spread.moments
    middle = (spread.quantile(0.5), spread.quantile(0.95), spread.quantile(0.99))
    return (m.calls, m.total, m.mean, m.shortest, *middle, m.longest, m.deviation)
