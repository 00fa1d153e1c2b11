"""The input of every analysis, and how analyses are run by name: those of `SUMMARIES` and those of other packages.

A `Reading` has the session, the options, work on each rank, and the rule by which rows are divided; with the columns
that divisions put in front of a table, and those of a distribution. Several analyses that run together read each rank
once. Their tables are offered in SQL, too: columns of the table, then those of divisions, and options as arguments.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import Any, Generic, Self, TypeAlias, cast

from rocpd.base import Answer, Progress, RocpdError, Row, UsageError, Value, entries
from rocpd.base.boundary import each_for_itself
from rocpd.base.option import Option
from rocpd.base.stages import InTurn, Stage
from rocpd.facts.agent_time import times_of_job
from rocpd.facts.rank import LAUNCHES, By, Options, RankReading, RankWindow
from rocpd.facts.recorders import Recordable, recorder_of
from rocpd.facts.spread import Spread
from rocpd.facts.units import Times, read_first, steps_of_ranks, warm_steps, windows
from rocpd.federate.federation import Federation, Notes
from rocpd.federate.open.identify import Rank
from rocpd.federate.relation import Given, JobRelation
from rocpd.federate.result import Result, Rows
from rocpd.federate.run.rank_reader import Fact, RankReader, Works
from rocpd.federate.select.align import Shift
from rocpd.federate.select.selection import Part, Selection
from rocpd.schema.calculated import Argument, CalculatedColumn, CalculatedTable
from rocpd.schema.rules.events import INVALID
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary import grouping, registry
from rocpd.summary.findings import Finding
from rocpd.summary.result import Field, Summary, TableDefinition, away_from_page

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

    def summed(
        self,
        work: Callable[..., Any],
        fact: Fact | None = None,
        *asked: object,
        given: Mapping[int, Any] | None = None,
        what: str = "",
        hint: str | None = None,
    ) -> Generator[RankAnswers[Any], None, Any]:
        """Yield the answers of ranks, as analyses do before their tables; return them added up.

        Args:
            work, fact, asked, given: as in `each`.
            what, hint: as in `grouping.added`.

        Raises:
            RocpdError: there is none of what is counted.
        """
        yield (answers := self.each(work, fact, *asked, given=given).adding(grouping.together))
        return grouping.added(answers, what, hint)

    def summary(
        self,
        table: TableDefinition,
        rows: Iterable[Row] | Callable[[], Iterator[Row]],
        by: By | None = None,
        findings: Iterable[Finding] = (),
    ) -> Summary:
        """Return a table whose rows start with the values of the division, or else of `by`, with their columns."""
        return Summary(table, (*DIVISIONS[self.by or by], *table.fields), rows, findings=findings)

    def origin(self) -> int:
        """Return the start of the aligned time line [ns]; times in tables count from there."""
        if (time_range := self.session.time_range) is None:
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


_MOST_ANSWERS = 128
"""Most answers of ranks in memory at once, each of about a megabyte for 300,000 events."""

Known: TypeAlias = "list[tuple[Rank, Any]]"
"""Ranks, each with the answer to the work of an analysis."""

SoFar: TypeAlias = Callable[[int, Mapping[str, Known]], None]
"""Called after each rank with the number of ranks read, and the answers so far, by analysis."""

Function: TypeAlias = Callable[[Reading], "Iterable[Summary | RankAnswers[Any]]"]
"""An analysis."""


def summary(session: Federation, name: str, by: By | None, names: KernelNames, asked: Mapping[str, object]) -> Summary:
    """Return one table, such as `kernels`, `gaps` or `stragglers`; as `rocpd.Session.summary`."""
    (analysis,) = planned([name])
    values = registry.values_of(analysis, _find(analysis), asked)
    for table in run(session, name, Options(by, names, **entries.fields_of(Options, values))):
        if table.name == name or name not in registry.TABLES:
            return table
    raise RocpdError(f"{name}: the analysis returned no such table")


def analyses() -> Result:
    """Return the analyses that `Session.summary` knows: columns `analysis`, `tables`, `what`."""
    rows = [(name, ", ".join(analysis.tables), analysis.help) for name, analysis in registry.known_analyses().items()]
    return Result(lambda: Rows(("analysis", "tables", "what"), iter(rows)))


def run(
    session: Federation, name: str, options: Options | None = None, progress: Progress | None = None
) -> Iterator[Summary]:
    """Run the analysis with this name or table; yield all its tables, or the named one."""
    for analysis, tables in planned([name]).items():
        complete = entries.with_defaults(options or Options(), _find(analysis).options)
        with session.job.reporting(progress, stages([analysis])):
            yield from tables_alone(_run(Reading(session, complete), analysis, tables))


def stages(analyses: Collection[str]) -> dict[Stage, float]:
    """Return the stages of a command that runs analyses in one pass, with the number of units in each."""
    count = sum(len(registry.joined_analyses()) if name == registry.OVERVIEW else 1 for name in analyses)
    blame = {Stage.BLAME: 1} if {"ranks", registry.OVERVIEW} & {*analyses} else {}
    return {Stage.FIRST: 1, Stage.READING: count, Stage.TABLES: count, **blame}


def planned(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return analysis -> its tables that are wanted, so that each runs once, in the order of `names`.

    >>> planned(["gaps", "kernels", "overlap"]) == {"gpu-time": {"gaps", "overlap"}, "kernels": {"kernels"}}
    True

    Raises:
        UsageError: an unknown name.
    """
    wanted: dict[str, frozenset[str]] = {}
    for name in names:
        analyses = registry.SUMMARIES if name in registry.TABLES else registry.known_analyses()
        if (analysis := registry.tables_of(analyses).get(name)) is None:
            hint = entries.near(name, registry.tables_of(analyses), "`rocpd summary --list` shows all")
            raise UsageError(f"no summary is called {name}", hint)
        tables = frozenset(analyses[analysis].tables if name == analysis else (name,))
        wanted[analysis] = wanted.get(analysis, frozenset()) | tables
    return wanted


def run_planned(
    reading: Reading, plan: Mapping[str, frozenset[str]], progress: Progress | None = None
) -> Iterator[tuple[str, Iterator[Summary]]]:
    """Yield the name and the tables of each analysis of a plan, in order; iterating them raises the errors of `run`.

    As many analyses as memory allows share one pass over the ranks. `progress` is called with (time that passed,
    expected time of all) [ms].
    """
    passes = list(_passes(plan, max(1, _MOST_ANSWERS // len(reading.session.ranks))))
    in_turn = InTurn(progress, len(passes))
    for names in passes:
        runs = {name: partial(_run, name=name, tables=plan[name]) for name in names}
        with in_turn() as report, reading.session.job.reporting(report, stages(names)):
            if len(runs) > 1:
                yield from together(reading, runs)
            else:
                yield names[0], tables_alone(runs[names[0]](reading))


def together(
    reading: Reading,
    analyses: Mapping[str, Function],
    options: Mapping[str, Options] | None = None,
    so_far: SoFar | None = None,
) -> Iterator[tuple[str, Iterator[Summary]]]:
    """Yield the name and the tables of each analysis, in order; iterating the tables raises the analysis' errors.

    All data that analyses ask of ranks before they yield tables is read in one pass: each rank once for all.

    Args:
        reading: what to read.
        analyses: by name.
        options: by name of an analysis, where they differ from those of `reading`.
        so_far: called with the answers of the ranks that were read.
    """
    session, job = reading.session, reading.session.job
    if "ranks" in analyses:
        # The analysis of ranks also finds where clocks meet, unless it reads other kernels.
        aligns = reading.wants("heat") or session.is_part or reading.options.names_files
        read_first(session, reading.options.step_marker, aligns=aligns)
    begun = {
        name: _begun(analysis, reading.asking((options or {}).get(name, reading.options)))
        for name, analysis in analyses.items()
    }
    asked = {name: answers for name, (answers, _) in begun.items() if answers and answers.reading.session is session}
    windows = reading.windows()
    task = Works(tuple(answers.task(windows) for answers in asked.values()))
    for done, (rank, of_rank) in enumerate(job.counted(Stage.READING, session.map_ranks(task) if asked else ()), 1):
        for answers, answer in zip(asked.values(), of_rank, strict=True):
            answers.take(rank, answer)
        if so_far:
            so_far(done, {name: answers.known or [] for name, answers in asked.items()})
    for answers in asked.values():
        answers.read()
    tables = ((name, tables) for name, (_, tables) in begun.items())
    yield from job.course.each(Stage.TABLES, tables, len(begun))


def known_tables(
    reading: Reading, analyses: Mapping[str, Function], options: Mapping[str, Options], so_far: SoFar | None = None
) -> Iterator[tuple[str, dict[str, Summary] | str]]:
    """Yield each analysis with its tables by name, or why it lacks data; separate runs have none that compare ranks.

    Notes of the analyses are dropped: they are for users who ask for an analysis by name.

    Args:
        reading, so_far: as in `together`.
        analyses, options: as in `together`; each analysis has options.

    Raises:
        UsageError: an option is invalid.
    """
    session = reading.every_pass
    quiet = Federation(session.job, session.selection, Notes(), owns_files=False)
    for name, tables in together(reading.on(quiet).asking(Options()), analyses, options, so_far):
        yield name, each_for_itself(f"analysis {name}", partial(_tables_or_why_not, session, tables), str)


def tables_of_some(
    session: Federation, analyses: Mapping[str, Function], known: Mapping[str, Known], wanted: frozenset[str]
) -> dict[str, Summary]:
    """Return the tables of analyses, by name, from the answers of some ranks, without those that lack their data.

    Args:
        session: the job of these ranks.
        analyses: by name.
        known: answers to each analysis.
        wanted: tables that are used.
    """
    reading = Reading(Federation(session.job, session.selection, Notes(), owns_files=False), wanted=wanted)
    tables: dict[str, Summary] = {}
    for name, answered in known.items():
        asked, answers = _begun(analyses[name], reading)
        if asked:
            asked.known = list(answered)  # a copy: the original grows on
            with contextlib.suppress(RocpdError):
                tables |= {table.name: table for table in answers}
    return tables


def _tables_or_why_not(session: Federation, tables: Iterable[Summary]) -> dict[str, Summary] | str:
    try:
        return {table.name: table for table in tables if session.runs == 1 or table.name not in registry.OF_ONE_JOB}
    except UsageError:
        raise
    except RocpdError as error:
        return error.message


def _begun(analysis: Function, reading: Reading) -> tuple[RankAnswers[Any] | None, Iterator[Summary]]:
    """Return the answers that an analysis asks of ranks before its tables, if any, and its tables."""
    try:
        tables = iter(analysis(reading))
        first = next(tables, None)
    except Exception as error:  # noqa: BLE001 (whoever iterates the tables gets it)
        return None, _raising(error)
    if isinstance(first, RankAnswers):
        return first, tables_alone(tables)
    return None, tables_alone(chain([first] if first else [], tables))


def _raising(error: Exception) -> Iterator[Summary]:
    """Return an iterator that raises an error."""
    yield from ()
    raise error


def tables_alone(tables: Iterable[Summary | RankAnswers[Any]]) -> Iterator[Summary]:
    """Yield the tables of an analysis that runs alone."""
    return (table for table in tables if isinstance(table, Summary))


def _passes(plan: Iterable[str], most: int) -> Iterator[list[str]]:
    """Yield groups of up to `most` analyses to run together; one that reads its rows late is alone."""
    names: list[str] = []
    for name in plan:
        if names and (len(names) == most or _find(name).reads_late or _find(names[-1]).reads_late):
            yield names
            names = []
        names.append(name)
    yield names


def _run(reading: Reading, name: str, tables: frozenset[str]) -> Tables:
    """Run one analysis of a plan; yield its question to ranks, and its tables that are wanted.

    Raises:
        RocpdError: the job lacks the data for all of them, they do not support the division, or the analysis of
            another package can't be loaded.
    """
    analysis = _find(name)
    tables = _without_comparison(reading, analysis, tables)
    if reading.by and not divides(analysis, tables, reading.by):
        known = ", ".join(name for name, other in registry.SUMMARIES.items() if reading.by in other.by)
        undivided = [name] if reading.by not in analysis.by else sorted(tables)
        verb = "is" if len(undivided) == 1 else "are"
        raise RocpdError(f"{', '.join(undivided)} {verb} not divided by {reading.by}", f"by {reading.by}: {known}")
    function = cast("Function", entries.load(analysis.home, name))
    if analysis.alias_of:
        reading.session.note(f"`{name}` is `{analysis.alias_of}`")
    is_empty = True
    asked = reading if analysis.is_whole else reading.of_tables(tables)
    for table in _with_hints(function, asked, analysis.recordable):
        if isinstance(table, RankAnswers):
            yield table
        elif analysis.is_whole or table.name in tables:
            is_empty = False
            if reading.by and not is_divided(table, analysis, reading.by):
                reading.session.note(f"{table.name}: not divided by {reading.by}")
            if reading.options.kernel_names is not KernelNames.DISPLAY:
                table.keep_names()
            yield table
    if is_empty:
        why = f", divided by {reading.by}" if reading.by in LAUNCHES else ""
        raise RocpdError(f"{', '.join(sorted(tables))}: nothing in the selection{why}")


def _with_hints(function: Function, reading: Reading, recordable: Recordable | None) -> Tables:
    """Run an analysis; if the whole job lacks its data, the error says how to record it."""
    try:
        yield from function(reading)
    except RocpdError as error:
        from rocpd.federate.describe import importers_of

        is_lacking = type(error) is RocpdError and not error.hint and reading.session.selection == Selection()
        how = recorder_of(importers_of(reading.session)).how.get(recordable) if recordable and is_lacking else None
        if how is None:
            raise
        raise RocpdError(error.message, how) from error


def divides(analysis: registry.Analysis, tables: frozenset[str], by: By) -> bool:
    """Whether at least one of some tables of an analysis supports a division."""
    return by in analysis.by and not (by in LAUNCHES and analysis.by_launch and tables.isdisjoint(analysis.by_launch))


def is_divided(table: Summary, analysis: registry.Analysis, by: By) -> bool:
    """Whether a table has a row for each part of a division, or compares these parts."""
    defined = table.definition.fields
    compares = table.name in analysis.compares or table.fields[-len(defined) :] != defined
    return compares or {field.name for field in DIVISIONS[by]} <= set(table.columns)


def _without_comparison(reading: Reading, analysis: registry.Analysis, tables: frozenset[str]) -> frozenset[str]:
    """Return the tables without those that separate runs can't have, after a note that the runs are not one job.

    Raises:
        RocpdError: no others are left.
    """
    runs = reading.session.runs
    if runs < 2:
        return tables
    if tables <= frozenset(analysis.of_one_job):
        which = ", ".join(sorted(tables))
        raise RocpdError(f"{which}: {runs} separate runs, not one job: choose the ranks of one with --rank")
    if reading.by in (None, By.HOST) and "overview" not in tables:  # the overview has a line on this itself
        reading.session.note_runs()
    return tables - frozenset(analysis.of_one_job)


def _find(name: str) -> registry.Analysis:
    return registry.SUMMARIES.get(name) or registry.known_analyses()[name]


_WHOLE = "all"


def relation_of(name: str) -> JobRelation:
    """Return a table of an analysis, such as `largest-gaps`, as a table of SQL."""
    analysis = registry.SUMMARIES[registry.TABLES[name]]
    definition = entries.load(f"{analysis.home.partition(':')[0]}:TABLES", name)[name]
    ways = tuple(by for by in By if divides(analysis, frozenset([name]), by))
    fields = [*definition.fields, *(field for by in ways for field in DIVISIONS[by])]
    names = {field.name for field in fields}
    arguments = [divided_by(*ways)] if ways else []
    for option in analysis.options:
        if option.name not in names:
            values = tuple(option.kind) if issubclass(option.kind, StrEnum) else ()
            default = cast("Value", option.default)
            arguments.append(Argument(option.name, option.help.rstrip("."), default, values))
    columns, is_large = columns_of(*fields), analysis.reads_late
    about = away_from_page(definition.doc)
    table = CalculatedTable(name.replace("-", "_"), about, columns, tuple(arguments), is_large=is_large)
    return JobRelation(table, partial(_rows, name=name, columns=[column.name for column in columns]))


def columns_of(*fields: Field) -> tuple[CalculatedColumn, ...]:
    """Return columns of tables as those of SQL, each name once."""
    columns: dict[str, CalculatedColumn] = {}
    for field in fields:
        columns.setdefault(field.name, CalculatedColumn(field.name, field.unit, away_from_page(field.doc)))
    return tuple(columns.values())


def divided_by(*ways: By) -> Argument:
    """Return the argument that divides a table, as `--by` does."""
    return Argument("divided_by", "what the job is divided into; its columns are NULL without", _WHOLE, (_WHOLE, *ways))


def division(given: Given) -> By | None:
    """Return the division that a statement asks for; None: none."""
    by = given.get("divided_by", _WHOLE)
    return None if by == _WHOLE else By(str(by))


def note_empty(session: Federation, table: str, error: RocpdError) -> None:
    """Note why a table has no rows, if the job lacks its data.

    Raises:
        RocpdError: the error has another reason, such as an option or a file.
    """
    if type(error) is not RocpdError:
        raise error
    session.note("; ".join(filter(None, (f"{table} is empty: {error.message}", error.hint))))


def _value(option: Option, value: Value) -> object:
    """Return the value of an option that SQL gave; SQL has no type for yes and no but 1 and 0."""
    return bool(value) if option.kind is bool and value in (0, 1) else value


def _rows(session: Federation, given: Given, *, name: str, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table with the given columns, by name: a division may replace some columns."""
    options = registry.SUMMARIES[registry.TABLES[name]].options
    asked = {option.name: _value(option, given[option.name]) for option in options if option.name in given}
    try:
        table = summary(session, name, division(given), KernelNames.DISPLAY, asked)
    except RocpdError as error:
        note_empty(session, name.replace("-", "_"), error)
        return
    places = [table.columns.index(column) if column in table.columns else None for column in columns]
    for row in table:
        yield tuple(None if place is None else row[place] for place in places)
