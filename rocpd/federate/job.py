"""The job: its ranks, their files and times, the ranks whose clocks compare, and those that are passes of one program.

Never changes: fewer ranks are another job on the same files. Never decides which events count (`select` does).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from rocpd.base import Answer, Progress, Row, by_key, frozen
from rocpd.base.stages import COSTS, Stage, Stages
from rocpd.federate.limits import usable_cores
from rocpd.federate.open.identify import Rank
from rocpd.federate.plan.steps import Scatter
from rocpd.federate.run.files import Files
from rocpd.federate.run.rank_reader import STATEMENT_BYTES, Carrying, Fact, FactsOfRank, RankReader, RankTask, with_kept
from rocpd.federate.run.shares import RankQuestion, Request, Share, shares_of
from rocpd.federate.select.align import (
    SPAN,
    SPAN_COLUMNS,
    Align,
    Alignment,
    Domain,
    GivenOffset,
    Span,
    TimeLine,
    align,
    clock_domains,
    given_offsets,
)
from rocpd.federate.select.selection import Cut, stored_cut
from rocpd.schema.load import TABLES, table
from rocpd.schema.render import RankTables

if TYPE_CHECKING:
    from rocpd.federate.select.clocks import ClockJump, ClockLine

Derived = TypeVar("Derived")
Item = TypeVar("Item")


_SPAN = Fact("span", 2, (), is_small=True)
SPANS_OF_RANKS = "spans"
"""The key under which a job keeps `Job.spans`, for code that reads spans together with other facts."""


Aligner: TypeAlias = "Callable[[Job, Mapping[int, int]], Sequence[ClockLine | ClockJump | None]]"
"""Measures how clocks are aligned, given the job, and rank -> number of its clock.

Raises ContradictionError of `rocpd.federate.select.clocks`."""


@frozen
class Job:
    """The ranks of a job and their files.

    Args:
        ranks: the processes, by rank number.
        files: the open files.
        how: how ranks are aligned on one time line.
        clock_offsets: host -> offset that is added to its times; if there are any, they replace `how`.
        aligner: measures how clocks are aligned; None: nothing measures it.
        kept_alignment: the alignment of the job with more ranks, on which a window was resolved.
        left_out: number of further ranks of the same runs in the files.
        has_all_passes: all passes of a program are read as rows, not only one of them.
    """

    ranks: tuple[Rank, ...]
    files: Files
    how: Align = Align.AUTO
    clock_offsets: Mapping[str, GivenOffset] = field(default_factory=dict)
    aligner: Aligner | None = None
    kept_alignment: Alignment | None = None
    left_out: int = 0
    has_all_passes: bool = False

    def lacking(self, worlds: Mapping[int, int]) -> tuple[int, int]:
        """Return how many ranks are not among the files, and of how many; `worlds`: run -> its ranks, 0: not known."""
        sizes, known = Counter(rank.run for rank in self.ranks), {run: world for run, world in worlds.items() if world}
        missing = sum(max(0, world - sizes[run]) for run, world in known.items())
        return max(0, missing - self.left_out), sum(max(world, sizes[run]) for run, world in known.items())

    @cached_property
    def _derived(self) -> dict[object, Any]:
        return {}

    def once(self, what: object, derive: Callable[[], Derived]) -> Derived:
        """Return the result of `derive`, which reads all ranks of the job; it runs once for each key `what`."""
        if what not in self._derived:
            self._derived[what] = derive()
        derived: Derived = self._derived[what]
        return derived

    def used_up(self, what: object, derive: Callable[[], Derived]) -> Derived:
        """Return the result as `once` does, and forget it: that of many ranks may take much memory."""
        derived = self.once(what, derive)
        del self._derived[what]
        return derived

    def knows(self, what: object) -> bool:
        """Whether the result for this key is kept."""
        return what in self._derived

    def of_ranks(self, ranks: tuple[Rank, ...], *, keep_alignment: bool) -> Job:
        """Return the job of some of the ranks, aligned anew or as in this job."""
        if len(ranks) == len(self.ranks):
            return self
        kept = self.alignment if keep_alignment else None
        kept_runs = {rank.run for rank in ranks}
        left_out = self.left_out + sum(rank.run in kept_runs for rank in self.ranks) - len(ranks)
        return dataclasses.replace(self, ranks=ranks, kept_alignment=kept, left_out=left_out)

    @cached_property
    def rank_tables(self) -> dict[int, RankTables]:
        """Rank number -> its tables as a connection to its own file names them."""
        further = _further(self.ranks)
        return {rank.number: rank.as_tables(further) for rank in self.ranks}

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The files, or blocks of ranks of a merged one, with all rows of their ranks."""
        return shares_of(self.ranks, self.rank_tables, usable_cores())

    @property
    def spans(self) -> dict[int, Span]:
        """Rank number -> first start and last end of its events, as recorded; ranks without events are left out."""
        return self.once(SPANS_OF_RANKS, lambda: spans_of(self._spans()))

    def _spans(self) -> Mapping[int, Row]:
        """Return rank number -> the row of its span."""
        self.files.check_open()
        kept = {rank.number: self.files.facts.of(rank) for rank in self.ranks} if self.files.facts else {}
        known: dict[int, Row] = {number: facts.known(_SPAN) or () if facts else () for number, facts in kept.items()}
        if not known or () in known.values():
            known = self._read_spans()
            for number, facts in kept.items():
                if facts and number in known:
                    facts.derived(_SPAN, known[number])
                    facts.keep()
        return known

    def _read_spans(self) -> dict[int, Row]:
        """Return rank number -> first start and last end of its events; None and None for a rank without events."""
        request = Request(RankQuestion(Scatter("spans", SPAN_COLUMNS, (), SPAN, gives_few_rows=True), {}))
        numbers = (number for share in self.shares for number in share.ranks)
        with self.course.during(Stage.FIRST) as begun:
            of_shares = self.files.executor.rows(request, self.shares, partial(self.course.step, begun))
            return dict(zip(numbers, map(tuple, itertools.chain.from_iterable(of_shares)), strict=True))

    @cached_property
    def clock_domains(self) -> tuple[Domain, ...]:
        """Sets of ranks whose timestamps compare."""
        return clock_domains(self.ranks, self.spans)

    @cached_property
    def alignment(self) -> Alignment:
        """The shift of each rank's timestamps that aligns all ranks on one time line [ns].

        Raises:
            UsageError: an offset is given for a host that no rank ran on.
        """
        if self.kept_alignment:
            return self.kept_alignment
        if self.clock_offsets:
            return given_offsets(self.clock_offsets, self.ranks)
        # Ranks of other runs had no collectives with the ranks of the largest run.
        largest = self.of_ranks(max(self.by_run, key=len, default=()), keep_alignment=False)
        measure = partial(self.aligner, largest) if self.aligner else None
        hosts = {rank.number: rank.hostname for rank in self.ranks}
        of_day = [rank.number for rank in self.ranks if rank.has_date]
        return align(self.how, self.clock_domains, self.spans, measure, hosts, of_day)

    @property
    def aligns_by_collectives(self) -> bool:
        """Whether the alignment, if not known yet, depends on collectives of all ranks: one run on several machines."""
        is_open = "alignment" not in vars(self) and not self.clock_offsets
        is_asked = self.aligner and self.how in (Align.AUTO, Align.COLLECTIVES) and is_open
        machines = {rank.machine_id or rank.number for rank in self.ranks}
        return bool(is_asked) and not self.kept_alignment and len(self.by_run) == 1 and len(machines) > 1

    @cached_property
    def by_run(self) -> tuple[tuple[Rank, ...], ...]:
        """The ranks of each run; the ranks of one job are one run."""
        return tuple(map(tuple, by_key((rank.run, rank) for rank in self.ranks).values()))

    @cached_property
    def programs(self) -> tuple[tuple[int, ...], ...]:
        """The rank numbers of each program that ran several times for different counters, in the order of its passes.

        A GPU has few counters at a time, so a program runs once for every few. Its passes run one after the other, have
        equally many dispatches, and collect different counters. Values of all passes belong together; all other rows
        are there once for each pass, and count once. Reads nothing where no command ran twice.
        """
        if not (groups := _candidates(self.ranks)):
            return ()
        part = self.of_ranks(tuple(self.rank_of[number] for group in groups for number in group), keep_alignment=False)
        runs = {rank.number: run for rank, run in part.map_ranks(_counted, brief_bytes=STATEMENT_BYTES)}
        began = {rank.number: (rank.life or (0, 0), rank.number) for rank in self.ranks}
        passes = (group for group in groups if _are_passes([runs[number] for number in group]))
        return tuple(tuple(sorted(group, key=began.__getitem__)) for group in passes)

    def of_first_passes(self, *, keep_alignment: bool) -> Job:
        """Return the job of the first pass of each program; it is made once."""
        further = {number for program in self.programs for number in program[1:]}
        first = tuple(rank for rank in self.ranks if rank.number not in further)
        derive = partial(self.of_ranks, first, keep_alignment=keep_alignment)
        return self.once(("first passes", keep_alignment), derive)

    @cached_property
    def time_line(self) -> TimeLine | None:
        """All ranks on one time line; None without events."""
        return TimeLine.of(self.spans, self.alignment.shifts)

    @cached_property
    def window(self) -> Cut | None:
        """The window whose rows the files hold; None if no file was merged from a window."""
        return stored_cut({rank.number: rank.window for rank in self.ranks if rank.window})

    def map_ranks(self, work: Callable[[RankReader], Answer], *, brief_bytes: int = 0) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` for each rank on all its rows, as `work_on` does."""
        return self.work_on(self.rank_tables, work, brief_bytes=brief_bytes)

    def work_on(
        self, tables: Mapping[int, RankTables], work: Callable[[RankReader], Answer], *, brief_bytes: int = 0
    ) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` for each rank, on all cores where that is faster; yield the answers in rank order.

        Args:
            tables: rank number -> its tables, with the rows that count.
            work: a module-level function or a `functools.partial` of one; it and its result can be pickled.
            brief_bytes: size of files below which the work takes less time than opening them in another process.

        Raises:
            any error that `work` raises.
        """
        self.files.check_open()
        tasks = [self._task(rank, tables[rank.number], work, brief_bytes) for rank in self.ranks]
        with contextlib.closing(with_kept(tasks, self.files.executor.each)) as answers:
            for task, answer in zip(tasks, answers, strict=True):
                if isinstance(task.work, Carrying):
                    answer, facts = answer
                    self.files.carry(task.rank, facts)
                yield task.rank, answer

    def _task(
        self, rank: Rank, tables: RankTables, work: Callable[[RankReader], Answer], brief_bytes: int
    ) -> RankTask[Any]:
        """Return the work on a rank as a task; arguments as for `work_on`."""
        files = self.files
        if not brief_bytes:
            known, carried = files.known_of(rank, is_brief=False), files.carried.pop(rank.number, b"")
            return RankTask(rank, tables, work, files.facts, 0, known, carried)
        to_do = Carrying(work) if files.carries(rank) else work
        return RankTask(rank, tables, to_do, files.facts, brief_bytes, files.known_of(rank, is_brief=True))

    def counted(self, stage: Stage, answers: Iterable[Item]) -> Iterator[Item]:
        """Yield the answers of all ranks to a stage of a command, and report each."""
        return self.course.each(stage, answers, len(self.ranks))

    @property
    def course(self) -> Stages:
        """The progress of the command that reads the job."""
        return self.files.course

    @contextlib.contextmanager
    def reporting(self, report: Progress | None, planned: Mapping[Stage, float]) -> Iterator[None]:
        """Report the progress of a block that reads the job.

        Args:
            report: called with (time that passed, time that all stages take) [ms]; None: no report.
            planned: the stages of the block -> amount of each.
        """
        if not report:
            yield
            return
        size, cores = sum({rank.opening.path: rank.opening.size for rank in self.ranks}.values()), usable_cores()

        def seconds(stage: Stage, amount: float) -> float:
            return COSTS[stage].seconds(len(self.ranks), size, cores, amount)

        before, self.files.course = self.files.course, Stages(report, planned, seconds, cores)
        try:
            yield
        finally:
            self.files.course.leave()
            self.files.course = before

    @cached_property
    def facts(self) -> FactsOfRank | None:
        """The kept facts of all ranks together; None: no facts can be kept."""
        return self.files.facts.of(*self.ranks) if self.files.facts else None

    @cached_property
    def rank_of(self) -> dict[int, Rank]:
        """Rank number -> rank."""
        return {rank.number: rank for rank in self.ranks}

    @cached_property
    def share_of(self) -> dict[int, Share]:
        """Rank number -> the share that holds it."""
        return {number: share for share in self.shares for number in share.ranks}


def read_span(reader: RankReader) -> Row:
    """Return the row of the span of a rank."""
    return reader.once(_SPAN, lambda: reader.rows(SPAN)[0])


def spans_of(rows: Mapping[int, Row]) -> dict[int, Span]:
    """Return rank number -> span for ranks with events, of rank number -> row."""
    spans = {number: Span.of(row) for number, row in rows.items()}
    return {number: span for number, span in spans.items() if span}


@functools.cache
def _contract(base: str) -> frozenset[str]:
    """Return the columns of a base table, in lower case."""
    return frozenset(column.name.lower() for column in table(base).columns)


def _further(ranks: tuple[Rank, ...]) -> dict[str, tuple[str, ...]]:
    """Return base table -> columns beyond the contract, over all ranks in their order."""
    further: dict[str, dict[str, str]] = {}
    for shape in {id(rank.tables): rank.tables for rank in ranks}.values():
        for base, columns in shape.items():
            known = _contract(base) if base in TABLES else frozenset()
            for column in () if known.issuperset(columns) else columns:
                if column.lower() not in known:
                    further.setdefault(base, {}).setdefault(column.lower(), column)
    return {base: tuple(columns.values()) for base, columns in further.items()}


_DISPATCHES = "SELECT COUNT(*) FROM rocpd_kernel_dispatch"
_COUNTERS = """SELECT DISTINCT I.name FROM (SELECT pmc_id, event_id FROM rocpd_pmc_event LIMIT 4096) V
JOIN rocpd_info_pmc I ON I.id = V.pmc_id WHERE V.event_id IN (SELECT event_id FROM rocpd_kernel_dispatch)"""
_SIMILAR = 0.95  # of the dispatches: the number that a program launches may depend on time


def _counted(reader: RankReader) -> tuple[int, frozenset[str]]:
    """Return the number of dispatches of a rank, and the names of counters of its first values."""
    counters = frozenset(str(name) for (name,) in reader.rows(_COUNTERS))
    return int(reader.rows(_DISPATCHES)[0][0]), counters


def _candidates(ranks: Sequence[Rank]) -> list[list[int]]:
    """Return groups of ranks that have the same place in runs of the same command on the same host."""
    places: dict[int, int] = {}
    groups: dict[tuple[object, ...], list[int]] = {}
    for rank in ranks:
        place = places[rank.run] = places.get(rank.run, -1) + 1
        groups.setdefault((rank.hostname, rank.command, place), []).append(rank.number)
    return [group for group in groups.values() if len(group) > 1]


def _are_passes(runs: Sequence[tuple[int, frozenset[str]]]) -> bool:
    dispatches, counters = zip(*runs, strict=True)
    return len(set(counters)) == len(runs) and all(counters) and min(dispatches) >= _SIMILAR * max(dispatches)
