"""Changes that a job is replayed with: time taken away, times scaled, or waits dropped. Never replays.

- `without`: the excess of something over its usual time goes, as `rocpd.replay.blame` determines it; a step becomes
  like the step of median length; calls and gaps go as a whole.
- `scale`: times are multiplied; factors of several changes multiply.
- `overlap`: communication or copies no longer hold up what comes after them on their agent, nor the host. No record
  says who needs the data. These are waited for as before: sends, receives, all-to-alls, all-reduces of groups that
  have some at the begin of a step, collectives that are short beside the others of their rank, and the last long one of
  a stream in a step, as an optimiser waits for all gradients. Copies are done when the step ends.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from rocpd.base import Flags, Ints, RocpdError, UsageError, frozen
from rocpd.base.entries import near
from rocpd.base.option import regular_expression
from rocpd.facts.agent_time import PAUSE
from rocpd.facts.columns import nth_of, numbered, runs
from rocpd.facts.communication.collectives import listed
from rocpd.facts.regions import HostCall, host_call
from rocpd.facts.timeline import COMMUNICATION, COMPUTE, COPIES
from rocpd.federate.select.filters import number_ranges
from rocpd.replay.blame import Blaming
from rocpd.replay.causes import Candidate, Cause, CauseKind
from rocpd.replay.graph import BEFORE, INSIDE
from rocpd.replay.job import JobGraph
from rocpd.replay.points import Edge, Edges, OrderedEdges, Point, narrowed
from rocpd.replay.waits import freed, same_stream, synchronised, to_the_next, without_waits
from rocpd.table.human import readable


class Verb(enum.StrEnum):
    """The kinds of changes to something."""

    WITHOUT = "without"
    SCALE = "scale"
    OVERLAP = "overlap"


_NAMED = "NAME"
KINDS: Mapping[Verb, Mapping[str, str]] = {
    Verb.WITHOUT: {
        "straggler": "",
        "rank": "RANKS",
        "host": _NAMED,
        "link": "RANKS",
        "step": "N",
        "call": "REGEX",
        "gap": "N",
    },
    Verb.SCALE: {
        "kernel": "REGEX",
        "call": "REGEX",
        "collective": "[NAME]",
        "link": "RANKS",
        "rank": "RANKS",
        "launch": "",
        "compute": "",
        "copies": "[REGEX]",
        "host": "",
    },
    Verb.OVERLAP: {"comm": "[RANKS]", "copies": ""},
}
"""Verb -> kinds of changes -> the form of their names: no name where empty, an optional one in brackets."""

_HIP = "HIP_RUNTIME_API"  # its rules know the functions of HSA, too
_CALL = "call of 20 us or more"
_FIRST_LAYERS = 0.125  # of a step: all-reduces that come so early move no gradients
_SHORT = 4  # times shorter than the longest
_LONG = 60  # characters of a name in a hint
_RECORDED = "rocpd info JOB says what is recorded"
_MOST_GAPS = 3  # gaps that are tried
_LONGEST = 2.0**62  # of a time [ns]: 146 years


@frozen
class Change:
    """One change.

    Args:
        verb: the kind of action.
        kind: kind of its object, as in `KINDS`.
        name: name of its object; empty: all, or the only one.
        factor: the factor on times, for `scale`.
    """

    verb: Verb
    kind: str
    name: str = ""
    factor: float = 1.0

    @property
    def is_bound(self) -> bool:
        """Whether it only bounds the gain, as nobody can reduce a time to nothing."""
        return self.verb is Verb.SCALE and not self.factor

    @property
    def what(self) -> str:
        """Its object, as the command line writes it: `rank:6`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind

    def __str__(self) -> str:
        """Return it as the command line writes it."""
        factor = f"={self.factor:g}" if self.verb is Verb.SCALE else ""
        return f"--{self.verb} {self.what}{factor}"


def changes(without: Iterable[str], scale: Iterable[str], overlap: Iterable[str]) -> tuple[Change, ...]:
    """Return the changes that words of the command line ask for.

    Args:
        without: such as `rank:6`.
        scale: such as `launch=0.5`, `kernel:GEMM.*=0.7`.
        overlap: such as `comm`.

    >>> [str(change) for change in changes(["rank:6"], ["kernel:GEMM.*=0.7"], ["comm"])]
    ['--without rank:6', '--scale kernel:GEMM.*=0.7', '--overlap comm']

    Raises:
        UsageError: a word that is no change, or two that contradict each other.
    """
    asked = [_change(Verb.WITHOUT, word) for word in without]
    asked += [_scaling(word) for word in scale]
    asked += [_change(Verb.OVERLAP, word) for word in overlap]
    known: dict[tuple[str, str], Change] = {}
    for change in asked:
        other = known.setdefault((change.kind, change.name), change)
        if other is not change and Verb.OVERLAP not in (change.verb, other.verb):
            twice = "given twice" if other == change else "contradict each other"
            raise UsageError(f"{other} and {change}: {twice}", "give one of them")
    return tuple(asked)


def _scaling(word: str) -> Change:
    text, equals, number = word.rpartition("=")
    try:
        factor = float(number) if equals else -1.0
    except ValueError:
        factor = -1.0
    if not 0 <= factor < np.inf:
        raise UsageError(f"--scale {word}: no factor", "as launch=0.5: times are multiplied by a number from 0 on")
    return replace(_change(Verb.SCALE, text), factor=factor)


def _change(verb: Verb, word: str) -> Change:
    kind, _, name = word.partition(":")
    name = name.strip("'\"")
    known = KINDS[verb]
    if kind not in known:
        forms = ", ".join(f"{each}:{named}" if named and named[0] != "[" else each for each, named in known.items())
        raise UsageError(f"--{verb} {word}: {kind or 'it'} is not known", near(kind, known, f"one of {forms}"))
    named = known[kind]
    if name and not named:
        raise UsageError(f"--{verb} {word}: {kind} has no name", f"give {kind} alone")
    if not name and named and named[0] != "[":
        raise UsageError(f"--{verb} {word}: names none", f"as {kind}:{named}")
    if name and "REGEX" in named:
        regular_expression(name, f"--{verb} {kind}")
    if kind == "rank":
        number_ranges(name, f"--{verb} {kind}:")
    if named == "N" and not name.isdecimal():
        raise UsageError(f"--{verb} {word}: {name} is no number", f"as {kind}:1")
    return Change(verb, kind, name, 1.0)


def without(kind: str, name: object) -> Change:
    """Return the change that takes something away, such as `rank` 6."""
    return Change(Verb.WITHOUT, kind, str(name))


def without_calls(names: Iterable[str]) -> Change:
    """Return the change that takes away the calls of some names."""
    words = list(map(re.escape, sorted(names)))
    return without("call", f"^({'|'.join(words)})$" if len(words) > 1 else f"^{words[0]}$")


OVERLAPPED = {kind: Change(Verb.OVERLAP, kind) for kind in KINDS[Verb.OVERLAP]}
"""Kind -> the change by which it holds up nothing."""
FREE = {kind: Change(Verb.SCALE, kind, factor=0.0) for kind in ("launch", "host", "collective")}
"""Kind -> the change by which it takes no time."""


def of_cause(cause: Cause) -> Change:
    """Return the change that takes a cause away."""
    names = {
        CauseKind.RANK: listed(cause.ranks),
        CauseKind.HOST: cause.name,
        CauseKind.LINK: listed(cause.ranks),
        CauseKind.STEP: cause.name.removeprefix("step "),
    }
    return Change(Verb.WITHOUT, cause.kind.value, names[cause.kind])


class Changing:
    """Applies changes to the graph of a job, in steps that count."""

    def __init__(self, job: JobGraph, blaming: Blaming, causes: Sequence[Cause]) -> None:
        self.job, self.blaming, self.causes = job, blaming, causes
        self.counts = blaming.counts
        self.less: dict[tuple[Change, tuple[Change, ...]], Ints] = {}
        points = job.points
        self.is_host = np.isin(points.kind, (Point.HOST, Point.STEP))
        called = {number for number, name in enumerate(job.names) if not name.startswith((BEFORE, INSIDE))}
        self.calls = self.counts & (points.kind == Point.HOST) & np.isin(points.name, sorted(called))

    def on(self, job: JobGraph) -> Changing:
        """Return the same for a graph of the same points with other waits; excess times are shared."""
        other = copy(self)
        other.job = job
        return other

    def resolved(self, asked: Sequence[Change]) -> tuple[Change, ...]:
        """Return the changes, each once, with the straggler named: a rank if one is to blame, else a host or link.

        Raises:
            RocpdError: there is no straggler.
        """
        return tuple(dict.fromkeys(self._straggler(each) if each.kind == "straggler" else each for each in asked))

    def _straggler(self, change: Change) -> Change:
        cause = min(self.causes, key=lambda cause: cause.kind is not CauseKind.RANK, default=None)
        if cause is None:
            raise RocpdError(f"{change}: there is none", "rocpd whatif JOB says why")
        return of_cause(cause)

    def excess(self, change: Change, hosts: tuple[Change, ...] = ()) -> Ints:
        """Return the time that a change takes away from each point [ns].

        Args:
            change: the change, which takes something away.
            hosts: changes that take hosts away together with it. A rank then compares with others as they are without
                these hosts, and without late hosts beside it.

        Raises:
            RocpdError: nothing has its name.
        """
        hosts = tuple(dict.fromkeys((*self.beside(change), *hosts))) if change.kind == "rank" else ()
        known = change, hosts
        if known not in self.less:
            find: dict[str, Callable[[Change], Ints]] = {
                "rank": functools.partial(self._rank, hosts=hosts),
                "host": self._host,
                "link": self._link,
                "step": self._step,
                "call": self._call,
                "gap": self._gap,
            }
            self.less[known] = find[change.kind](change)
        return self.less[known]

    def beside(self, change: Change) -> tuple[Change, ...]:
        """Return the changes that take away the late hosts beside the ranks of a change; none for other changes."""
        if change.kind != "rank":
            return ()
        return tuple(without("host", host.name) for host in self.blaming.late_beside(self._ranks(change)))

    def applied(
        self,
        asked: Sequence[Change],
        share: Mapping[Change, float] = MappingProxyType({}),
        also: Ints | None = None,
        *,
        is_elastic: bool = False,
        is_waited: bool = False,
    ) -> JobGraph:
        """Return the graph of the changed job.

        Args:
            asked: the changes.
            share: change -> share of its excess that goes; 1 where it is not given.
            also: further time that points lose [ns]; None: nothing.
            is_elastic: whether unexplained pauses shrink with the work that they belong to, and copies from the device
                no longer wait for what calls that are gone waited for.
            is_waited: whether computing on other streams waits for copies that overlap, and for what calls that are
                gone waited for.

        Raises:
            RocpdError: a change names nothing in the job.
        """
        points, job = self.job.points, self.job
        work = self._scaled_by(asked, self._left(asked, share, also))
        lag = job.edges.lag
        for change in asked:
            if change.verb is Verb.SCALE and change.kind == "launch":
                launches = (job.edges.kind == Edge.LAUNCH).nonzero()[0]
                launches = launches[self.counts[job.edges.target(launches)]]
                lag = _replaced(lag, launches, in_ns(lag[launches] * change.factor))
        job = job if lag is job.edges.lag else replace(job, edges=replace(job.edges, lag=lag))
        for change in asked:
            if change.verb is Verb.OVERLAP:
                job = replace(job, edges=self._overlapped(job, change, is_waited))
            elif change.verb is Verb.WITHOUT and change.kind == "call":
                calls = self.excess(change) != 0
                edges = without_waits(job, calls, is_computing=is_waited, is_copying=not is_elastic)
                job = replace(job, edges=edges)
        job = replace(job, points=replace(points, work=work, lag=self._unexplained(job.edges)))
        return _elastic(job, points.work) if is_elastic else job

    def _scaled_by(self, asked: Sequence[Change], work: Ints) -> Ints:
        """Return the time of points, multiplied by the factors of changes [ns]."""
        scaling = [change for change in asked if change.verb is Verb.SCALE]
        factors = (np.where(self._scaled(change), change.factor, 1.0) for change in scaling)
        return in_ns(work * functools.reduce(np.multiply, factors)) if scaling else work

    def at_stake(self, asked: Sequence[Change]) -> Ints:
        """Return the time by which changes shorten, lengthen or hide the work of each point [ns]."""
        work = self.job.points.work
        stake = np.abs(np.subtract(work, self._scaled_by(asked, work), dtype=np.int64))
        for change in asked:
            if change.verb is Verb.OVERLAP:
                stake = np.where(self._overlapping(self.job, change), work, stake)
        return stake

    def _left(self, asked: Sequence[Change], share: Mapping[Change, float], also: Ints | None) -> Ints:
        """Return the time that points keep, each losing time to one change only [ns]; arguments as `applied`."""
        is_less, work = np.zeros(len(self.job.points), bool), self.job.points.work
        steps = [int(change.name) for change in asked if change.verb is Verb.WITHOUT and change.kind == "step"]
        are_usual = (self.counts & np.isin(self.job.points.step, steps)).nonzero()[0]

        def less(work: Ints, more: Ints, factor: float) -> Ints:
            rows = more.nonzero()[0]
            rows = rows[~is_less[rows]]
            taken = more[rows] if factor == 1 else in_ns(more[rows] * factor)
            is_less[rows[taken != 0]] = True
            left: Ints = np.clip(np.subtract(work[rows], taken, dtype=np.int64), 0, int(_LONGEST))
            return _replaced(work, rows, left)

        if also is not None:
            work = less(work, also, 1)
        hosts = tuple(change for change in asked if change.verb is Verb.WITHOUT and change.kind == "host")
        gone = [change for change in asked if change.verb is Verb.WITHOUT]
        for change in (change for change in gone if change.kind == "step"):
            work = less(work, self.excess(change), 1)
        is_less[are_usual] = False  # the lasting excess of ranks goes in usual steps, too
        others = (change for change in gone if change.kind != "step")
        for change in sorted(others, key=lambda change: change.kind == "host"):  # a host's ranks may have more excess
            more = self.excess(change, hosts)
            if len(are_usual) and change.kind in ("rank", "host"):
                more = _replaced(more, are_usual, self.blaming.in_usual_steps(more, are_usual))
            work = less(work, more, share.get(change, 1))
        return work

    def _unexplained(self, edges: OrderedEdges) -> Ints:
        """Return the unexplained time of points with other edges [ns]: at most 0 where the host no longer waits."""
        lag = self.job.points.lag
        if edges is self.job.edges:
            return lag
        return np.where(freed(self.job.edges, edges, self.is_host), np.minimum(lag, 0), lag)

    def _rank(self, change: Change, hosts: Sequence[Change]) -> Ints:
        late = [Candidate(CauseKind.HOST, self._on(host), host.name) for host in hosts]
        rank = Candidate(CauseKind.RANK, tuple(self._ranks(change)), "")
        return self.blaming.lasting_of(rank, self.blaming.own_beside(late))

    def ranks_of(self, change: Change) -> Sequence[int]:
        """Return the ranks that a change of ranks or of a host names."""
        return self._on(change) if change.kind == "host" else self._ranks(change)

    def _ranks(self, change: Change) -> list[int]:
        """Return the ranks that a change names."""
        named, known = number_ranges(change.name, f"--{change.verb}"), self.blaming.ranks
        if missing := {each[end] for each in named for end in (0, -1)}.difference(known):
            raise RocpdError(f"{change}: no rank is numbered {min(missing)}", _there_are(known))
        return [rank for rank in known if any(rank in each for each in named)]

    def _on(self, host: Change) -> tuple[int, ...]:
        hosts = zip(self.blaming.ranks, self.blaming.hosts_of_ranks, strict=True)
        return tuple(rank for rank, name in hosts if host.name in (name, self.job.hosts.get(rank)))

    def _host(self, change: Change) -> Ints:
        ranks = self._on(change)
        if not ranks:
            known = sorted({host for host in self.job.hosts.values() if host})
            raise RocpdError(f"{change}: no such host", near(change.name, known, f"hosts: {_few(known)}"))
        if len(ranks) == len(self.blaming.ranks):
            raise RocpdError(f"{change}: all ranks run there", "there is no other host to compare it with")
        return self.blaming.lasting_of(Candidate(CauseKind.HOST, ranks, change.name))

    def _link(self, change: Change) -> Ints:
        less, shapes, links = self.blaming.nothing(), self.blaming.beyond.shapes, self._links(change)
        if not (np.bincount(shapes)[shapes[links]] > 1).any():
            hint = f"rocpd whatif JOB --scale {change.what}=0.5 says what faster transfers would gain"
            raise RocpdError(f"{change}: no other link compares with it", hint)
        for number in links:
            longer = self.blaming.lasting_of(Candidate(CauseKind.LINK, self.job.links[number].ranks, str(number)))
            if longer.sum() > 0:  # others between these ranks, as of other GPUs, are not to take longer
                less += longer
        return less

    def _step(self, change: Change) -> Ints:
        if int(change.name) not in (known := self.blaming.steps.tolist()):
            raise RocpdError(f"{change}: no step that counts is numbered {change.name}", _there_are(known))
        points, passing = self.job.points, self.blaming.beyond.passing_of(slice(None))
        here = (self.counts & (points.step == int(change.name))).nonzero()[0]
        there = (self.counts & (points.step == self._typical(int(change.name)))).nonzero()[0]
        both = np.concatenate([here, there])
        keys = [column[both] for column in (self.job.rank, points.lane, points.kind, points.name, self.job.link)]
        place = numbered(*keys, nth_of((*keys, points.step[both])))
        usual = np.zeros(int(place.max(initial=0)) + 1, np.int64)
        usual[place[len(here) :]] = passing[there]
        less = self.blaming.nothing()
        less[here] = passing[here] - usual[place[: len(here)]]
        return less

    def _typical(self, step: int) -> int:
        """Return the number of the other step of median length."""
        lengths, steps = self.blaming.lengths(self.job.points.time), self.blaming.steps
        others = (steps != step).nonzero()[0]
        middle = others[np.argsort(lengths[others], kind="stable")[(len(others) - 1) // 2]]
        return int(steps[middle])

    def _call(self, change: Change) -> Ints:
        """Return the time of calls [ns]; at least 1 for calls that wait for operations, which no longer wait."""
        some = self.calls & self._matching(change, self.calls, _CALL)
        work = np.where(some, self.job.points.work, 0)
        waits = np.zeros(len(work), bool)
        waits[synchronised(self.job.edges)[1]] = True
        waits &= some
        return np.where(waits, np.maximum(work, 1), work)

    def _gap(self, change: Change) -> Ints:
        """Return the n-th longest pause of the host between calls, at its point; else 0 [ns]."""
        pauses = self._pauses()
        return np.where(np.arange(len(pauses)) == self._gap_at(change, pauses), pauses, 0)

    def _gap_at(self, change: Change, pauses: Ints) -> int:
        """Return the number of the point at which the n-th longest pause ends."""
        count, number = int(np.count_nonzero(pauses)), int(change.name)
        if not 1 <= number <= count:
            raise RocpdError(f"{change}: there is none", f"gaps are numbered from 1, the longest, to {count}")
        order = self.job.order  # the first of equal pauses counts
        at = order[np.argpartition(-pauses[order], number - 1)[:number]]
        return int(at[np.argmin(pauses[at])])

    def about(self, change: Change, asked: Sequence[Change]) -> str:
        """Return the detail of a change that its name lacks; mostly empty.

        These are the length and place of a gap; a note that a scaled call still waits; and the cost of a cause once
        others that hide it are gone, unless these are `asked` for, too.
        """
        if change.verb is Verb.SCALE:
            return self._waiting(change) if change.kind == "call" else ""
        if change.kind != "gap":
            return self._hidden(change, asked)
        points, pauses = self.job.points, self._pauses()
        at = self._gap_at(change, pauses)
        name = f", {self.job.names[points.name[at]]}" if points.name[at] >= 0 else ""
        return f"{readable(int(pauses[at]), 'ns')} of rank {self.job.rank[at]}{name}"

    def _waiting(self, change: Change) -> str:
        """Return a note that calls whose time is scaled still wait for operations, if they do."""
        if not self._scaled(change)[synchronised(self.job.edges)[1]].any():
            return ""
        return f"what it waits for, it still waits for: {without('call', change.name)} takes that away"

    def _hidden(self, change: Change, asked: Sequence[Change]) -> str:
        changes = [of_cause(cause) for cause in self.causes]
        if change not in changes:
            return ""
        at = changes.index(change)
        before = [changes[number] for number in self.causes[at].behind if changes[number] not in asked]
        if not before or not self.causes[at].is_hidden:
            return ""
        names = ", ".join(each.what for each in before)
        share = self.causes[at].cost / self.blaming.step_ns
        return f"{share * 100:.1f} % less once {names} {'is' if len(before) == 1 else 'are'} gone"

    def long_on_host(self, least: int) -> list[Change]:
        """Return the changes that take away calls of HIP and HSA, and gaps, of at least so much time of a rank [ns].

        Of ranks whose calls that launch are not recorded, calls that synchronise seem to work while they wait.
        """
        calls, gaps = self._long_calls(self.job.points.work, least), np.count_nonzero(self._pauses() >= max(1, least))
        return [*calls, *(without("gap", number + 1) for number in range(min(int(gaps), _MOST_GAPS)))]

    def long_waits(self, least: int) -> list[Change]:
        """Return the changes that take away calls in which a rank waits at least so long for operations [ns]."""
        points, edges, waited = self.job.points, self.job.edges, np.zeros(len(self.job.points), np.int64)
        program = (edges.kind == Edge.PROGRAM).nonzero()[0]
        calls = edges.target(program)
        waits = np.isin(calls, synchronised(edges)[1])
        calls, before = calls[waits], edges.source[program[waits]]
        waited[calls] = points.time[calls] - points.work[calls] - points.time[before]
        return self._long_calls(waited, least)

    def _long_calls(self, time: Ints, least: int) -> list[Change]:
        """Return the changes that take away calls with at least so much `time` of a rank in all their points [ns]."""
        points = self.job.points
        rows = (self.calls & (points.name >= 0)).nonzero()[0]
        which = numbered(points.name[rows], self.job.rank[rows])
        is_long = np.bincount(which, time[rows]) >= least
        names = {self.job.names[name] for name in points.name[rows[is_long[which]]].tolist()}
        none = {HostCall.OTHER} if self.blaming.sees_hosts else {HostCall.OTHER, HostCall.SYNCHRONISE}
        return [without_calls([name]) for name in sorted(names) if host_call(name, _HIP) not in none]

    def _pauses(self) -> Ints:
        """Return the length of each pause of the host between calls [ns]; 0 elsewhere."""
        points = self.job.points
        return np.where(self.counts & (points.kind == Point.HOST) & ~self.calls, points.work, 0)

    def _matching(self, change: Change, some: Flags, noun: str) -> Flags:
        """Return which points have a name that the change matches.

        Raises:
            RocpdError: none of `some` has such a name.
        """
        pattern, points = re.compile(change.name), self.job.points
        matching = [number for number, name in enumerate(self.job.names) if pattern.search(name)]
        is_named: Flags = np.isin(points.name, matching)
        if not (is_named & some).any():
            known = sorted({self.job.names[number] for number in np.unique(points.name[some]).tolist() if number >= 0})
            raise RocpdError(f"{change}: no {noun} has such a name", near(change.name, known, _there_are(known)))
        return is_named

    def _links(self, change: Change) -> list[int]:
        """Return the numbers of the links between the ranks that a change names."""
        links = self.job.links
        some = [number for number, link in enumerate(links) if listed(link.ranks) == change.name]
        if not some:
            known = sorted({listed(link.ranks) for link in links})
            raise RocpdError(f"{change}: no link is between these ranks", _there_are(known, "links are between"))
        return some

    def _scaled(self, change: Change) -> Flags:
        """Return the points whose work is scaled."""
        points, counts = self.job.points, self.counts
        computes, copies, moves = (
            counts & (points.part == COMPUTE),
            counts & (points.part == COPIES),
            self.job.link[:] >= 0,
        )
        moves &= counts
        named: dict[str, Callable[[], Flags]] = {
            "kernel": lambda: computes & self._matching(change, computes, "kernel"),
            "call": lambda: self.calls & self._matching(change, self.calls, _CALL),
            "copies": lambda: copies & self._matching(change, copies, "copy"),
            "collective": lambda: moves & self._collectives(change, moves),
            "link": lambda: counts & np.isin(self.job.link[:], self._links(change)),
            "rank": lambda: counts & (self.job.link[:] < 0) & self._of_rank(change),
        }
        if change.name:
            return named[change.kind]()
        every: dict[str, Flags] = {"compute": computes, "copies": copies, "collective": moves}
        every |= {"host": counts & self.is_host}
        scaled = every[change.kind] if change.kind in every else self._launching()
        if not scaled.any():
            raise RocpdError(f"{change}: nothing of that is recorded in steps that count", _RECORDED)
        return scaled

    def _of_rank(self, change: Change) -> Flags:
        are_theirs: Flags = np.isin(self.job.rank, self._ranks(change))
        return are_theirs

    def _collectives(self, change: Change, moves: Flags) -> Flags:
        """Return the transfers that do the operation a change names, by their calls, else by their kernels."""
        job = self.job
        word = _plain(change.name)
        by_call = [number for number, name in enumerate(job.moves) if word in _plain(name)]
        by_kernel = [number for number, name in enumerate(job.names) if word in _plain(name)]
        some: Flags = np.isin(job.move[:], by_call) | ((job.move[:] < 0) & np.isin(job.points.name, by_kernel))
        if not (some & moves).any():
            codes = np.unique(job.move[moves.nonzero()[0]]).tolist()
            known = sorted({job.moves[number].lower() for number in codes if number >= 0})
            raise RocpdError(f"{change}: there is none", _there_are(known))
        return some

    def _launching(self) -> Flags:
        """Return the host work that leads to launches: the calls, and the short pauses right before them."""
        points, edges, rank = self.job.points, self.job.edges, self.job.rank
        launches = np.zeros(len(points), bool)
        launches[edges.source[edges.kind == Edge.LAUNCH]] = True
        order = np.lexsort((np.arange(len(points)), points.lane, rank, ~self.is_host))
        order = order[: int(self.is_host.sum())]
        pauses = (points.kind == Point.HOST) & ~self.calls & ~launches
        same = (rank[order][1:] == rank[order][:-1]) & (points.lane[order][1:] == points.lane[order][:-1])
        some = launches.copy()
        before = pauses[order][:-1] & launches[order][1:] & same
        some[order[:-1][before]] = True
        leads: Flags = some & self.counts & (self.calls | (points.work < PAUSE))
        return leads

    def _overlapped(self, job: JobGraph, change: Change, is_waited: bool) -> OrderedEdges:
        """Return the edges of a job whose communication or copies hold up nothing before the end of the step."""
        points, rank, edges = job.points, job.rank, job.edges.every()
        is_copy = change.kind == "copies"
        moved = self._overlapping(job, change)
        if not (moved & self.counts).any():
            hint = _RECORDED if is_copy else "name the ranks of what layers need at once: comm:0-3"
            raise RocpdError(f"{change}: nothing of that is recorded in steps that count", hint)
        rows = moved.nonzero()[0]
        order = rows[np.lexsort((rows, points.lane[rows], points.step[rows], rank[rows]))]
        is_last = np.append((np.diff(np.stack([c[order] for c in (rank, points.step, points.lane)])) != 0).any(0), True)
        last = np.zeros(len(points), bool)
        last[order[is_last[-len(order) :]]] = True
        talks = points.part == COMMUNICATION
        frees = moved[edges.source] & self.counts[edges.source] & (rank[edges.source] == rank[edges.target])
        frees &= ~(points.part == COPIES)[edges.target] if is_copy else ~talks[edges.target] & ~last[edges.source]
        frees &= ~np.isin(points.kind[edges.target], (Point.MEETING, Point.TRANSFER))
        added = [same_stream(job, edges.take(frees), moved)]
        if is_copy:
            added.append(self._done_by_the_end(job, (last & self.counts).nonzero()[0]))
            if is_waited:
                added.append(to_the_next(job, np.unique(edges.source[frees])))
        return job.edges.also(Edges.joined(added), frees.nonzero()[0])

    def _overlapping(self, job: JobGraph, change: Change) -> Flags:
        """Return the points at which the work that is to overlap ends."""
        points = job.points
        if change.kind == "copies":
            ends: Flags = points.part == COPIES
            return ends
        ends = (points.part == COMMUNICATION) & (points.kind == Point.TRANSFER)
        ends &= self.counts
        if change.name:
            return self._long(ends & np.isin(job.link[:], self._links(change)))
        sends = [number for number, name in enumerate(job.moves) if "SEND" in name or "RECV" in name]
        between = [number for number, link in enumerate(job.links) if link.sends]
        ends = self._long(ends & ~np.isin(job.move[:], sends) & ~np.isin(job.link[:], between))
        return ends & ~np.isin(job.link[:], self._needed_at_once(ends)) if ends.any() else ends

    def _needed_at_once(self, ends: Flags) -> list[int]:
        """Return the links of all-to-alls, and those whose all-reduces come with the first layers of a step.

        Gradients are complete once all layers have been passed: earlier transfers carry activations, or expert tokens.
        """
        job, rows = self.job, ends.nonzero()[0]
        places = {(rank, step): both for rank, steps in job.steps.items() for step, both in steps.items()}
        keys = zip(job.rank[rows].tolist(), job.points.step[rows].tolist(), strict=True)
        begin, end = job.points.time[np.array([places.get(key, (0, 0)) for key in keys], np.int64)].T
        begin = np.maximum(begin, self._first_computing(rows))  # a late stage of a pipeline waits before
        part = (job.points.time[rows] - begin) / np.maximum(end - begin, 1)
        at_once = []
        for number in np.unique(job.link[rows[job.link[rows] >= 0]]).tolist():
            some = job.link[rows] == number
            moves = {job.moves[move] for move in np.unique(job.move[rows[some]]).tolist() if move >= 0}
            names = moves or {_plain(job.names[job.links[number].name])}
            first = np.full(int(job.points.step[rows].max()) + 1, np.inf)
            np.minimum.at(first, job.points.step[rows[some]], part[some])
            is_early = float(np.median(first[np.isfinite(first)])) < _FIRST_LAYERS
            if any("alltoall" in _plain(name) or ("allreduce" in _plain(name) and is_early) for name in names):
                at_once.append(number)
        return at_once

    def _first_computing(self, rows: Ints) -> Ints:
        """Return when the rank of each of some points first computes in the step of the point [ns]; 0: it does not."""
        points, rank = self.job.points, self.job.rank
        computes = (self.counts & (points.part == COMPUTE)).nonzero()[0]
        both = np.concatenate([rows, computes])
        place = numbered(rank[both], points.step[both])
        begins = np.full(len(both) + 1, _LONGEST)
        np.minimum.at(begins, place[len(rows) :], points.time[computes] - points.work[computes])
        return in_ns(np.where(begins < _LONGEST, begins, 0)[place[: len(rows)]])

    def _long(self, ends: Flags) -> Flags:
        """Return the transfers that are not short beside the longest of their rank."""
        points = self.job.points
        rows = ends.nonzero()[0]
        rank = numbered(self.job.rank[rows])
        longest = np.zeros(len(rows) + 1, np.int64)
        np.maximum.at(longest, rank, points.work[rows])
        ends[rows] = points.work[rows].astype(np.int64) * _SHORT >= longest[rank]
        return ends

    def _done_by_the_end(self, job: JobGraph, last: Ints) -> Edges:
        """Return edges from the last copies of steps to the ends of these steps."""
        points = job.points
        ends = {(rank, step): end for rank, steps in job.steps.items() for step, (_, end) in steps.items()}
        keys = zip(job.rank[last].tolist(), points.step[last].tolist(), strict=True)
        target = np.array([ends.get(key, -1) for key in keys], np.int64)
        kept = target > last
        return Edges.of(Edge.SYNCHRONISED, last[kept], target[kept])


def _elastic(job: JobGraph, before: Ints) -> JobGraph:
    """Return a changed job in which pauses shrink or grow with the work that they belong to."""
    points, edges = job.points, job.edges
    is_changed = (points.work != before) & (before > 0) & (points.kind != Point.HOST)

    def ratio(rows: Ints) -> Any:
        return np.divide(points.work[rows], before[rows], out=np.ones(len(rows)), where=is_changed[rows])

    near = is_changed.copy()
    after_it = near[edges.source].nonzero()[0]
    near[edges.target(after_it)] = True
    rows = (near & (points.lag > 0)).nonzero()[0]
    lag = _replaced(points.lag, rows, in_ns(points.lag[rows] * ratio(_binding(job, rows))))
    waits = _replaced(edges.lag, after_it, in_ns(edges.lag[after_it] * ratio(edges.source[after_it])))
    return replace(job, points=replace(points, lag=lag), edges=replace(edges, lag=waits))


def _binding(job: JobGraph, rows: Ints) -> Ints:
    """Return the point that each of some points came after in the recording: its latest source, or itself."""
    edges, by = job.edges, rows.copy()
    waiting, many = edges.of_points(rows)
    if len(waiting):
        after = job.points.time[edges.source[waiting]] + edges.lag[waiting]
        of = np.repeat(np.arange(len(rows)), many)
        first, count = runs(of)
        binds = after == np.repeat(np.maximum.reduceat(after, first), count)
        by[of[binds]] = edges.source[waiting[binds]]
    return by


def _replaced(column: Ints, rows: Ints, values: Ints) -> Ints:
    """Return a copy of a column with other values in some rows, wide enough for them."""
    replaced: Ints = column.astype(np.result_type(column, narrowed(values)))
    replaced[rows] = values
    return replaced


def in_ns(times: Any) -> Ints:
    """Return times in whole ns; those of damaged files are clipped to the range of 63 bits."""
    held: Ints = np.rint(np.clip(times, -_LONGEST, _LONGEST)).astype(np.int64)
    return held


def _there_are(known: Sequence[object], words: str = "there are") -> str:
    """Return the hint for an unknown name: the known ones."""
    return f"{words} {_few(known)}" if known else _RECORDED


def _few(names: Sequence[object]) -> str:
    shown = ", ".join(text if len(text) <= _LONG else f"{text[:_LONG]}…" for text in map(str, names[:6]))
    return shown + " …" if len(names) > 6 else shown


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
