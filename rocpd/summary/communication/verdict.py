"""The verdict on the ranks of a job: who holds the others up and what it costs, in words; or that nobody does.

Puts the results of `rocpd.replay.blame` into words, and cuts a job into steps, or pieces like them, in which ranks are
compared. The cost in this recording is one sentence, whether the cause lasts is another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise, takewhile
from typing import TypeAlias

import numpy as np

from rocpd.base import Ints, Row, by_key, frozen, percent_text
from rocpd.facts.communication.collectives import Group, listed
from rocpd.facts.communication.matching import Clocks
from rocpd.facts.communication.members import arrivals
from rocpd.facts.regions import RankSteps
from rocpd.facts.short_names import kernel_name
from rocpd.replay.causes import (
    OF_COMPUTE,
    OF_COPIES,
    OF_HOST,
    OF_LINKS,
    PARTS,
    STALLS,
    Blame,
    Cause,
    CauseKind,
    are_ranks,
)
from rocpd.replay.chance import CERTAIN, LIKELY
from rocpd.replay.changes import of_cause
from rocpd.replay.denied import HIDDEN_HOST
from rocpd.replay.job import WELL_MATCHED, JobGraph
from rocpd.replay.whatif import Replays
from rocpd.schema.rules.steps import folded
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.table.human import readable

RULE = "comm.straggler"
_FEWEST = 4  # collectives that it takes to cut a job by them
_COMPARED = 0.5  # share of a rank's computing that must compare with that of others
_BLOCK = 1 << 21  # collectives times members in memory at once
_FEW_STEPS = 4
_REGULAR = 4  # equally spaced stalls: with so many, they come again
_SPACED = 3  # equally spaced steps: with so many, their distance is said
_LISTED = 8  # steps
_MUCH = 0.03  # share of a step, of the cost of all that differs
_LONG = 0.01  # share of all steps, of the time by which a rank makes some of them longer
_ALSO = 0.25  # times the main part of a cause, of another part that is named
_FAR, _MORE = 1.25, 0.01  # times its cost, and share of a step beside it, from which on the most it may cost is named
_LINKED = 0.1  # share of what a rank takes longer: if it may cost no more, records hardly link it to any wait
_SEVERAL = 3  # stalling ranks from which on their common cost is given
_Hosts: TypeAlias = Mapping[int, str | None]


@frozen
class Periods:
    """Steps, or pieces like them, that all ranks went through; rows are periods, columns ranks.

    Args:
        ranks: their numbers.
        start, end: bounds of each [ns of the clock of the rank]; periods do not overlap.
        unit: noun for periods.
        markers: text and number of the marker of each, if there are markers.
        numbers: number of each among the steps of the job; pieces are numbered from 0.
    """

    ranks: tuple[int, ...]
    start: Ints
    end: Ints
    unit: str = "steps"
    markers: tuple[tuple[str, int], ...] = ()
    numbers: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.start)

    def find(self, rank: int, times: Ints) -> Ints:
        """Return the period of a rank that holds each time of its clock; -1 for none."""
        column = self.ranks.index(rank)
        at = np.searchsorted(self.start[:, column], times, side="right") - 1
        return np.where(times < self.end[:, column][np.maximum(at, 0)], at, -1)


def periods(steps: Mapping[int, RankSteps], warm: Iterable[int], groups: Sequence[Group]) -> Periods | None:
    """Return the periods of ranks: steps by their markers, else pieces between collectives.

    Args:
        steps: rank that computes -> its markers.
        warm: numbers of the steps that are warm-up.
        groups: channels of one communicator each.
    """
    ranks = sorted(steps)
    return (_by_markers(ranks, steps, frozenset(warm)) or _by_collectives(ranks, groups)) if ranks else None


def _by_markers(ranks: Sequence[int], steps: Mapping[int, RankSteps], warm: frozenset[int]) -> Periods | None:
    """Return the steps that all ranks have: of the kinds of markers that cover much time, the most numerous."""
    first = steps[ranks[0]]
    common = set(first.whole).intersection(*(steps[rank].whole for rank in ranks)) - first.of(warm)
    kinds = by_key((folded(key[0]), key) for key in sorted(common, key=lambda key: first.steps[key]))
    if not kinds:
        return None
    takes = {kind: sum(first.steps[key][1] for key in keys) for kind, keys in kinds.items()}
    most = max(takes.values())
    keys = max((keys for kind, keys in kinds.items() if takes[kind] * 2 >= most), key=len)
    spans = np.array([[steps[rank].steps[key] for rank in ranks] for key in keys])
    start, end = spans[..., 0], spans.sum(-1)
    known = [number for number in [first.numbers[key] for key in keys] if number is not None]
    if len(known) == len(keys) > len(set(known)):  # several threads mark each step: it lasts until all are in the next
        rows = by_key(zip(known, range(len(keys)), strict=True))
        start = np.array([start[some].min(0) for some in rows.values()])
        end = np.array([end[some].max(0) for some in rows.values()])
        end[:-1] = np.minimum(end[:-1], start[1:])
        known, keys = [*rows], [keys[some[0]] for some in rows.values()]
    if (start[1:] < end[:-1]).any():
        return None
    is_in_order = len(known) == len(keys) and known == sorted(set(known))
    return Periods(tuple(ranks), start, end, "steps", tuple(keys), tuple(known) if is_in_order else ())


def _by_collectives(ranks: Sequence[int], groups: Sequence[Group]) -> Periods | None:
    """Return pieces between the rarest collectives of all ranks; about as many pieces as collectives in each."""
    whole = [group for group in groups if {member.rank for member in group}.issuperset(ranks)]
    enough = [group for group in whole if len(group[0]) >= _FEWEST]
    if not enough:
        return None
    group = min(enough, key=lambda group: len(group[0]))
    count = len(group[0])
    edges = np.append(np.arange(0, count - 1, math.ceil(math.sqrt(count))), count - 1)
    member = {member.rank: member for member in reversed(group)}
    times = np.array([member[rank].end[edges] for rank in ranks]).T
    return Periods(tuple(ranks), times[:-1], times[1:], "pieces of the trace")


@frozen
class Judgement:
    """The conclusions on the ranks of a job.

    Args:
        findings: the verdict; the first is the most important.
        culprits: ranks that hold others up, the worst first.
        late: ranks that hold others up for one reason each; of a host, only its first rank.
        last: rank -> number of steps in which it came last.
        compute: rank -> its time of computing divided by that of others for the same work.
        slow: text and number of the marker of a slow step -> its cause.
        longest: text and number of any step's marker -> the ranks whose own work takes clearly longest, if there are
            any; None: not known.
        usual: a rank that computes as long as most, to compare with the worst one; None without culprits.
        replays: returns the job, to be replayed with changes; None where nothing shows its steps.
        causes: rows of the table `causes`: the numbers behind the verdict.
        costs: rank -> time that a step would save without it [ns], for ranks in `causes`; of several alike, only the
            first has a cost, that of all of them.
    """

    findings: tuple[Finding, ...]
    culprits: tuple[int, ...] = ()
    late: tuple[tuple[int, ...], ...] = ()
    last: Mapping[int, float] = field(default_factory=dict)
    compute: Mapping[int, float] = field(default_factory=dict)
    slow: Mapping[tuple[str, int], Cause] = field(default_factory=dict)
    longest: Mapping[tuple[str, int], tuple[int, ...]] | None = None
    usual: int | None = None
    replays: Callable[[], Replays] | None = None
    causes: tuple[Row, ...] = ()
    costs: Mapping[int, float] = field(default_factory=dict)

    @property
    def accused(self) -> tuple[int, ...]:
        """The places of the findings on `late`; findings on links, which are not ranks, may come between them."""
        accused = (finding.rule == RULE and "link" not in finding.evidence for finding in self.findings)
        return tuple(number for number, is_it in enumerate(accused) if is_it)


def unknown(text: str) -> Judgement:
    """Return the verdict that stragglers are not known, with the reason."""
    return Judgement((Finding(f"stragglers: {text}", RULE, Verdict.UNKNOWN, Confidence.CERTAIN),))


def replays_of(job: JobGraph, pieces: Periods, clocks: Clocks) -> Replays:
    """Return a job to be replayed.

    Args:
        job: its graph.
        pieces: its steps, at least one.
        clocks: says which times of the ranks compare.
    """
    if not pieces.numbers:
        ranks = pieces.ranks
        on_line = (
            np.stack([clocks.on_line(rank, side[:, at]) + job.moved[rank] for at, rank in enumerate(ranks)], 1)
            for side in (pieces.start, pieces.end)
        )
        job = job.in_pieces(ranks, *on_line)
    return Replays(job, pieces.numbers or range(len(pieces)), has_steps=bool(pieces.numbers))


def judge(
    blame: Blame | None,
    pieces: Periods | None,
    hosts: _Hosts,
    groups: Sequence[Group],
    clocks: Clocks,
    lacking: str = "",
) -> Judgement:
    """Return the verdict on the ranks of a job.

    Args:
        blame: the results of replays; None where there are no steps.
        pieces: the steps; None where nothing shows them.
        hosts: rank -> its host.
        groups: the groups of collectives: channels of one communicator each.
        clocks: says which times of the ranks compare.
        lacking: the reason why stragglers can't be judged, only steps; empty if they can.
    """
    if pieces is None or blame is None:
        return unknown(lacking or "not known: neither step markers nor enough collectives of all ranks")
    places = dict(zip(blame.steps, pieces.markers, strict=False))
    slow = {
        places[number]: cause for number, cause in blame.slow.items() if number in places and _is_seen(cause, blame)
    }
    longest = {places[number]: ranks for number, ranks in blame.longest.items() if number in places}
    judgement = Judgement((), compute=blame.computes, slow=slow, longest=longest)
    if lacking:
        return replace(judgement, findings=unknown(lacking).findings)
    lacking_ranks = max(((group[0].size or 0) - len(group) for group in groups), default=0) - len(blame.unmet)
    findings = tuple(_findings(blame, pieces, hosts, lacks_ranks=lacking_ranks > 0))
    is_problem = findings[0].verdict is Verdict.PROBLEM
    guilty = [cause for cause in blame.causes if cause.kind is not CauseKind.LINK] if is_problem else []
    culprits = tuple(dict.fromkeys(rank for cause in guilty for rank in cause.ranks))
    late = tuple(cause.ranks if cause.kind is CauseKind.RANK else cause.ranks[:1] for cause in guilty)
    usual = _usual(blame, culprits) if culprits else None
    last = came_last(groups, pieces, clocks)
    said = replace(judgement, findings=findings, culprits=culprits, late=late, last=last, usual=usual)
    if findings[0].verdict is Verdict.UNKNOWN:
        return said
    costs = {cause.ranks[0]: cause.costs for cause in blame.causes if cause.kind is CauseKind.RANK}
    return replace(said, causes=tuple(_rows(blame, hosts)), costs=costs)


def _is_seen(cause: Cause, blame: Blame) -> bool:
    """Whether a slow step's cause is known: host work of several ranks may be their wait for one that is not seen."""
    return len(cause.ranks) == 1 or cause.mainly != OF_HOST or not blame.hides_hosts


def _rows(blame: Blame, hosts: _Hosts) -> Iterator[Row]:
    """Yield the numbers of all that differs, then those of each cause."""
    lost = blame.lost_ns * 100 / blame.step_ns if blame.step_ns else None
    yield ("all that differs", blame.lost_ns, lost, *[None] * 4, len(blame.steps), *[None] * 3, blame.step_ns)
    for cause in blame.causes:
        is_stall = cause.stalled > STALLS
        steps = len(cause.stalls) if is_stall else cause.longest
        longer = (cause.in_stalls, None) if is_stall else (cause.takes[cause.mainly], cause.longer * 100)
        costs = cause.costs, cause.costs * 100 / blame.step_ns
        which = " ".join(map(str, cause.ranks))
        rest = len(blame.steps), cause.waiting * 100, None if is_stall else cause.chance, which
        yield (_who(cause, hosts), *costs, cause.mainly, *longer, steps, *rest, blame.step_ns)


def _usual(blame: Blame, culprits: Sequence[int]) -> int | None:
    """Return a rank that is not to blame and computes as long as most."""
    innocent = sorted((rank for rank in blame.computes if rank not in culprits), key=blame.computes.__getitem__)
    return innocent[len(innocent) // 2] if innocent else None


def _findings(blame: Blame, pieces: Periods, hosts: _Hosts, *, lacks_ranks: bool) -> Iterator[Finding]:
    """Yield the findings, the verdict first; `lacks_ranks`: whether ranks not read took part in collectives."""
    count, unit = len(pieces), pieces.unit
    if not blame.is_matched:
        text = f"stragglers: not known: only {blame.matched * 100:.0f} % of the time of communication is matched"
        text = "; ".join(filter(None, (text, _suspected(blame, pieces, hosts))))
        yield Finding(text, RULE, Verdict.UNKNOWN, Confidence.CERTAIN)
        return
    if count < _FEW_STEPS:
        text = f"stragglers: not known: {count} of the {_FEW_STEPS} {unit} that it takes to tell one from chance"
        yield Finding(text, RULE, Verdict.UNKNOWN, Confidence.CERTAIN)
        return
    for cause in blame.causes:
        hiding = [blame.causes[number] for number in cause.behind if cause.is_hidden]
        yield from _accused(cause, hiding, blame, unit, hosts)
    yield from _in_turn(blame.causes, blame, unit)
    if blame.causes:
        yield from _unnamed(blame, pieces, hosts)
        return
    limits = [*_not_compared(blame), *_coverage(blame)]
    limits += [str(blame.denied)] if blame.denied else _together(blame)
    limits += ["ranks that are not among the files may be waited for"] if lacks_ranks else []
    limits += [blame.unseen] if blame.unseen else []
    limits += _stalling(blame, "step" if unit == "steps" else "piece")
    if unmet := sorted(set(blame.unmet) & set(blame.together)):
        limits.append(f"whom {_named(unmet)} communicates with is not known")
    suspected = "" if blame.denied else _suspected(blame, pieces, hosts)
    if limits:
        rest = suspected or f"else none costs 1 % of a step, in {count} {unit}"
        text = f"stragglers: not known: {'; '.join([*limits, rest])}"
        yield Finding(text, RULE, Verdict.UNKNOWN, Confidence.CERTAIN, evidence={"steps": count})
    else:
        percent = blame.lost_ns * 100 / blame.step_ns if blame.step_ns else 0.0
        rest = f"; {percent_text(percent)} of the time goes with how much steps differ" if percent >= 1 else ""
        *kinds, last = blame.judged
        rest += blame.not_judged
        text = f"no straggler: no {', '.join(kinds)} or {last} costs the others 1 % of a step, in {count} {unit}{rest}"
        yield Finding(text, RULE, Verdict.NONE, Confidence.LIKELY, evidence={"steps": count})


def _once(hiding: Sequence[Cause], hosts: _Hosts) -> str:
    """Return the condition under which a cause has its cost, if others hide most of that."""
    if len(hiding) > 1 and any(cause.kind is not CauseKind.RANK for cause in hiding):
        return " once the other causes are gone"
    ranks = [rank for cause in hiding for rank in cause.ranks]
    who = _named(ranks) if len(hiding) > 1 else "".join(_who(cause, hosts) for cause in hiding)
    are_several = len(hiding) > 1 or any(map(are_ranks, hiding))
    return f" once {who} {'are' if are_several else 'is'} as the others" if hiding else ""


def _accused(cause: Cause, hiding: Sequence[Cause], blame: Blame, unit: str, hosts: _Hosts) -> Iterator[Finding]:
    """Yield the cost of a cause, once others that hide it are gone, and whether it lasts."""
    count = len(blame.steps)
    is_stall, since = cause.stalled > STALLS, cause.since if unit == "steps" else None
    is_at_times = is_stall and since is None
    chance = 1.0 if cause.chance is None else cause.chance
    confidence = Confidence.HINT if unit != "steps" else _confidence(chance, is_stall)
    if since is not None and confidence is Confidence.HINT:
        confidence = Confidence.LIKELY  # a cause that began during the job is compared with the steps before it
    perhaps = "perhaps " if confidence is Confidence.HINT else ""
    whom, are_several = _whom(cause), are_ranks(cause)
    names = {CauseKind.HOST: "slower than all others" if are_several else "a slow host", CauseKind.LINK: "a slow link"}
    what = "slow at times" if is_at_times else names.get(cause.kind, "stragglers" if are_several else "a straggler")
    percent = cause.costs * 100 / blame.step_ns
    step = "a mean step" if unit == "steps" else "a mean piece"
    may_cost = _may_cost(cause, blame)
    least = "at least " if "up to" in may_cost else ""
    costs = f"{least}{readable(cause.costs, 'ns')} of {step} ({percent_text(percent)}){_once(hiding, hosts)}"
    also = _also(cause, blame)
    why = ", and ".join([_why(cause, is_stall, blame.steps, unit), *(_takes(cause, what) for what in also)])
    text = f"{_who(cause, hosts)} cost{'' if are_several else 's'} {costs}: {why}"
    if cause.waiting >= 0.01:
        text += f"; {cause.waiting * 100:.0f} % of the waiting"
    text += f"{may_cost}: {perhaps}{what}"
    evidence: dict[str, object] = {
        "steps": count,
        "cost_ns": cause.costs,
        "cost_percent": percent,
        **({"cost_at_most_percent": cause.most * 100 / blame.step_ns} if cause.most > cause.costs else {}),
        "mainly": cause.mainly,
        "times_longest": cause.longest,
        **({"grows_percent": [share * 100 for share in cause.grows]} if cause.grows else {}),
        **({"since_step": since} if since is not None else {}),
        "chance": chance,
        **({} if is_stall else {"compute_longer_percent": cause.longer * 100}),
        "wait_percent": cause.waiting * 100,
        **({"stalls": list(cause.stalls)} if is_at_times else {}),
        **({"also": also} if also else {}),
        **({"later_ns": cause.takes[OF_HOST]} if cause.mainly == OF_HOST else {}),
        **({"hidden_by": [of_cause(each).what for each in hiding]} if hiding else {}),
        **whom,
    }
    rank = cause.ranks[0] if cause.kind is CauseKind.RANK and not are_several else None
    yield Finding(text, RULE, Verdict.PROBLEM, confidence, rank, evidence=evidence)
    noun = "step" if unit == "steps" else "piece"
    lasts = comes_again(cause.stalls, blame.steps[-1], noun) if is_at_times else _lasting(cause, count, unit)
    yield Finding(lasts, "comm.lasting", Verdict.NOTE, confidence, rank, evidence=whom)


def _also(cause: Cause, blame: Blame) -> list[str]:
    """Return the parts besides the main one that take long enough to be named."""
    least = _ALSO * cause.takes[cause.mainly]
    parts = [part for part in PARTS if part != cause.mainly and cause.takes[part] >= least]
    return [part for part in parts if part != OF_HOST or not blame.hides_hosts]


def _unnamed(blame: Blame, pieces: Periods, hosts: _Hosts) -> Iterator[Finding]:
    """Yield what may cost time beside the causes: the suspect, if it may cost more than any of them, and late hosts."""
    named = {(cause.kind, rank) for cause in blame.causes for rank in cause.ranks}
    most = max(max(cause.most, cause.costs) for cause in blame.causes)
    if (suspect := blame.suspect) and (suspect.kind, suspect.ranks[0]) not in named and suspect.most > most:
        text = f"{_suspected(blame, pieces, hosts)}: {_why_not_known(blame)}"
        rank = suspect.ranks[0] if suspect.kind is CauseKind.RANK else None
        yield Finding(text, "comm.suspect", Verdict.NOTE, Confidence.CERTAIN, rank)
    if blame.hides_hosts:
        yield Finding(HIDDEN_HOST, "comm.suspect", Verdict.NOTE, Confidence.CERTAIN)


def _why_not_known(blame: Blame) -> str:
    """Return why some waits are not known, in words."""
    return _matched(blame) if blame.matched < WELL_MATCHED else "no calls that wait for GPUs are known"


def _may_cost(cause: Cause, blame: Blame) -> str:
    """Return what a cause may cost by waits that are not known, in words; empty: no more."""
    why = _why_not_known(blame)
    if cause.most > _FAR * cause.costs and cause.most - cause.costs >= _MORE * blame.step_ns:
        return f"; it may cost up to {percent_text(cause.most * 100 / blame.step_ns)}: {why}"
    return f"; it may cost more: {why}" if blame.matched < WELL_MATCHED else ""


def _whom(cause: Cause) -> dict[str, object]:
    """Return the cause, and its host, link or ranks; for one rank only the cause."""
    which: dict[str, object] = {"cause": of_cause(cause).what}
    if cause.kind is CauseKind.LINK:
        return which | {"link": list(cause.ranks)}
    if are_ranks(cause):
        return which | {"together": list(cause.ranks)}
    return which | ({"hostname": cause.name} if cause.kind is CauseKind.HOST else {})


def _in_turn(causes: Sequence[Cause], blame: Blame, unit: str) -> Iterator[Finding]:
    """Yield the common cost of stalls that come to one rank after another, such as garbage collection."""
    stalls = [cause for cause in causes if cause.kind is CauseKind.RANK and cause.stalled > STALLS]
    if len(stalls) < _SEVERAL:
        return
    ranks = sorted(rank for cause in stalls for rank in cause.ranks)
    steps = sorted({step for cause in stalls for step in cause.stalls})
    cost = sum(cause.cost for cause in stalls)  # each after the earlier ones are removed
    percent = cost * 100 / blame.step_ns
    text = (
        f"stalls of ranks {listed(ranks)} cost {readable(cost, 'ns')} of a mean step together "
        f"({percent_text(percent)}), in {len(steps)} of {len(blame.steps)} {unit}: they come to one rank after another"
    )
    evidence = {"ranks": ranks, "cost_ns": cost, "cost_percent": percent, "steps": steps}
    yield Finding(text, "comm.stalls", Verdict.NOTE, Confidence.CERTAIN, evidence=evidence)


def _confidence(chance: float, is_stall: bool) -> Confidence:
    if is_stall or chance <= CERTAIN:
        return Confidence.CERTAIN
    return Confidence.LIKELY if chance <= LIKELY else Confidence.HINT


def _who(cause: Cause, hosts: _Hosts) -> str:
    if cause.kind is CauseKind.HOST and not are_ranks(cause):
        return f"{cause.name} ({_named(cause.ranks)})"
    if cause.kind is CauseKind.LINK:
        names = sorted({hosts.get(rank) or "?" for rank in cause.ranks})
        where = names[0] if len(names) == 1 else f"{len(names)} hosts"
        return f"the link between {_named(cause.ranks)} ({where})"
    return _named(cause.ranks)


def _why(cause: Cause, is_stall: bool, steps: Sequence[int], unit: str) -> str:
    """Return which part takes longer, and the number of steps in which it was longest, in words."""
    takes = _takes(cause, cause.mainly, is_stall=is_stall, name=cause.largest[0])
    since = cause.since if unit == "steps" else None
    begin = "" if since is None else f" from step {since} on"
    if is_stall:
        return takes + (f",{begin}" if begin else f" in {len(cause.stalls)} of {len(steps)} {unit}")
    grows = ""
    if cause.grows and unit == "steps":
        first, last = (percent_text(share * 100) for share in cause.grows)
        grows = f", more and more: {first} in the first quarter of steps, {last} in the last"
    often, of = "", sum(since is None or step >= since for step in steps)
    if cause.longest and cause.kind is not CauseKind.LINK:
        often = f" in all {of} {unit}" if cause.longest == of else f" most in {cause.longest} of {of} {unit}"
    return f"{takes}{grows}" + (f",{often}{begin}" if often or begin else "")


def _takes(cause: Cause, what: str, *, is_stall: bool = False, name: str = "") -> str:
    """Return how much longer a part of the work takes, in words; `name`: what in it takes most of that, if known."""
    long = readable(cause.in_stalls if is_stall else cause.takes[what], "ns")
    computes, its_host, its = (
        ("compute", "their hosts take", "their") if are_ranks(cause) else ("computes", "its host takes", "its")
    )
    texts = {
        OF_COMPUTE: f"{computes} {long if is_stall else percent_text(cause.longer * 100)} longer{_mostly(name)}",
        OF_HOST: f"{its_host} {long} longer" + (f" ({name})" if name else ""),
        OF_COPIES: f"{its} copies take {long} longer",
        OF_LINKS: f"transfers take {long} longer than between other ranks",
    }
    return texts[what]


def _mostly(kernel: str) -> str:
    """Return the kernel that takes longer, in words, unless all do alike."""
    return f" (mostly {kernel_name(kernel).short})" if kernel else ""


def comes_again(stalls: Sequence[int], last: int, noun: str = "step") -> str:
    """Return whether a rank stalls again, in words: it does if many stalls are equally spaced, up to the last step."""
    if not (again := _regular(stalls, last)):
        return f"whether it comes again is not known: seen in {_in_steps(stalls, noun)}"
    others = [step for step in stalls if step not in again]
    besides = f"; besides in {_in_steps(others, noun)}" if others else ""
    return f"it comes every {ordinal(again[1] - again[0])} {noun}: {few_steps(again)}{besides}"


def _regular(stalls: Sequence[int], last: int) -> Sequence[int]:
    """Return the most stalls that are equally spaced up to the last step; each other stall takes one more of them."""
    most: Sequence[int] = ()
    for every in {after - before for before, after in pairwise(stalls)} - {1}:  # of many stalls, two are neighbours
        for end in (step for step in stalls if last - step < every):
            back = takewhile(set(stalls).__contains__, range(end, stalls[0] - 1, -every))
            most = max(most, list(back)[::-1], key=len)
    return most if len(most) * 2 - len(stalls) >= _REGULAR else ()


def _in_steps(steps: Sequence[int], noun: str) -> str:
    return f"{noun}{'s'[: len(steps) > 1]} {few_steps(steps)}"


def spacing(steps: Sequence[int]) -> int:
    """Return the distance of equally spaced steps; 0: unequal, fewer than three, or next to each other.

    >>> spacing([1, 5, 9]), spacing([1, 5]), spacing([5, 6, 7])
    (4, 0, 0)
    """
    apart = {after - before for before, after in pairwise(steps)}
    distance = apart.pop() if len(apart) == 1 and len(steps) >= _SPACED else 0
    return distance if distance > 1 else 0


def few_steps(steps: Sequence[int]) -> str:
    """Return the numbers of steps as a list in a sentence."""
    return ", ".join(map(str, steps[:_LISTED])) + (" …" if len(steps) > _LISTED else "")


def ordinal(number: int) -> str:
    """Return an ordinal number in words: `4th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _lasting(cause: Cause, count: int, unit: str) -> str:
    """Return whether a cause lasts, in words, whatever it cost."""
    if cause.since is not None and (cause.chance is None or cause.chance > LIKELY):
        return "it goes on to the last step; whether it lasts beyond that is not known"
    if cause.chance is None or cause.chance > LIKELY:
        return f"may be chance: {count} {unit} are too few, or too much alike, to tell"
    odds = f"1 in {round(1 / cause.chance):,}" if cause.chance > 1e-6 else "1 in a million"
    return f"it lasts: chance explains it in less than {odds} recordings"


def _suspected(blame: Blame, pieces: Periods, hosts: _Hosts) -> str:
    """Return the suspect, in words: who has most excess, where its cost is not known; empty: there is none.

    If hardly anything waits for it, even with all waits that may be, its own waits may not be recorded: no bound holds.
    """
    if not (suspect := blame.suspect):
        return ""
    why = _why(suspect, suspect.stalled > STALLS, blame.steps, pieces.unit)
    then = "" if suspect.mainly == OF_COMPUTE else ":"
    is_bounded = suspect.most > _LINKED * suspect.takes[suspect.mainly]
    most = f", up to {percent_text(suspect.most * 100 / blame.step_ns)} of a step" if is_bounded else ""
    return f"{_who(suspect, hosts)}{then} {why}, at what cost is not known{most}"


def _not_compared(blame: Blame) -> Iterator[str]:
    """Yield the ranks whose work no other rank does, in words."""
    if alone := sorted(rank for rank, share in blame.compared.items() if share < _COMPARED):
        yield f"{_named(alone)} {'does' if len(alone) == 1 else 'do'} work that no other rank does"


def _stalling(blame: Blame, noun: str) -> Iterator[str]:
    """Yield the ranks that make steps slow, in words: communication that is not matched may wait for them then."""
    seen = (cause for cause in blame.slow.values() if cause.ranks and _is_seen(cause, blame))
    for ranks, slow in by_key((cause.ranks, cause) for cause in seen).items():
        if sum(cause.takes[cause.mainly] for cause in slow) >= _LONG * blame.step_ns * len(blame.steps):
            which = _in_steps(sorted(cause.stalls[0] for cause in slow), noun)
            yield f"{_named(ranks)} {'makes' if len(ranks) == 1 else 'make'} {which} slow"


def _coverage(blame: Blame) -> Iterator[str]:
    """Yield how much of communication is matched, in words, if the rest may hide what the suspect costs."""
    may_hide = blame.suspect is not None and not blame.hides_hosts and blame.suspect.most >= _MORE * blame.step_ns
    if blame.matched < WELL_MATCHED or may_hide:
        yield _matched(blame)


def _matched(blame: Blame) -> str:
    return f"{blame.matched * 100:.0f} % of the time of communication is matched"


def _together(blame: Blame) -> Iterator[str]:
    """Yield the ranks that take longer together, in words, if all that differs costs much, but no rank alone."""
    is_much, lost = blame.lost_ns >= _MUCH * blame.step_ns, readable(blame.lost_ns, "ns")
    if blame.suspect and {*blame.together} > {*blame.suspect.ranks} and is_much:
        yield f"{_named(blame.together)} take longer, which together with all that differs costs {lost} of a step"


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(sorted(ranks))}"


def came_last(groups: Sequence[Group], pieces: Periods, clocks: Clocks) -> dict[int, float]:
    """Return rank -> number of periods in which it came latest to collectives, on average; equally late ranks share.

    Args:
        groups: channels of one communicator each.
        pieces: the steps.
        clocks: says which times of the ranks compare.
    """
    late = np.zeros((len(pieces), len(pieces.ranks)))
    column = {rank: number for number, rank in enumerate(pieces.ranks)}
    known = np.zeros(len(pieces.ranks), bool)
    for group in groups:
        if not all(member.rank in column for member in group):
            continue
        for numbers, at in _inside(group, pieces):
            came = arrivals(group, clocks, numbers).came
            later = came - came.mean(0)
            for row, member in enumerate(group):
                late[:, column[member.rank]] += np.bincount(at, later[row], len(pieces))
                known[column[member.rank]] = True
    if not known.any():
        return {}
    among = np.where(known, late, -np.inf)
    is_last = among == among.max(1, keepdims=True)
    last = (is_last / is_last.sum(1, keepdims=True)).sum(0)
    return {rank: float(last[number]) for rank, number in column.items() if known[number]}


def _inside(group: Group, pieces: Periods) -> Iterator[tuple[Ints, Ints]]:
    """Yield the numbers of the collectives of a group that are in a period, with the places of these periods."""
    step = max(1, _BLOCK // len(group))
    at = pieces.find(group[0].rank, group[0].start)
    numbers = (at >= 0).nonzero()[0]
    for low in range(0, len(numbers), step):
        yield numbers[low : low + step], at[numbers[low : low + step]]
