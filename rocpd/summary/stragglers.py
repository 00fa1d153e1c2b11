"""Tables of collectives: who was last, who waits for whom, what their time went into, and the verdict on ranks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rocpd.federate.federation import Federation
from rocpd.frozen import frozen
from rocpd.read.matching import Clocks
from rocpd.summary.arrivals import CLASSES, arrivals
from rocpd.summary.collectives import Waiting, channels_of
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.ops import OperationNames, Ops, split
from rocpd.summary.options import By
from rocpd.summary.periods import Periods, RankWork, periods, work_of
from rocpd.summary.reading import DIVISIONS, RankReading, Reading
from rocpd.summary.result import Field, Picture, Summary, TableDefinition, by_name
from rocpd.summary.steps import RankSteps, steps_of
from rocpd.summary.verdict import Judgement, judge, unknown
from rocpd.summary.why_late import cause_of
from rocpd.table.human import readable
from rocpd.trace.collectives import Channel, Group, listed
from rocpd.trace.kernel_categories import Categories, load
from rocpd.trace.transfers import Partners
from rocpd.types import Row

_ALWAYS_RANKS = ("grew_rank",)  # steps grow rank by rank, whatever is compared
_FEW = 4  # groups that are named
_OUTLIER = 5.0  # times as long as the median: a collective that waits for start-up
_LEAST = 5  # collectives of which the first ones can be such

TABLES = by_name(
    TableDefinition(
        "collectives",
        "Communication kernels matched across ranks, as said below; the costliest first.",
        (
            Field("name", "", "kernel", is_kernel=True),
            Field("number", "", "which of this name in its group, from 1", True),
            Field("group", "", "ranks that belong together", True),
            Field("ranks", "", "how many took part", True),
            Field("straggler", "", "rank (or host; agent, stream: the id follows) that came last; NULL: several did"),
            Field("wait_ns", "ns", "waiting of all ranks together"),
            Field("max_wait_ns", "ns", "longest waiting of a rank"),
            Field("min_ns", "ns", "shortest time of a rank in it: what the collective itself takes", True),
            Field("max_ns", "ns", "time of the rank that came first"),
            Field("class", "", "what its time went into, as said below", True),
            Field("bytes", "bytes", "its size, of the whole result; NULL where calls of RCCL don't say it", True),
            Field("algorithm_gb_per_s", "GB/s", "size by min_ns, 10^9 bytes per second", True),
            Field("bus_gb_per_s", "GB/s", "the same as links see it, as said below", True),
        ),
    ),
    TableDefinition(
        "stragglers",
        "Which ranks (or hosts, agents, streams) the others wait for, without start-up; the worst first.",
        (
            Field("collectives", "", "collectives that it took part in"),
            Field("times_last", "", "how often it came last; of several that came last together each has its share"),
            Field("percent_last", "%", "share of its collectives"),
            Field("caused_wait_ns", "ns", "how long others waited for it, all together"),
            Field("own_wait_ns", "ns", "how long it waited for others"),
            Field("steps_last", "", "in how many steps it came last of the ranks that do the same; by rank only", True),
            Field("compute_by_peers", "", "its time of computing by that of these ranks; by rank only", True),
        ),
        title="Waiting that ranks cause",
    ),
    TableDefinition(
        "waits",
        "Who waits for whom in collectives, without start-up.",
        (
            Field("waiter", "", "rank (or host; agent, stream: the id follows) that waits"),
            Field("late", "", "who came last"),
            Field("collectives", "", "in how many collectives"),
            Field("wait_ns", "ns", "how long in all"),
            Field("max_wait_ns", "ns", "how long at most"),
        ),
        chart="rocpd.summary.plots:waits",
        picture=Picture("rocpd.summary.pictures:waits"),
    ),
    TableDefinition(
        "communication",
        "What the time of communication kernels went into.",
        (
            Field("class", "", "of collectives, as said below; point-to-point; or unmatched: part of neither"),
            Field("collectives", "", "how many collectives or transfers; NULL for what is unmatched"),
            Field("kernels", "", "communication kernels in them"),
            Field("time_ns", "ns", "sum of their durations"),
            Field("percent", "%", "share of the time of all communication kernels", is_share=True),
            Field("wait_ns", "ns", "waiting for the last member in it; NULL where that is unknown"),
        ),
    ),
    TableDefinition(
        "transfers",
        "Sends and receives between two ranks, matched; most waiting first.",
        (
            Field("name", "", "kernel", is_kernel=True),
            Field("sender", "", "rank that sends"),
            Field("receiver", "", "rank that receives"),
            Field("is_directed", "", "0 where nothing says which of both sends", True),
            Field("transfers", "", "how many"),
            Field("mean_ns", "ns", "mean time of the one that came last: what a transfer itself takes"),
            Field("sender_wait_ns", "ns", "how long the sender waited for the receiver, in all"),
            Field("receiver_wait_ns", "ns", "how long the receiver waited for the sender, in all"),
        ),
    ),
)


class RankCommunication(NamedTuple):
    """What a rank says of its communication: channels, markers, and what it computed between."""

    channels: list[Channel]
    steps: RankSteps
    work: RankWork


def communication_of(
    reading: RankReading, ops: Ops, names: OperationNames, categories: Categories, step: re.Pattern[str]
) -> RankCommunication:
    """Read what a rank says of its communication.

    Args:
        reading: reads the rank.
        ops: its operations that count.
        names: names of these.
        categories: say which are communication.
        step: markers that are steps.
    """
    channels, steps = channels_of(reading, ops, names, categories), steps_of(reading.reader, step)
    compute = split(ops, categories, names)["compute"]
    return RankCommunication(channels, steps, work_of(ops, compute, names, steps, channels, reading.window.part))


@frozen
class CommunicationTables:
    """Tables of communication, and what is concluded from them."""

    judgement: Judgement
    findings: tuple[Finding, ...]
    tables: tuple[Summary, ...]


@frozen
class MatchedCommunication:
    """The communication of a job, matched.

    Args:
        groups: channels of one communicator each.
        pairs: channels of two ranks that send to each other.
        lost: why how many kernels are in neither.
        clocks: which times of them compare.
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
    def of(cls, session: Federation, ranks: Mapping[int, RankCommunication]) -> MatchedCommunication:
        channels = [channel for rank in ranks.values() for channel in rank.channels]
        before = {
            id(channel): sums
            for rank in ranks.values()
            for channel, sums in zip(rank.channels, rank.work.before, strict=True)
        }
        steps, works = ({number: getattr(rank, what) for number, rank in ranks.items()} for what in ("steps", "work"))
        clocks = Clocks.of(session, channels)
        groups, pairs, lost = clocks.match(channels)
        pieces = periods(steps, works, groups, before)
        hosts = {rank.number: rank.hostname for rank in session.ranks}
        has_stages = bool(pairs) or any(channel.role for channel in channels) or lost.total() > _count(channels) / 10
        judgement = judge(groups, pieces, works, clocks, hosts, has_stages=has_stages)
        if session.is_part and not channels:
            judgement = unknown("stragglers: not known: no collectives in this part of the trace")
        elif lost and not groups:
            judgement = unknown(f"stragglers: not known: none of {_count(channels)} communication kernels is matched")
        if judgement.usual is not None and pieces:
            judgement = _explained(session, judgement, judgement.usual, pieces)
        return cls(groups, pairs, lost, clocks, pieces, judgement)


def _explained(session: Federation, judgement: Judgement, usual: int, pieces: Periods) -> Judgement:
    """Return the verdict with the cause, as far as two files show it."""
    finding, *others = judgement.findings
    cause = cause_of(session.reader(judgement.culprits[0]), session.reader(usual), pieces, load(None))
    if not cause.text:
        return judgement
    text = f"{finding.text}; {cause.text}"
    explained = replace(finding, text=text, evidence={**finding.evidence, **cause.evidence})
    return replace(judgement, findings=(explained, *others))


def _count(channels: Iterable[Channel]) -> int:
    return sum(len(channel.numbers) for channel in channels)


def communication(reading: Reading, by: By, ranks: Mapping[int, RankCommunication]) -> CommunicationTables:
    """Return the tables of communication and the verdict; what can't be told is noted."""
    session = reading.session
    if session.runs > 1:
        return CommunicationTables(Judgement(()), (), ())
    channels = [channel for rank in ranks.values() for channel in rank.channels]
    matched = MatchedCommunication.of(session, ranks)
    _note_groups(reading, matched.groups)
    if not channels:
        session.note("no communication kernels found")
    elif matched.lost and len(session.ranks) > 1:
        of = f"{matched.lost.total()} of {_count(channels)} communication kernels"
        why = "; ".join(f"{count}: {reason}" for reason, count in matched.lost.most_common())
        session.note(f"collectives: {of} could not be matched with those of others ({why})")
    waiting = Waiting(by, {rank.number: rank for rank in session.ranks}, matched.clocks)
    startup = _Startup()
    for group in matched.groups:
        is_whole = session.window is None  # the first step in a window is not the first of the job
        waiting.add(group, startup.add(group, matched.pieces, matched.clocks) if is_whole else 0)
    findings = (*matched.judgement.findings, *startup.findings())
    if channels and not waiting.rows:
        session.note("no collective that two ranks took part in")
    tables = tuple(_tables(by, channels, waiting, matched, findings))
    return CommunicationTables(matched.judgement, findings, tables)


def _tables(
    by: By, channels: Sequence[Channel], waiting: Waiting, matched: MatchedCommunication, findings: Sequence[Finding]
) -> Iterator[Summary]:
    if waiting.rows:
        fields = who(TABLES["collectives"], by)
        yield Summary(TABLES["collectives"], fields, waiting.collective_rows(), findings=findings)
        fields = (*DIVISIONS[by], *TABLES["stragglers"].fields)
        rows = _straggler_rows(by, waiting, matched.judgement)
        late = Summary(TABLES["stragglers"], fields, rows, findings=findings)
        late.pictured_by = Summary(TABLES["waits"], who(TABLES["waits"], by), waiting.pair_rows(), findings=findings)
        yield late
        yield late.pictured_by
    transfers = [_transfers(partners, matched.clocks) for partners in matched.pairs]
    if channels:
        rows = _class_rows(channels, waiting, transfers)
        yield Summary(TABLES["communication"], TABLES["communication"].fields, rows, findings=findings)
    if transfers:
        ordered = sorted(_by_pair(transfers), key=lambda row: (-row[-2] - row[-1], row[1], row[2]))
        yield Summary(TABLES["transfers"], TABLES["transfers"].fields, ordered)


def who(table: TableDefinition, by: By) -> tuple[Field, ...]:
    """Return the fields of a table with those that name a rank turned into those that name what is compared."""
    fields: list[Field] = []
    for field in table.fields:
        prefix, _, rest = field.name.partition("_")
        names = [field.name]
        if field.name in ("straggler", "waiter", "late"):
            names += [f"{field.name}_{division.name}" for division in DIVISIONS[by][1:]]
        elif rest == "rank" and field.name not in _ALWAYS_RANKS:
            names = [f"{prefix}_{division.name}" for division in DIVISIONS[by]]
        fields += [replace(field, name=name) for name in names]
    return tuple(fields)


def _straggler_rows(by: By, waiting: Waiting, judgement: Judgement) -> list[tuple[object, ...]]:
    """Return the rows of the table; those that hold others up come first."""
    rows = waiting.straggler_rows()
    if by is not By.RANK:
        return [(*row, None, None) for row in rows]
    worst = {rank: number for number, rank in enumerate(judgement.culprits)}
    ordered = sorted(rows, key=lambda row: worst.get(row[0], len(worst)))
    return [(*row, judgement.last.get(row[0]), judgement.compute.get(row[0])) for row in ordered]


class _Transfers(NamedTuple):
    """The transfers of two ranks: their row, kernels that count, and the time of these [ns]."""

    row: tuple[Any, ...]
    kernels: int
    time: int


def _transfers(partners: Partners, clocks: Clocks) -> _Transfers:
    sender, receiver, is_directed = partners
    numbers = np.union1d(sender.numbers, receiver.numbers)
    when = arrivals((sender, receiver), clocks, numbers)
    mean = float(when.times.min(0).mean()) if len(numbers) else None
    waits = when.waits.sum(1).tolist()
    time = sum(int((channel.end - channel.start)[channel.numbers].sum()) for channel in (sender, receiver))
    row = (sender.shown, sender.rank, receiver.rank, int(is_directed), len(numbers), mean, *waits)
    return _Transfers(row, _count((sender, receiver)), time)


def _by_pair(transfers: Sequence[_Transfers]) -> Iterator[Row]:
    """Yield a row for each pair and name: several channels may do the transfers of one."""
    rows: dict[Row, list[Row]] = {}
    for each in transfers:
        rows.setdefault(each.row[:4], []).append(each.row[4:])
    for pair, some in rows.items():
        counts, means, *waits = zip(*some, strict=True)
        times = sum(count * mean for count, mean in zip(counts, means, strict=True) if count)
        yield (*pair, sum(counts), times / sum(counts) if sum(counts) else None, *map(sum, waits))


def _class_rows(channels: Sequence[Channel], waiting: Waiting, transfers: Sequence[_Transfers]) -> list[Row]:
    """Return what the time of communication went into; the last row is what belongs to nothing."""
    every = sum(int((channel.end - channel.start)[channel.numbers].sum()) for channel in channels)
    sums: list[tuple[Any, ...]] = [
        (name, *(waiting.classes[name].tolist() if name in waiting.classes else (0, 0, 0, 0))) for name in CLASSES
    ]
    waits = sum(wait for each in transfers for wait in each.row[-2:])
    kernels, time = (
        (sum(column) for column in zip(*(each[1:] for each in transfers), strict=True)) if transfers else (0, 0)
    )
    sums.append(("point-to-point", sum(each.row[4] for each in transfers), kernels, time, waits))
    rest = _count(channels) - sum(row[2] for row in sums), every - sum(row[3] for row in sums)
    sums.append(("unmatched", None, *rest, None))
    return [(*row[:4], row[3] * 100 / every if every else None, row[4]) for row in sums]


def _note_groups(reading: Reading, groups: Sequence[Group]) -> None:
    """Report which ranks were taken for a group without being named as one; two ranks can't be two groups."""
    inferred = [group for group in groups if len(group) > 2 and group[0].communicator is None and not group[0].size]
    words = sorted({listed(sorted({member.rank for member in group})) for group in inferred})
    if words:
        more = f" and {len(words) - _FEW} more" if len(words) > _FEW else ""
        which = f"{'; '.join(words[:_FEW])}{more}"
        reading.session.note(f"collectives: communicators unknown; groups run equally often at the same time: {which}")


class _Startup:
    """Collectives that wait for ranks to start, not for a straggler."""

    def __init__(self) -> None:
        self._count = 0
        self._caused: dict[int, int] = {}

    def add(self, group: Group, pieces: Periods | None, clocks: Clocks) -> int:
        """Add those of a group; return how many they are."""
        first = first_judged(group, pieces)
        if first:
            when = arrivals(group, clocks, np.arange(first))
            caused = (when.shares * when.waits.sum(0)).sum(1)
            self._count += first
            for member, wait in zip(group, caused.tolist(), strict=True):
                self._caused[member.rank] = self._caused.get(member.rank, 0) + round(wait)
        return first

    def findings(self) -> tuple[Finding, ...]:
        """Return what is to be said of them; nothing where there are none."""
        if not self._count:
            return ()
        wait, worst = sum(self._caused.values()), max(self._caused, key=lambda rank: self._caused[rank])
        collectives = "1 collective" if self._count == 1 else f"{self._count} collectives"
        all_of_it, most = readable(wait, "ns"), readable(self._caused[worst], "ns")
        text = f"start-up is not judged: {collectives}, {all_of_it} of waiting"
        text += f", {most} of it for rank {worst}" if wait else ""
        evidence = {"collectives": self._count, "wait_ns": wait}
        return (Finding(text, "comm.startup", Verdict.NONE, Confidence.CERTAIN, worst, evidence=evidence),)


def first_judged(group: Group, pieces: Periods | None) -> int:
    """Return how many collectives of a group belong to start-up: before the first step, or the first and far longer."""
    if pieces and pieces.unit == "steps":
        ranks = [member for member in group if member.rank in pieces.ranks]
        if ranks:
            start = pieces.start[0, pieces.ranks.index(ranks[0].rank)]
            return int(np.searchsorted(ranks[0].start, start))
    longest = np.max([member.end - member.start for member in group], axis=0)
    return int(len(longest) >= _LEAST and longest[0] > _OUTLIER * np.median(longest))
