"""Collectives: communication kernels matched across ranks, and which rank made which others wait.

`arrivals` determines when each member came; members that came last within noise share the waiting of the others.
`rocpd.facts.communication.collectives` does the matching, and infers groups; inferred groups are reported.

Tables of collectives: who came last, who waits for whom, where their time goes, and the verdict on ranks.

Also explains why a rank holds others up, as far as its file shows it: by comparison with a peer whose time is usual.
Reads only these ranks, once the verdict is known.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from rocpd.base import Answer, Row, amount, by_key, few, frozen, percent_text
from rocpd.base.stages import Stage
from rocpd.facts.columns import as_text, statement
from rocpd.facts.communication.collectives import Channel, Group, listed
from rocpd.facts.communication.exposed import ExposedPieces, waits_of
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.members import CLASSES, arrivals, channels_of
from rocpd.facts.communication.transfers import Partners
from rocpd.facts.operations import OperationNames, Ops
from rocpd.facts.rank import By, RankReading
from rocpd.facts.regions import RankSteps, frame_of, frames_of, steps_of
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.federate.select.selection import Selection
from rocpd.replay.causes import OF_HOST, Blame, Cause, CauseKind
from rocpd.replay.denied import Denied
from rocpd.replay.graph import read_graph
from rocpd.replay.job import JobGraph, join
from rocpd.replay.points import PackedGraph
from rocpd.replay.whatif import Replays
from rocpd.schema.rules.kernel_categories import Categories, is_communication, load
from rocpd.schema.rules.kernel_names import names_of_kernels
from rocpd.schema.rules.steps import is_step
from rocpd.summary.communication.exposed import TABLES as EXPOSED
from rocpd.summary.communication.exposed import exposed_communication
from rocpd.summary.communication.slow import slow_collectives
from rocpd.summary.communication.verdict import Judgement, Periods, judge, periods, replays_of
from rocpd.summary.communication.waiting import Waiting
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, merge, percent
from rocpd.summary.reading import DIVISIONS, Reading
from rocpd.summary.result import Field, Picture, Summary, TableDefinition, by_name, table_of
from rocpd.table.human import readable

_ALWAYS_RANKS = ("grew_rank",)  # steps grow rank by rank, whatever is compared
_FEW = 4  # groups that a note names
_OUTLIER = 5.0  # times as long as the median: a collective that waits for start-up
_LEAST = 5  # collectives of a group that it takes to find such a first one

TABLES = by_name(
    table_of(
        "collectives",
        "Communication kernels matched across ranks, as said below; the costliest first.",
        Field("name", "", "kernel", is_kernel=True),
        Field("number", "", "which of this name in its group, from 1", True),
        Field("group", "", "ranks that belong together", True),
        Field("ranks", "", "how many took part", True),
        Field("straggler", "", "rank (or host; agent, stream: the id follows) that came last; NULL: several did"),
        Field("wait_ns", "ns", "waiting of all ranks together"),
        Field("max_wait_ns", "ns", "longest waiting of a rank"),
        Field("min_ns", "ns", "shortest time of a rank in it: time of the collective itself", True),
        Field("max_ns", "ns", "time of the rank that came first"),
        Field("class", "", "the use of its time, as said below", True),
        Field("operation", "", "all-reduce …; NULL where calls of RCCL don't say it"),
        Field("bytes", "bytes", "its size, of the whole result; NULL where calls of RCCL don't say it", True),
        Field("algorithm_gb_per_s", "GB/s", "size by min_ns, 10^9 bytes per second", True),
        Field("bus_gb_per_s", "GB/s", "the same as links see it, as said below", True),
    ),
    table_of(
        "stragglers",
        "Which ranks (or hosts, agents, streams) the others wait for, without start-up; the worst first.",
        Field("collectives", "", "collectives that it took part in"),
        Field("times_last", "", "how often it came last; of several that came last together each has its share"),
        Field("percent_last", "%", "share of its collectives"),
        Field(
            "caused_wait_ns", "ns", "how long others waited as it came last, whoever held it up: `causes` says who does"
        ),
        Field("own_wait_ns", "ns", "how long it waited for others"),
        Field(
            "cost_ns",
            "ns",
            "a step would take less without it, as in `causes`; of ranks that are one cause in the row of the first, "
            "without all of them; NULL: none of its own; by rank only",
        ),
        Field("steps_last", "", "in how many steps it came last of the ranks that do the same; by rank only", True),
        Field("compute_by_peers", "", "time that others usually take to compute the same; by rank only", True),
        title="Waiting that ranks cause",
    ),
    table_of(
        "causes",
        "What the job loses to ranks, hosts and links that differ from others, by replaying it without that.",
        Field("who", "", "rank, host or link; all that differs: each of them as the others, in each step"),
        Field("cost_ns", "ns", "a step would take less without it; one that others hide: without these, too"),
        Field("cost_percent", "%", "share of a mean step"),
        Field("mainly", "", "the part that takes longer there"),
        Field("longer_ns", "ns", "how much, in a step; if it stalls at times, in those steps"),
        Field("compute_longer_percent", "%", "how much longer it computes than others; NULL if it stalls at times"),
        Field("steps", "", "in how many steps it takes longest, or stalls"),
        Field("of_steps", "", "steps that were compared"),
        Field("wait_percent", "%", "share of the waiting in collectives that goes with it"),
        Field("chance", "", "how probable it is that it does not last; NULL where that is not known"),
        Field("ranks", "", "numbers of the ranks that it concerns; NULL of all that differs", True),
        Field("step_ns", "ns", "the mean step that cost_percent is a share of, time between steps included", True),
        title="What ranks, hosts and links cost",
    ),
    table_of(
        "waits",
        "Who waits for whom in collectives, without start-up.",
        Field("waiter", "", "rank (or host; agent, stream: the id follows) that waits"),
        Field("late", "", "who came last, so that the waiter waited for it"),
        Field("collectives", "", "in how many collectives"),
        Field("wait_ns", "ns", "how long in all"),
        Field("max_wait_ns", "ns", "how long at most"),
        chart="rocpd.summary.plots:waits",
        picture=Picture("rocpd.summary.pictures:waits"),
    ),
    table_of(
        "communication",
        "What the time of communication kernels went into.",
        Field("class", "", "of collectives, as said below; point-to-point; or unmatched: part of neither"),
        Field("collectives", "", "how many collectives or transfers; NULL for unmatched kernels"),
        Field("kernels", "", "communication kernels in them"),
        Field("time_ns", "ns", "sum of their durations"),
        Field("percent", "%", "share of the time of all communication kernels", is_share=True),
        Field("wait_ns", "ns", "waiting for the last member in it; NULL where that is unknown"),
    ),
    table_of(
        "transfers",
        "Sends and receives between two ranks, matched; most waiting first.",
        Field("name", "", "kernel", is_kernel=True),
        Field("sender", "", "rank that sends"),
        Field("receiver", "", "rank that receives"),
        Field("is_directed", "", "0 where nothing says which of both sends", True),
        Field("transfers", "", "how many"),
        Field("mean_ns", "ns", "mean time of the one that came last: time of the transfer itself"),
        Field("sender_wait_ns", "ns", "how long the sender waited for the receiver, in all"),
        Field("receiver_wait_ns", "ns", "how long the receiver waited for the sender, in all"),
    ),
)


_MOSTLY = 2 / 3  # share of a rank's extra time of computing
_MATTERS = 0.01  # share of a peer's time
_LEAST_SAMPLES = 3
_OTHER_ROLE = 0.2  # share of the dispatches of a rank: with more of other kernels, two ranks do different work
_EXPLAINED = 3  # ranks and hosts to blame that are explained: each takes reading two files
_CUT = 0.5  # of a step: one of two ranks may have so many more of its kernels between the same steps

Shape = tuple[object, ...]
"""A kernel's name and its launch sizes."""


class _Rank(NamedTuple):
    """The communication of a rank between the first step and the last.

    Args:
        kernels: shape -> number, total time [ns] and total work-items of its dispatches, without communication.
        clock: mean of the samples of its clock [MHz]; None if there are too few.
    """

    kernels: dict[Shape, Sums]
    clock: float | None


_Sampled = dict[tuple[str, str | None], int]
"""Function and file -> time of samples in it [ns]."""


class Explanation(NamedTuple):
    """The reason why a rank is late: words that continue a sentence, and numbers by name."""

    text: str
    evidence: dict[str, float]


_NO_REASON = Explanation("", {})


def _cause(late: _Rank, peer: _Rank, steps: int) -> Explanation:
    """Return why a rank is late, by a peer that does the same and takes as long as usual; nothing may show it."""
    causes = [why for why in (_computing(late, peer, steps), _clock(late, peer)) if why]
    evidence = {name: value for cause in causes for name, value in cause.evidence.items()}
    return Explanation(", ".join(cause.text for cause in causes if cause.text), evidence)


def _function(times: _Sampled, theirs: _Sampled) -> Explanation:
    """Return the function in which the host of a rank spends more time than its peer's, by samples of call stacks.

    Without words if no samples were taken, or no function takes much longer.
    """
    longer = {place: time - theirs.get(place, 0) for place, time in times.items()}
    if theirs and longer:
        place = max(longer, key=longer.__getitem__)
        percent = longer[place] * 100 / sum(theirs.values())
        if percent >= _MATTERS * 100:
            return Explanation(f"its host is longer in {place[0]}", {"function_longer_percent": percent})
    return _NO_REASON


def _sampled(reader: RankReader, pieces: Periods) -> _Sampled:
    times: _Sampled = {}
    for stack, time in reader.rows(statement("sampled_stacks"), _span(reader, pieces)):
        for text in frames_of(as_text(stack) or "")[-1:]:
            merge(times, {frame_of(text)[:2]: int(time)})
    return times


def _span(reader: RankReader, pieces: Periods) -> tuple[int, int]:
    column = pieces.ranks.index(reader.rank.number)
    return int(pieces.start[0, column]), int(pieces.end[-1, column])


def _read(reader: RankReader, pieces: Periods, categories: Categories) -> _Rank:
    span = _span(reader, pieces)
    texts = {number: as_text(name) for number, name in reader.rows(names_of_kernels())}
    compute = {number: text for number, text in texts.items() if not is_communication(categories.of(text))}
    kernels: dict[Shape, Sums] = {}
    for number, *shape, count, time, items in reader.rows(statement("shapes"), span):
        if number in compute:
            merge(kernels, {(compute[number], *shape): Sums((count, time, items or 0))})
    ((samples, clock),) = reader.rows(statement("clock_samples"), span)
    return _Rank(kernels, clock if samples >= _LEAST_SAMPLES else None)


def _computing(late: _Rank, peer: _Rank, steps: int) -> Explanation | None:
    """Return why the kernels of a rank take longer: the same kernels are slower, or there is more work.

    Ranks lie apart in time, and windows cut: one may have some more dispatches between the same steps. So kernels that
    both run with the same grids are compared per dispatch, by their means.
    """
    compared = slower = longer = more = 0.0
    for shape in {**peer.kernels, **late.kernels}:
        (count, time, items), (others, their_time, their_items) = (
            rank.kernels.get(shape, (0, 0, 0)) for rank in (late, peer)
        )
        fewer = min(count, others)
        if fewer and abs(count - others) <= max(1, _CUT * max(count, others) / steps):
            compared += fewer * their_time / others
            slower += fewer * (time / count - their_time / others)
        else:
            longer += time - their_time
            more += items - their_items
    percent = slower * 100 / compared if compared else 0.0
    if not _have_one_role(late, peer):
        text = f"the same kernels take {percent_text(percent)} longer" if percent >= _MATTERS * 100 else ""
        return Explanation(text, {"same_kernels_longer_percent": percent})
    longer += slower
    _, usual, usual_items = map(sum, zip((0, 0, 0), *peer.kernels.values(), strict=True))
    if not usual or longer < _MATTERS * usual:
        return None
    more_percent = more * 100 / usual_items if usual_items else 0.0
    evidence = {"same_kernels_longer_percent": percent, "more_work_items_percent": more_percent}
    more_items = f"it has more work: {percent_text(more_percent)} more work-items"
    text = more_items if more_percent >= 1 else "it runs other kernels"
    if slower >= _MOSTLY * longer:
        text = "the same kernels and grids"
    elif slower > (1 - _MOSTLY) * longer:
        text = f"the same kernels take {percent_text(percent)} longer, and it has other ones or larger grids"
    return Explanation(text, evidence)


def _have_one_role(late: _Rank, peer: _Rank) -> bool:
    """Whether ranks launch much the same kernels: stages of a pipeline do not, and their work does not compare."""
    counts = Counter[object](), Counter[object]()
    for rank, of_rank in zip((late, peer), counts, strict=True):
        for (name, *_), (count, _, _) in rank.kernels.items():
            of_rank[name] += count
    apart = sum(abs(counts[0][name] - counts[1][name]) for name in {*counts[0], *counts[1]})
    return apart <= _OTHER_ROLE * counts[1].total()


def _clock(late: _Rank, peer: _Rank) -> Explanation | None:
    if not late.clock or not peer.clock:
        return None
    percent = (1 - late.clock / peer.clock) * 100
    text = f"its clock is {percent_text(percent)} lower" if percent >= _MATTERS * 100 else ""
    return Explanation(text, {"clock_lower_percent": percent})


class RankCommunication(NamedTuple):
    """The communication of a rank: channels, markers, the graph of waits in its whole trace, and exposed pieces.

    The graph is None if replays of the job are kept; the exposed pieces are None unless they are asked for.
    """

    channels: list[Channel]
    steps: RankSteps
    graph: PackedGraph | None
    exposed: ExposedPieces | None = None


def communication_of(
    reading: RankReading, ops: Ops, names: OperationNames, categories: Categories, step: re.Pattern[str]
) -> RankCommunication:
    """Read the communication of a rank.

    Args:
        reading: reads the rank.
        ops: its operations that count.
        names: their names.
        categories: say which operations are communication.
        step: markers that are steps.
    """
    channels, steps = channels_of(reading, ops, names, categories), steps_of(reading.reader, step)
    return RankCommunication(channels, steps, read_graph(reading, categories, step))


@frozen
class Blamed:
    """The results of the graph of a whole job, in the form kept for other commands.

    Args:
        computing: ranks that compute.
        blame: the time that the job loses, and the causes; None where nothing shows its steps.
        explained: reasons why the culprits are late, for the worst few, the worst first.
    """

    computing: tuple[int, ...]
    blame: Blame | None
    explained: tuple[Explanation, ...] = ()


_BLAMED = Fact("blamed", 24, (Blamed, Blame, Cause, CauseKind, Denied, Explanation))


class KeptBlame:
    """Results of replays of a job in another command, valid while its files are unchanged.

    Args:
        reading: the job and the options.

    Attributes:
        known: the results; None: none are kept.
    """

    def __init__(self, reading: Reading) -> None:
        session, options = reading.session, reading.options
        job, self._facts, self.known = session.job, None, None
        if session.selection == Selection() and not options.names_files and not job.kept_alignment:
            how = repr((job.how, sorted(job.clock_offsets.items())))
            numbers = tuple(rank.number for rank in session.ranks)
            self._fact = _BLAMED.of(options.step_marker, tuple(sorted(reading.warm_up())), how, numbers)
            self._facts = job.facts
            self.known = self._facts.known(self._fact) if self._facts else None
        if self.known:
            job.course.know_blame()

    def keep(self, blamed: Blamed) -> None:
        """Keep results for other commands."""
        if self._facts and not self.known:
            self._facts.derived(self._fact, blamed)
            self._facts.keep()


@frozen
class MatchedCommunication:
    """The communication of a job, matched.

    Args:
        groups: channels of one communicator each.
        pairs: channels of two ranks that send to each other.
        lost: reason -> number of kernels that are in neither.
        clocks: says which times of ranks compare.
        pieces: steps; None where nothing shows them.
        judgement: the verdict on ranks.
    """

    groups: Sequence[Group]
    pairs: Sequence[Partners]
    lost: Counter[str]
    clocks: Clocks
    pieces: Periods | None
    judgement: Judgement

    @classmethod
    def of(cls, reading: Reading, ranks: dict[int, RankCommunication], kept: KeptBlame) -> MatchedCommunication:
        """Match the communication of ranks, and judge them in their steps without warm-up; graphs are let go.

        The job is kept for replays with changes only if the table of ranks, which offers these, is wanted: with many
        ranks it takes most of the memory.
        """
        session = reading.session
        channels = [channel for rank in ranks.values() for channel in rank.channels]
        clocks = Clocks.of(session, channels)
        matched = clocks.match(channels)
        hosts = {rank.number: rank.hostname for rank in session.ranks}
        graphs = {number: rank.graph for number, rank in ranks.items() if rank.graph}
        ranks |= {number: rank._replace(graph=None) for number, rank in ranks.items()}

        @functools.cache
        def job() -> JobGraph:
            return join(graphs or _graphs(reading), matched, clocks, session)

        known = kept.known
        computing = known.computing if known else tuple(number for number, graph in graphs.items() if graph.computes)
        pieces = periods({number: ranks[number].steps for number in computing}, reading.warm_up(), matched.groups)
        replays = functools.cache(partial(_replays, session, job, pieces, clocks)) if pieces else None
        with session.job.course.during(Stage.BLAME):
            blamed = known or Blamed(computing, replays().blame if replays else None)
        lacking = "" if matched.groups or matched.pairs else _lacking(session, channels)
        judgement = judge(blamed.blame, pieces, hosts, matched.groups, clocks, lacking)
        if judgement.usual is not None and pieces:
            if not known:
                explained = tuple(_explanations(session, judgement, judgement.usual, pieces))
                blamed = replace(blamed, explained=explained)
            judgement = _explained(judgement, blamed.explained)
        kept.keep(blamed)
        if reading.wants("ranks"):
            judgement = replace(judgement, replays=replays)
        return cls(matched.groups, matched.pairs, matched.lost, clocks, pieces, judgement)


def _replays(session: Federation, graph: Callable[[], JobGraph], pieces: Periods, clocks: Clocks) -> Replays:
    with session.job.course.during(Stage.ANEW):
        return replays_of(graph(), pieces, clocks)


def _graphs(reading: Reading) -> dict[int, PackedGraph]:
    """Return rank -> its graph, if it was not read with the rest."""
    step, categories = is_step(reading.options.step_marker), load(reading.options.categories)
    work = partial(_graph_of_rank, step=step, categories=categories)
    answers = reading.session.job.counted(Stage.GRAPHS, reading.session.map_ranks(work))
    return {rank.number: graph for rank, graph in answers}


def _graph_of_rank(reader: RankReader, step: re.Pattern[str], categories: Categories) -> PackedGraph:
    return read_graph(RankReading.of(reader, {}), categories, step)


def _lacking(session: Federation, channels: Sequence[Channel]) -> str:
    """Return the reason why nothing is known where no communication is matched."""
    if len(session.ranks) == 1:
        return "not known: one rank alone compares with no other"
    if channels:
        return f"not known: none of {_count(channels)} communication kernels is matched"
    return "not known: no collectives in this part of the trace" if session.is_part else "not recorded: no collectives"


def _explanations(session: Federation, judgement: Judgement, usual: int, pieces: Periods) -> Iterator[Explanation]:
    """Yield why the culprits are late, as far as their files show it; for a late host, the function that takes longer.

    Args:
        session: reads the ranks.
        judgement: the culprits.
        usual: a rank that is not to blame.
        pieces: the steps.
    """
    known, findings = set(pieces.ranks), judgement.findings
    culprits = [  # if its host takes longer, kernels and clocks explain nothing
        (late[:_EXPLAINED] if {*late, usual} <= known else (), findings[at].evidence.get("mainly") == OF_HOST)
        for late, at in zip(judgement.late[:_EXPLAINED], judgement.accused, strict=False)
    ]  # ranks that were killed before these steps are not explained
    read: dict[bool, dict[int, Any]] = {}
    computing = partial(_read, pieces=pieces, categories=load(None))
    for of_hosts, work in ((True, partial(_sampled, pieces=pieces)), (False, computing)):
        numbers = {rank for late, is_host in culprits if is_host is of_hosts for rank in late}
        read[of_hosts] = _of_ranks(session, {*numbers, usual} if numbers else set(), work)
    for late, is_host in culprits:
        of_ranks, why = read[is_host], _function if is_host else partial(_cause, steps=len(pieces))
        yield _in_common({rank: why(of_ranks[rank], of_ranks[usual]) for rank in late}) if late else _NO_REASON


def _of_ranks(session: Federation, numbers: set[int], work: Callable[[RankReader], Answer]) -> dict[int, Answer]:
    """Return rank -> result of `work` for some ranks."""
    job = session.job.of_ranks(tuple(rank for rank in session.ranks if rank.number in numbers), keep_alignment=False)
    tables = {number: session.rank_tables(number) for number in numbers}
    return {rank.number: answer for rank, answer in job.work_on(tables, work)}


def _in_common(of_ranks: Mapping[int, Explanation]) -> Explanation:
    """Return the common reason of ranks that take as much longer; the reason of each if these differ."""
    if len({re.sub(r"[\d.]+ %", "", each.text) for each in of_ranks.values()}) == 1:
        return next(iter(of_ranks.values()))
    text = "; ".join(f"rank {rank}: {each.text}" for rank, each in of_ranks.items() if each.text)
    return Explanation(text, {"reasons": len(of_ranks)})


def _explained(judgement: Judgement, explanations: Sequence[Explanation]) -> Judgement:
    """Return the verdict with the reasons why ranks are late."""
    findings = list(judgement.findings)
    for at, why in zip(judgement.accused, explanations, strict=False):
        text = "; ".join(filter(None, (findings[at].text, why.text)))
        findings[at] = replace(findings[at], text=text, evidence={**findings[at].evidence, **why.evidence})
    return replace(judgement, findings=tuple(findings))


def _count(channels: Iterable[Channel]) -> int:
    return sum(len(channel.numbers) for channel in channels)


def communication(
    reading: Reading, by: By, ranks: dict[int, RankCommunication], kept: KeptBlame
) -> tuple[Judgement, Sequence[Summary]]:
    """Return the verdict, with all findings on communication, and its tables; a note says what can't be known."""
    session = reading.session
    if session.runs > 1:
        return Judgement(()), ()
    channels = [channel for rank in ranks.values() for channel in rank.channels]
    matched = MatchedCommunication.of(reading, ranks, kept)
    inferred = [group for group in matched.groups if len(group) > 2 and not (group[0].communicator or group[0].size)]
    if words := sorted({listed(sorted({member.rank for member in group})) for group in inferred}):
        which = few(words, _FEW, "; ")
        session.note(f"collectives: communicators unknown; groups run equally often at the same time: {which}")
    if not channels:
        session.note("no communication kernels found")
    elif matched.lost and len(session.ranks) > 1:
        of = f"{matched.lost.total()} of {_count(channels)} communication kernels"
        why = "; ".join(f"{count}: {reason}" for reason, count in matched.lost.most_common())
        session.note(f"collectives: {of} could not be matched with those of others ({why})")
    blames = any(map(reading.wants, ("stragglers", "waits")))
    waiting = Waiting(by, {rank.number: rank for rank in session.ranks}, matched.clocks, blames)
    is_whole = session.window is None  # the first step of a window is not the first of the job
    startup = [first_judged(group, matched.pieces) if is_whole else 0 for group in matched.groups]
    for group, first in zip(matched.groups, startup, strict=True):
        waiting.add(group, first)
    slow = slow_collectives(chain.from_iterable(some.sized() for some in waiting.listed))
    findings = (*matched.judgement.findings, *slow, *_of_startup(matched, startup))
    if channels and not waiting.listed:
        session.note("no collective that two ranks took part in")
    exposed: Iterable[Summary] = ()
    if any(map(reading.wants, EXPOSED)):
        pieces = ((rank.channels, rank.exposed) for rank in ranks.values() if rank.exposed)
        exposed = exposed_communication(pieces, matched.groups, waits_of(matched.groups, matched.pairs, matched.clocks))
    tables = (*_tables(by, channels, waiting, matched, findings), *exposed)
    return replace(matched.judgement, findings=findings), tables


def _tables(
    by: By, channels: Sequence[Channel], waiting: Waiting, matched: MatchedCommunication, findings: Sequence[Finding]
) -> Iterator[Summary]:
    if waiting.listed:
        fields = who(TABLES["collectives"], by)
        yield Summary(TABLES["collectives"], fields, waiting.collective_rows, findings=findings)
    if waiting.listed and waiting.blames:
        fields = (*DIVISIONS[by], *TABLES["stragglers"].fields)
        rows = _straggler_rows(by, waiting, matched.judgement)
        late = Summary(TABLES["stragglers"], fields, rows, findings=findings)
        late.pictured_by = Summary(TABLES["waits"], who(TABLES["waits"], by), waiting.pair_rows, findings=findings)
        yield late
        yield late.pictured_by
    if matched.judgement.causes:
        yield Summary.whole(TABLES["causes"], matched.judgement.causes, findings=findings)
    transfers = [_transfers(partners, matched.clocks) for partners in matched.pairs]
    if channels:
        rows = _class_rows(channels, waiting, matched.pairs, transfers)
        yield Summary.whole(TABLES["communication"], rows, findings=findings)
    if transfers:
        ordered = sorted(_by_pair(transfers), key=lambda row: (-row[-2] - row[-1], row[1], row[2]))
        yield Summary.whole(TABLES["transfers"], ordered)


def who(table: TableDefinition, by: By) -> tuple[Field, ...]:
    """Return the fields of a table, with those that name a rank replaced by those that name the compared division."""
    fields: list[Field] = []
    for column in table.fields:
        prefix, _, rest = column.name.partition("_")
        names = [column.name]
        if column.name in ("straggler", "waiter", "late"):
            names += [f"{column.name}_{division.name}" for division in DIVISIONS[by][1:]]
        elif rest == "rank" and column.name not in _ALWAYS_RANKS:
            names = [f"{prefix}_{division.name}" for division in DIVISIONS[by]]
        fields += [replace(column, name=name) for name in names]
    return tuple(fields)


def _straggler_rows(by: By, waiting: Waiting, judgement: Judgement) -> list[tuple[object, ...]]:
    """Return the rows of the table; the culprits come first."""
    rows = waiting.straggler_rows()
    if by is not By.RANK:
        return [(*row, None, None, None) for row in rows]
    worst = {rank: number for number, rank in enumerate(judgement.culprits)}
    ordered = sorted(rows, key=lambda row: worst.get(row[0], len(worst)))
    known = judgement.costs, judgement.last, judgement.compute
    return [(*row, *(values.get(row[0]) for values in known)) for row in ordered]


def _transfers(partners: Partners, clocks: Clocks) -> tuple[Any, ...]:
    """Return the row of the transfers of two ranks."""
    sender, receiver, is_directed = partners
    numbers = np.union1d(sender.numbers, receiver.numbers)
    when = arrivals((sender, receiver), clocks, numbers)
    mean = float(when.times.min(0).mean()) if len(numbers) else None
    waits = when.waits.sum(1).tolist()
    return (sender.shown, sender.rank, receiver.rank, int(is_directed), len(numbers), mean, *waits)


def _by_pair(transfers: Sequence[Row]) -> Iterator[Row]:
    """Yield a row for each pair and name: the transfers of a pair may use several channels."""
    for pair, transferred in by_key((each[:4], each[4:]) for each in transfers).items():
        counts, means, *waits = zip(*transferred, strict=True)
        times = sum(count * mean for count, mean in zip(counts, means, strict=True) if count)
        yield (*pair, sum(counts), times / sum(counts) if sum(counts) else None, *map(sum, waits))


def _class_rows(
    channels: Sequence[Channel], waiting: Waiting, pairs: Sequence[Partners], transfers: Sequence[tuple[Any, ...]]
) -> list[Row]:
    """Return the time of communication by class; the last row is for unmatched kernels."""
    in_pairs = {id(channel): channel for pair in pairs for channel in (pair.sender, pair.receiver)}  # a ring has two
    in_all, sent = _time(channels), list(in_pairs.values())
    sums: list[tuple[Any, ...]] = [
        (name, *waiting.classes.get(name, np.zeros(4, np.int64)).tolist()) for name in CLASSES
    ]
    counts, waits = sum(row[4] for row in transfers), sum(sum(row[-2:]) for row in transfers)
    sums.append(("point-to-point", counts, _count(sent), _time(sent), waits))
    rest = _count(channels) - sum(row[2] for row in sums), in_all - sum(row[3] for row in sums)
    sums.append(("unmatched", None, *rest, None))
    return [(*row[:4], percent(row[3], in_all), row[4]) for row in sums]


def _time(channels: Iterable[Channel]) -> int:
    """Return the time of the counted kernels of channels [ns]."""
    return sum(int((channel.end - channel.start)[channel.numbers].sum()) for channel in channels)


def _of_startup(matched: MatchedCommunication, first: Sequence[int]) -> Iterator[Finding]:
    """Yield a finding on the first collectives of groups, which wait for ranks to start, so not for stragglers."""
    if not (count := sum(first)):
        return
    caused = Counter[int]()
    for group, of_group in ((group, some) for group, some in zip(matched.groups, first, strict=True) if some):
        when = arrivals(group, matched.clocks, np.arange(of_group))
        for member, wait in zip(group, (when.shares * when.waits.sum(0)).sum(1).tolist(), strict=True):
            caused[member.rank] += round(wait)
    wait, worst = caused.total(), max(caused, key=lambda rank: caused[rank])
    text = f"start-up is not judged: {amount(count, 'collective')}, {readable(wait, 'ns')} of waiting"
    text += f", {readable(caused[worst], 'ns')} of it for rank {worst}" if wait else ""
    evidence = {"collectives": count, "wait_ns": wait}
    yield Finding(text, "comm.startup", Verdict.NONE, Confidence.CERTAIN, worst, evidence=evidence)


def first_judged(group: Group, pieces: Periods | None) -> int:
    """Return the number of a group's collectives in start-up: before the first step, or the first if far longer."""
    if pieces and pieces.unit == "steps":
        ranks = [member for member in group if member.rank in pieces.ranks]
        if ranks:
            return int(np.searchsorted(ranks[0].start, pieces.start[0, pieces.ranks.index(ranks[0].rank)]))
    longest = np.max([member.end - member.start for member in group], axis=0)
    return int(len(longest) >= _LEAST and longest[0] > _OUTLIER * np.median(longest))
