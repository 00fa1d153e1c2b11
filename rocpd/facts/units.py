"""The time of a job that counts: its steps without warm-up, else its active part; in a window, the window.

It is determined once, for all ranks together, before any rank is read; it never depends on filters of events.

- **Warm-up** is the leading steps that take more than 1.5 times the median of the steps after them. The duration of a
  step is the mean over its ranks, so that there is one number for the job.
- The **active part** of a job lasts from its first to its last dispatch, over all ranks whose clocks compare or are
  aligned; for a rank whose clock is not, from its own first to its own last. It fully includes the steps that count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeAlias

from rocpd.base import Answer, Ints, Row, by_key, frozen
from rocpd.base.identity import blake2b
from rocpd.base.stages import Stage
from rocpd.facts.columns import shared
from rocpd.facts.communication.communicators import Communication
from rocpd.facts.communication.meetings import MEETING_RANKS, times_of_meetings
from rocpd.facts.rank import Options, RankWindow
from rocpd.facts.regions import Steps, step_spans
from rocpd.facts.timeline import ALWAYS, NOTHING, Union
from rocpd.federate.federation import Federation
from rocpd.federate.job import SPANS_OF_RANKS, read_span, spans_of
from rocpd.federate.run.rank_reader import STATEMENT_BYTES, Fact, RankReader
from rocpd.federate.select.align import Alignment
from rocpd.schema.rules.events import copy_agent_sql
from rocpd.schema.rules.steps import is_step

SLOW = 1.2
"""A slow step takes more than this times the median."""

DEVIATIONS = 5.0
"""A slow step also takes more than this number of median deviations above the median."""

LEAST_STEPS = 4
"""Number of steps from which one of them may count as slow."""

_WARM = 1.5  # times the median of the steps after it
_FEWEST = 2  # steps that count: a single one may not be typical
_LONGER, _LONGER_NS = 1.1, 1_000_000  # a step on one machine than on others, where a clock may have been set
_ALIGNED = ("reference", "collectives", "utc", "given")
"""Methods of alignment that show when ranks ran together; moving first events onto each other does not."""

_USED = {
    "rocpd_kernel_dispatch": "SELECT DISTINCT agent_id FROM rocpd_kernel_dispatch",
    "rocpd_memory_copy": f"SELECT {copy_agent_sql()} FROM rocpd_memory_copy",
}
"""Table -> SELECT of the agents of its rows."""

_PRODUCTS = "SELECT product_name FROM rocpd_info_agent WHERE type = 'GPU'"
_OF_GPUS = "products"

_GPUS = "SELECT id, absolute_index FROM rocpd_info_agent WHERE type = 'GPU' AND id IN ({})"


@frozen
class HadByOthers:
    """The times in which other processes have an agent.

    Args:
        agent: its id.
        digest: digest of the times, for comparisons and names.
        start, end: of the times, in order [ns].
    """

    agent: int
    digest: str
    start: Ints = field(repr=False, compare=False)
    end: Ints = field(repr=False, compare=False)

    @classmethod
    def of(cls, agent: int, start: Ints, end: Ints) -> HadByOthers:
        """Return the times of an agent."""
        return cls(agent, blake2b(start.tobytes() + end.tobytes(), digest_size=16).hexdigest(), start, end)


Taken: TypeAlias = tuple[HadByOthers, ...]
"""The times in which other processes have the agents that a rank shares with them."""


def had_by_others(taken: Taken, agent: int) -> Union:
    """Return the times in which other processes have an agent."""
    return next(((each.start, each.end) for each in taken if each.agent == agent), NOTHING)


@frozen
class RankTime:
    """The time of a rank that counts.

    Args:
        start, end: [ns of its clock].
        steps: number of its steps, without warm-up; 0: the time does not go by steps.
        warm_up: number of warm-up steps before them.
        taken: times in which other processes have shared agents, where these are not to count twice.
        skipped: start and end of times that never were, as the clock was set ahead: no work lasts through them [ns].
    """

    start: int
    end: int
    steps: int = 0
    warm_up: int = 0
    taken: Taken = ()
    skipped: tuple[int, int] | None = None

    def is_first(self, agent: int) -> bool:
        """Whether this rank is the first process that uses an agent: values counted once per agent count here."""
        return ALWAYS not in had_by_others(self.taken, agent)[0]


Times = Mapping[int, RankTime]
"""Rank number -> its time that counts; without ranks that ran nothing, and empty in a window by launch."""


def of_steps(times: Times) -> Times:
    """Return the times of the ranks whose time goes by steps."""
    return {rank: time for rank, time in times.items() if time.steps}


def times_that_count(session: Federation, options: Options) -> Times:
    """Return the time of each rank that counts.

    Args:
        session: the job and the window.
        options: markers that are steps, and whether all time counts.
    """
    times = _with_skipped(session, options)
    if not _may_skip(session, options.step_marker):
        return times
    shifts = {rank: session.job.alignment.shift(rank) for rank in times}
    ahead = {rank: (shift.since - shift.jump, shift.since) for rank, shift in shifts.items() if shift.jump > 0}
    return {rank: replace(time, skipped=ahead[rank]) if rank in ahead else time for rank, time in times.items()}


def _with_skipped(session: Federation, options: Options) -> Times:
    """Return the same as if no clock had been set."""
    if session.window:
        return {rank: RankTime(*seen.base) for rank, seen in windows(session).items() if seen.base}
    steps = steps_of_ranks(session, options.step_marker)
    times: dict[int, RankTime] = {}
    for ranks in session.job.by_run:
        steady = steady_times({rank.number: steps[rank.number] for rank in ranks})
        if options.everything or len(steady) < len(ranks):
            times |= active_times(session, [rank.number for rank in ranks], steady)
        times |= {} if options.everything else steady
    return times


def _may_skip(session: Federation, step_marker: str) -> bool:
    """Whether a clock may have been set ahead: a step took clearly longer on one machine than on another.

    Steps are known by now, while the alignment of clocks may take a further pass over all ranks.
    """
    machines = {rank.machine_id or rank.number: rank.number for rank in session.ranks}
    if len(machines) < 2 or session.runs > 1:
        return False
    steps = steps_of_ranks(session, step_marker)
    periods = [_periods(steps[rank]) for rank in machines.values()]
    if not periods[0] or len(set(map(len, periods))) > 1:
        return True
    return any(max(each) > _LONGER * min(each) + _LONGER_NS for each in zip(*periods, strict=True))


def _periods(steps: Steps) -> list[int]:
    """Return the time from the start of each step to that of the next one, for the last one to its end [ns]."""
    edges = [*sorted(start for start, _ in steps.values()), max((end for _, end in steps.values()), default=0)]
    return [after - before for before, after in pairwise(edges)]


def slow_beyond(lengths: Sequence[float], times: float = SLOW, deviations: float = DEVIATIONS) -> float:
    """Return the length from which a step is slow; infinity where there are too few steps.

    >>> slow_beyond([10, 10, 11, 30]), slow_beyond([10, 30])
    (13.0, inf)

    Args:
        lengths: lengths of the steps without warm-up, in any unit.
        times: least multiple of the median.
        deviations: least distance above the median, in medians of the distances from it.
    """
    if len(lengths) < LEAST_STEPS:
        return math.inf
    usual = median(lengths)
    return max(times * usual, usual + deviations * median(abs(each - usual) for each in lengths))


def late_ends(lengths: Sequence[float], periods: Sequence[float]) -> list[int]:
    """Return the indices of steps after which so much time passes that the next step is late, as after a slow step.

    >>> late_ends([9, 9, 9, 9, 30], [10, 10, 50, 10, 31])
    [2]

    Args:
        lengths: time from start to end of the steps without warm-up.
        periods: time from their start to the start of the next step.
    """
    least = slow_beyond(periods) - median(lengths) if lengths else math.inf
    pairs = enumerate(zip(lengths, periods, strict=True))
    return [at for at, (length, period) in pairs if period - length > least]


class _Begun(NamedTuple):
    """Facts of a rank that are read before all else: its steps, the agents that it uses, products of its GPUs."""

    steps: Steps
    agents: tuple[tuple[int, object], ...]
    products: tuple[str, ...]


def steps_of_ranks(session: Federation, step_marker: str) -> Mapping[int, Steps]:
    """Return rank -> its steps; read once for a job."""
    return {rank: begun.steps for rank, begun in _begun(session, step_marker).items()}


def agents_of_ranks(session: Federation, options: Options) -> Mapping[int, Sequence[tuple[int, object]]]:
    """Return rank -> ids of GPUs that it uses, and the number of each on its machine; read once for a job."""
    if session.window:
        return session.job.once("agents", lambda: _of_ranks(session, _used))
    return {rank: begun.agents for rank, begun in _begun(session, options.step_marker).items()}


def products_of_ranks(session: Federation) -> Mapping[int, tuple[str, ...]]:
    """Return rank -> the names of all GPUs of its machine; read once for a job."""
    return session.job.once(_OF_GPUS, lambda: _of_ranks(session, _products))


_Span: TypeAlias = Callable[[RankReader], Row]
_Meet: TypeAlias = Callable[[RankReader], list[Communication]]


def read_first(session: Federation, step_marker: str, *, aligns: bool = True) -> None:
    """Read all facts that the time line of a job needs, in one pass: a further pass takes some ms a rank.

    Args:
        session: the job.
        step_marker: markers that are steps.
        aligns: align clocks before ranks are read again; if not, only those of ranks without steps, whose time that
            counts depends on it.
    """
    job = session.job
    if not session.window:
        spans = len(job.ranks) > 1 and not job.knows(SPANS_OF_RANKS)
        meets = job.aligns_by_collectives and not job.knows(MEETING_RANKS)
        most = _FEWEST if meets and not aligns else math.inf
        _begun(session, step_marker, read_span if spans else None, times_of_meetings if meets else None, most)


def _begun(
    session: Federation,
    step_marker: str,
    span: _Span | None = None,
    meet: _Meet | None = None,
    below: float = math.inf,
) -> Mapping[int, _Begun]:
    """Return rank -> its steps and agents; the job then keeps the spans of ranks and the results of `meet`, if asked.

    Args:
        session: the job.
        step_marker: markers that are steps.
        span, meet: functions that read the span and the meetings of a rank; None: not needed.
        below: `meet` reads ranks with fewer steps only.
    """
    job = session.job
    asked = _First(is_step(step_marker), len(job.ranks) == 1, span, meet, below)

    def begin() -> dict[int, _Begun]:
        of_ranks = _of_ranks(session, partial(_begin, asked=asked))
        if span:
            job.once(SPANS_OF_RANKS, lambda: spans_of({rank: row for rank, (_, row, _) in of_ranks.items()}))
        job.once(_OF_GPUS, lambda: {rank: begun.products for rank, (begun, _, _) in of_ranks.items()})
        met = [met for _, _, met in of_ranks.values() if met is not None]
        if len(met) == len(of_ranks):
            job.once(MEETING_RANKS, lambda: met)
        return {rank: begun for rank, (begun, _, _) in of_ranks.items()}

    return job.once(("steps", step_marker), begin)


_BEGUN = Fact("begun", 2, (_Begun,))


class _First(NamedTuple):
    """The first question to each rank: the markers that are steps, and further arguments of `_begun`."""

    pattern: re.Pattern[str]
    is_alone: bool
    span: _Span | None
    meet: _Meet | None
    below: float


def _begin(reader: RankReader, asked: _First) -> tuple[_Begun, Row, list[Communication] | None]:
    pattern, is_alone = asked.pattern, asked.is_alone
    fact = _BEGUN.of(pattern.pattern, pattern.flags, is_alone)
    begun = reader.once(fact, lambda: _read_first(reader, pattern, is_alone))
    meet = asked.meet if len(begun.steps) < asked.below else None
    return begun, asked.span(reader) if asked.span else (), meet(reader) if meet else None


def _read_first(reader: RankReader, pattern: re.Pattern[str], is_alone: bool) -> _Begun:
    return _Begun(step_spans(reader, pattern), () if is_alone else _used(reader), _products(reader))


def _products(reader: RankReader) -> tuple[str, ...]:
    return tuple(shared(name) or "GPU" for (name,) in reader.rows(_PRODUCTS))


def _used(reader: RankReader) -> tuple[tuple[int, object], ...]:
    """Return GPUs that ran kernels, or that copies belong to, with the number of each on its machine."""
    selects = [select for base, select in _USED.items() if base in reader.tables.columns]
    return tuple((agent, index) for agent, index in reader.rows(_GPUS.format(" UNION ALL ".join(selects) or "NULL")))


def _of_ranks(session: Federation, work: Callable[[RankReader], Answer]) -> dict[int, Answer]:
    """Return rank -> result of `work` on all its rows."""
    of_ranks = session.job.map_ranks(work, brief_bytes=STATEMENT_BYTES)
    return {rank.number: answer for rank, answer in session.job.counted(Stage.FIRST, of_ranks)}


def warm_up(lengths: Sequence[float]) -> int:
    """Return the number of leading steps that are warm-up, given the length of each step.

    >>> warm_up([900, 300, 100, 110, 90, 100]), warm_up([100, 900, 100]), warm_up([300, 100])
    (2, 0, 1)
    """
    count = 0
    while count < len(lengths) // 2 and lengths[count] > _WARM * median(lengths[count + 1 :]):
        count += 1
    return count


def warm_steps(steps: Collection[Steps]) -> frozenset[int]:
    """Return the numbers of the steps that are warm-up, given the steps of each rank."""
    numbers = sorted({number for of_rank in steps for number in of_rank})
    spans = ([of_rank[number] for of_rank in steps if number in of_rank] for number in numbers)
    lengths = [sum(end - start for start, end in of_number) / len(of_number) for of_number in spans]
    return frozenset(numbers[: warm_up(lengths)])


def steady_times(steps: Mapping[int, Steps]) -> dict[int, RankTime]:
    """Return the time of ranks from their first to their last step, without warm-up and ranks with too few steps.

    Args:
        steps: rank -> step number -> its start and end [ns].
    """
    times, warm = {}, warm_steps(steps.values())
    for rank, of_rank in steps.items():
        counted = [span for number, span in of_rank.items() if number not in warm]
        if len(counted) >= _FEWEST:
            start, end = min(start for start, _ in counted), max(end for _, end in counted)
            times[rank] = RankTime(start, end, len(counted), len(of_rank) - len(counted))
    return times


def active_times(session: Federation, numbers: Sequence[int], steady: Times) -> dict[int, RankTime]:
    """Return the active part of a job by the clock of each of its ranks; `steady`: times of the ranks with steps."""
    domains = {rank: number for number, each in enumerate(session.clock_domains) for rank in each.ranks}
    is_one, spans = len({domains.get(rank) for rank in numbers}) == 1, session.spans
    alignment = Alignment() if is_one else session.job.alignment
    times: dict[int, RankTime] = {}
    for ranks in _comparing(numbers, domains, alignment):
        worked = {rank: spans[rank] for rank in ranks if rank in spans}
        extents = {rank: span.dispatched for rank, span in worked.items() if span.dispatched}
        extents = extents or {rank: span.copied for rank, span in worked.items() if span.copied}
        on_line = [(alignment.shift(rank), extent) for rank, extent in extents.items() if extent]
        on_line += [(alignment.shift(rank), (steady[rank].start, steady[rank].end)) for rank in ranks if rank in steady]
        if on_line:
            start = min(shift.to_line(first) for shift, (first, _) in on_line)
            end = max(shift.to_line(last) for shift, (_, last) in on_line)
            shifts = {rank: alignment.shift(rank) for rank in ranks}
            times |= {rank: RankTime(shift.to_clock(start), shift.to_clock(end)) for rank, shift in shifts.items()}
    return times


def windows(session: Federation) -> dict[int, RankWindow]:
    """Return rank -> its part of the window; empty without a window."""
    window, seen = session.window, {}
    if not window:
        return {}
    known = [each.number for each in session.ranks if each.window or each.number in session.spans]
    for rank in known:  # a rank that idles throughout a merged window has no events there
        if rank in window.parts:
            by_launch, line = window.is_by_launch(rank), (session.alignment, session.time_range)
            seen[rank] = RankWindow(window.part(rank), None if by_launch else window.edges(rank, *line))
    return seen


def some_without_steps(times: Sequence[RankTime]) -> str:
    """Return a sentence if some ranks have no steps that count while others have; else an empty text.

    >>> times = [RankTime(1, 9, 2), RankTime(1, 9), RankTime(1, 9)]
    >>> some_without_steps(times), some_without_steps(times[1:])
    ('2 of 3 ranks have no steps that repeat: of them all active time counts', '')
    """
    missing = sum(not time.steps for time in times)
    if missing in (0, len(times)):
        return ""
    have = "has" if missing == 1 else "have"
    return f"{missing} of {len(times)} ranks {have} no steps that repeat: of them all active time counts"


def _comparing(ranks: Iterable[int], domains: Mapping[int, int], alignment: Alignment) -> Iterator[list[int]]:
    """Yield groups of ranks whose times compare, as recorded or after alignment."""

    def line(rank: int) -> object:
        clock = alignment.clock(rank)
        return "aligned" if clock and clock.method in _ALIGNED else ("domain", domains.get(rank))

    yield from by_key((line(rank), rank) for rank in ranks).values()
