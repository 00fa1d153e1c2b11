"""What every analysis receives: the session, what was asked, work on each rank, how rows are divided.

Also the columns that divisions put in front of a table, and those of a distribution.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Self, TypeAlias

from rocpd.errors import RocpdError
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.part import Part
from rocpd.federate.select.timeline import Shift
from rocpd.frozen import frozen
from rocpd.summary.findings import Finding
from rocpd.summary.options import By, Options
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.summary.spread import Spread
from rocpd.trace.times import INVALID
from rocpd.types import NULL, Answer, Progress, Row

Key: TypeAlias = tuple[object, ...]
Base: TypeAlias = tuple[int, int]
"""Start and end of a window by the clock of a rank [ns]."""

RANK = Field("rank", "", "rank number")
AGENT = Field("agent", "", "agent id in the rank's file; NULL for what belongs to no agent")
DIVISIONS: dict[By | None, tuple[Field, ...]] = {
    None: (),
    By.RANK: (RANK,),
    By.HOST: (Field("hostname", "", "host name"),),
    By.RUN: (Field("run", "", "number of the run, as `rocpd info` has it"),),
    By.COMMAND: (Field("command", "", "command line of the process"),),
    By.AGENT: (RANK, AGENT),
    By.STREAM: (RANK, Field("stream", "", "HIP stream id; NULL for what belongs to no stream")),
    By.DISPATCH: (RANK, Field("dispatch", "", "number of the dispatch in its rank, as the profiler counts")),
    By.API: (Field("api", "", "function that launched it"),),
    By.STEP: (
        Field(
            "step",
            "",
            "step that launched it, or that the rank is in then; NULL outside of steps",
        ),
    ),
    By.MARKER: (
        Field(
            "marker",
            "",
            "path of ranges around the launch, or that time; # for numbers, NULL outside",
        ),
    ),
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


def key_of(by: By | None, rank: Rank, lane: int | None = None) -> Key:
    """Return the values of the columns of a division.

    Args:
        by: what divides.
        rank: the rank.
        lane: id of the agent or stream, `NULL` where it is unknown; it may be left out where neither divides.

    Raises:
        ValueError: agents or streams divide, and no lane is given; or it goes by the launch, of which `Origins` knows.
    """
    match by:
        case By.RANK:
            return (rank.number,)
        case By.HOST:
            return (rank.hostname,)
        case By.RUN:
            return (rank.run,)
        case By.COMMAND:
            return (rank.command,)
        case By.AGENT | By.STREAM:
            if lane is None:
                raise ValueError(f"the key of a division by {by.value} needs the id of the {by.value}")
            return (rank.number, None if lane == NULL else lane)
        case By.DISPATCH:
            raise ValueError("the key of a division by dispatch needs the number of the dispatch")
        case By.STEP | By.MARKER | By.API:
            raise ValueError(f"a division by {by.value} goes by the launch of each operation")
    return ()


@frozen
class RankWindow:
    """What a rank sees of a window, by its clock.

    Args:
        part: the part of it that counts; all of it without a window.
        base: start and end of what its agents could have worked in it [ns]; None without a window, and where work
            counts where it was launched, not where it ran.
    """

    part: Part = Part(None, None)
    base: Base | None = None


@frozen
class RankReading:
    """What work on one rank receives, in whichever process it runs.

    Args:
        reader: reads the rank.
        options: what was asked.
        window: what the rank sees of the window.
        left_out: kind of events of the rank -> how many of them are left out, for invalid timestamps.
    """

    reader: RankReader
    options: Options
    window: RankWindow = RankWindow()
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def rank(self) -> Rank:
        """The rank."""
        return self.reader.rank

    def whole(self) -> RankReading:
        """Return what reads all rows of the rank, whatever window and filters."""
        return RankReading(self.reader.whole(), self.options)

    def unwindowed(self) -> RankReading:
        """Return what reads the rows of the rank that pass the filters, whatever the window."""
        return RankReading(self.reader.unwindowed(), self.options)

    def key(self, lane: int | None = None) -> Key:
        """Return the values of the columns of the division that was asked for; as `key_of`."""
        return key_of(self.options.by, self.rank, lane)


class Reading:
    """What an analysis reads from and what was asked of it.

    Args:
        session: what to read; of passes of one program the first one counts, `with_passes` has the others too.
        options: what was asked.
        progress: called with (ranks read, ranks in all).
        wanted: tables that will be looked at; None: all.
    """

    def __init__(
        self,
        session: Federation,
        options: Options | None = None,
        progress: Progress | None = None,
        wanted: frozenset[str] | None = None,
    ) -> None:
        self.every_pass = session
        self.session = session.counted_once()
        self.options = options or Options()
        self.wanted = wanted
        self._progress = progress

    def on(self, session: Federation) -> Reading:
        """Return the same question to another session."""
        return self._with(session=session.counted_once(), every_pass=session)

    def with_passes(self) -> Reading:
        """Return the same question to all passes of a program, whose counters belong together."""
        return self if self.every_pass is self.session else self._with(session=self.every_pass)

    def asking(self, options: Options) -> Reading:
        """Return another question to the same session."""
        return self._with(options=options)

    def of_tables(self, wanted: Iterable[str]) -> Reading:
        """Return the same question, of which only some tables will be looked at."""
        return self._with(wanted=frozenset(wanted))

    def _with(self, **changed: object) -> Self:
        """Return one of the same kind with some attributes changed."""
        other = copy.copy(self)
        vars(other).update(changed)
        return other

    def wants(self, table: str) -> bool:
        """Whether a table will be looked at: what is read for it alone may be left out otherwise."""
        return self.wanted is None or table in self.wanted

    @property
    def by(self) -> By | None:
        """What the job is divided into."""
        return self.options.by

    def each(self, work: Callable[[RankReading], Answer]) -> Iterator[tuple[Rank, Answer]]:
        """Do `work` on each rank and yield the answers in rank order; report progress, and note what was left out.

        Args:
            work: a module-level function or a `functools.partial` of one; it and what it returns can be pickled.
        """
        left_out: Counter[str] = Counter()
        answers = self.session.map_ranks(partial(work_on_rank, work=work, options=self.options, windows=self.windows()))
        for done, (rank, (answer, left_out_of_rank)) in enumerate(answers, 1):
            left_out += left_out_of_rank
            yield rank, answer
            self.report(done)
        self.note_left_out(left_out)

    def report(self, done: int) -> None:
        """Report how many ranks were read."""
        if self._progress:
            self._progress(done, len(self.session.ranks))

    def note_left_out(self, left_out: Mapping[str, int]) -> None:
        """Note how many events have invalid timestamps, by kind."""
        for what, count in left_out.items():
            self.session.note(f"{count} {what} left out: {INVALID}")

    def summary(
        self, table: TableDefinition, rows: Iterable[Row], by: By | None = None, findings: Iterable[Finding] = ()
    ) -> Summary:
        """Put the columns of the division, or else of `by`, in front of a table whose rows start with them."""
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
        """Return what each rank sees of the window; nothing without one."""
        window, windows = self.session.window, {}
        known = [each.number for each in self.session.ranks if each.window or each.number in self.session.spans]
        for rank in known if window else ():  # a rank that idles throughout a merged window has no events there
            if window and rank in window.parts:
                part, shift, base = window.part(rank), self.session.alignment.shift(rank), None
                if not window.is_by_launch(rank):
                    first, last = self.session.time_range or (0, 0)
                    low = shift.to_clock(first) if part.start is None else part.start
                    base = low, shift.to_clock(last) if part.end is None else part.end
                windows[rank] = RankWindow(part, base)
        return windows

    def part(self, rank: int) -> Part:
        """Return the part of a rank that counts, from the start of the time line [ns]; None: open on that side."""
        window = self.session.window
        return window.part(rank).on_line(self.shift(rank)) if window else Part(None, None)

    def shift(self, rank: int) -> Shift:
        """Return what is added to the times of a rank so that they count from the start of the time line."""
        shift = self.session.alignment.shift(rank)
        return replace(shift, offset=shift.offset - self.origin())

    def note_invalid(self, what: str, invalid: int, calls: int) -> None:
        """Report how many events have invalid timestamps."""
        if invalid:
            self.session.note(
                f"{what.replace('_', ' ')}: {invalid} of {calls} have {INVALID}: they count as calls, not as time"
            )


def work_on_rank(
    reader: RankReader, work: Callable[[RankReading], Answer], options: Options, windows: Mapping[int, RankWindow]
) -> tuple[Answer, Counter[str]]:
    """Do the work of an analysis on one rank; return its answer, and what it left out."""
    reading = RankReading(
        reader if reader.known is not None else reader.keeping(), options, windows.get(reader.rank.number, RankWindow())
    )
    return work(reading), reading.left_out


def statistics(spread: Spread) -> Row:
    """Return the values of `STATISTICS`."""
    m = spread.moments
    middle = (spread.quantile(0.5), spread.quantile(0.95), spread.quantile(0.99))
    return (m.calls, m.total, m.mean, m.shortest, *middle, m.longest, m.deviation)


def order_of(key: Sequence[object]) -> tuple[tuple[bool, str, int, str], ...]:
    """Sort keys of numbers, texts and NULL: NULL first, then numbers by size and texts by letters."""
    return tuple(
        (value is not None, "n" if isinstance(value, int) else "t", value if isinstance(value, int) else 0, str(value))
        for value in key
    )
