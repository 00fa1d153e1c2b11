"""Which ranks wait for which in a job that is stuck, and which are missing.

A group is stuck if a member waits in one of its operations and no member has advanced for a while. A missing rank is to
blame only if it waits for nobody; otherwise the rank that it waits for is to blame. If all wait for each other, the
order of their calls is wrong. Reads no file; uses the results of `progress`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from rocpd.base import amount, attributes, by_key, frozen
from rocpd.federate.federation import Federation
from rocpd.federate.open.identify import world_size
from rocpd.federate.select.align import duration
from rocpd.live import AFTER_S
from rocpd.live.progress import Life, RankProgress, progress
from rocpd.schema.live_state import ABORTED, CROWDED, SIZE_UNKNOWN, GroupState

_WAITS = re.compile(r"^(nccl|rccl)|Synchronize|Wait|hip(Memcpy|Free|HostFree)(?!.*Async)|signal_wait")
_MOST_NAMED = 8
_MOST_GROUPS = 16
_PAIR = {"ncclSend", "ncclRecv"}
_NOT_RECORDED = "not recorded: cannot tell who waits from who is missing (no state file lies beside the databases)"


class Hanging(StrEnum):
    """Whether a job hangs."""

    YES = "hang"
    NO = "no hang"
    ENDED = "ended"
    UNKNOWN = "not recorded"


@frozen
class GroupWait:
    """An operation of a group in which some members wait and which others have not reached.

    Args:
        group: its name.
        number: number of the operation in the group, from 1.
        operation: last call in the group of the waiting members.
        waiting: ranks that have called it.
        missing: ranks that have not.
        unseen: number of members whose files are not here.
        waited_ns: time for which no member has advanced [ns].
        differ: calls of members for the same operation, by rank, if they differ.
    """

    group: str
    number: int
    operation: str
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    unseen: int
    waited_ns: int
    differ: Mapping[str, tuple[int, ...]]

    def __str__(self) -> str:
        return f"{self.operation} {self.number} of {self.group}"


@frozen
class HangReport:
    """The answer.

    Args:
        verdict: whether the job hangs.
        lines: the answer in sentences, the verdict first.
        missing: ranks that hold up the others, and wait for nobody.
        waits: stuck groups, longest wait first.
        ranks: progress of each rank.
    """

    verdict: Hanging
    lines: tuple[str, ...]
    missing: tuple[int, ...]
    waits: tuple[GroupWait, ...]
    ranks: tuple[RankProgress, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def document(self) -> dict[str, Any]:
        """Return the answer for JSON; times are nanoseconds."""
        return {
            **attributes(self, "verdict lines missing"),
            "waits": [
                {
                    **attributes(wait, "group operation number waited_ns waiting missing"),
                    "members_without_file": wait.unseen,
                    "called": {name: list(ranks) for name, ranks in wait.differ.items()},
                }
                for wait in self.waits
            ],
            "ranks": [_of_rank(rank) for rank in self.ranks],
        }


def _of_rank(rank: RankProgress) -> dict[str, Any]:
    groups = [
        {
            "group": group.name,
            "members": group.size if group.size != SIZE_UNKNOWN else None,
            "entered": group.entered,
            "left": group.left,
            "last_entered": group.operation,
            "last_left": group.left_operation,
            "entered_ago_ns": rank.since(group.entered_at) if group.entered else None,
            "left_ago_ns": rank.since(group.left_at) if group.left else None,
            "bytes": group.bytes,
        }
        for group in rank.groups
    ]
    calls = [{"tid": c.tid, "call": c.call, "since_ns": rank.since(c.since)} for c in rank.calls]
    at = rank.range
    known = {**attributes(rank, "rank host run life silent_ns lost_rows"), "calls": calls, "groups": groups}
    known["range"] = {"text": at.range, "since_ns": rank.since(at.range_since)} if at else None
    return known | {"last_collective": rank.last[0] if rank.last else None}


def hang(session: Federation, after_s: float = AFTER_S) -> HangReport:
    """Return whether a job hangs, and the missing ranks.

    Args:
        session: the job.
        after_s: seconds without progress after which a group counts as stuck.

    Raises:
        InputError: a file cannot be read.
    """
    report = judged(progress(session), after_s)
    verdict, *further = report.lines
    return replace(report, lines=(verdict, *_lacking(session), *further))


def _lacking(session: Federation) -> Iterator[str]:
    """Yield a sentence on ranks that are not among the files, if processes knew how many there are."""
    runs, worlds = {rank.guid: rank.run for rank in session.ranks}, Counter[int]()
    for guid, *texts in session.execute("SELECT guid, environment, extdata FROM rocpd_info_process"):
        if guid in runs:
            worlds[runs[guid]] = max(worlds[runs[guid]], world_size(texts))
    missing, of = session.job.lacking(worlds)
    if missing:
        yield f"{missing} of {amount(of, 'rank')} {'is' if missing == 1 else 'are'} not among the files"


def judged(ranks: tuple[RankProgress, ...], after_s: float = AFTER_S) -> HangReport:
    """Return the answer for the progress of ranks; see `hang`."""
    # Groups get stuck in turn: the blame considers groups that will be stuck soon, too.
    soon = sorted(_waits(ranks, round(after_s * 1e9) // 2), key=lambda wait: -wait.waited_ns)
    waits = tuple(soon) if any(wait.waited_ns >= after_s * 1e9 for wait in soon) else ()
    known = [rank for rank in ranks if rank.state is not None]
    if waits:
        missing = _roots(waits, {rank.rank: rank for rank in ranks})
        lines = [*_why(waits, missing, ranks), *_beside(ranks), *_groups(ranks, [wait.group for wait in waits])]
        return HangReport(Hanging.YES, tuple(lines), missing, waits, ranks)
    if known:
        several = amount(len({(r.run, g.id) for r in known for g in r.groups}), "group")
        lines = [f"no hang: all groups progress ({several}, {amount(len(known), 'rank')})", *_beside(ranks)]
        lines += _groups(ranks, [])
        if not any(rank.groups for rank in known):
            lines[0] = "no hang seen: no rank has called a collective yet"
        elif all(rank.life is Life.STOPPED for rank in known):
            lines[0] = f"no hang seen: no group stood still for {after_s:g} s before the last sign of life"
        return HangReport(Hanging.NO, tuple(lines), (), (), ranks)
    if ranks and all(rank.life is Life.ENDED for rank in ranks):
        each = "the rank" if len(ranks) == 1 else f"each of {amount(len(ranks), 'rank')}"
        return HangReport(Hanging.ENDED, (f"ended: {each} has ended", *_last(ranks)), (), (), ranks)
    return HangReport(Hanging.UNKNOWN, (_NOT_RECORDED, *_last(ranks)), (), (), ranks)


def _members(ranks: Iterable[RankProgress]) -> list[list[tuple[RankProgress, GroupState]]]:
    """Return the members of each group, without running ones that have aborted it."""
    groups: dict[tuple[int, int], list[tuple[RankProgress, GroupState]]] = defaultdict(list)
    for rank in ranks:
        for group in rank.groups:
            if not (group.closed == ABORTED and rank.life is Life.RUNS):
                groups[rank.run, group.id].append((rank, group))
    return list(groups.values())


def _waits(ranks: Sequence[RankProgress], after_ns: int) -> Iterator[GroupWait]:
    """Yield the stuck groups."""
    crowded = {rank.run for rank in ranks if rank.state and rank.state.flags & CROWDED}
    for members in _members(ranks):
        # All have reached an operation that has ended for one of them: a rank that died may not have seen the end.
        number = max(group.left for _, group in members) + 1
        waiting = [(rank, group) for rank, group in members if group.entered >= number]
        if not waiting:
            number = min(group.left for _, group in members) + 1
            waiting = [(rank, group) for rank, group in members if group.entered > group.left]
        idle = min(rank.since(max(group.entered_at, group.left_at)) for rank, group in members)
        size = members[0][1].size
        unseen = max(0, size - len(members)) if size != SIZE_UNKNOWN else 0
        if not waiting or idle < after_ns or (unseen and members[0][0].run in crowded):
            continue
        missing = tuple(rank.rank for rank, group in members if group.entered < number)
        called = by_key((group.operation, rank.rank) for rank, group in members if group.entered == number)
        differ = {name: tuple(callers) for name, callers in called.items()}
        name, operation = waiting[0][1].name, waiting[0][1].operation
        if len(differ) < 2 or differ.keys() <= _PAIR:
            differ = {}
        waiters = tuple(rank.rank for rank, _ in waiting)
        yield GroupWait(name, number, operation, waiters, missing, unseen, idle, differ)


def _roots(waits: Sequence[GroupWait], ranks: Mapping[int, RankProgress]) -> tuple[int, ...]:
    """Return the ranks that others wait for and that wait for nobody; a rank that is gone waits for nobody any more.

    If all missing ranks wait, too, the result is the ranks whose host is in a call that waits for nothing: they wait
    only for earlier work of their GPU.
    """
    missing = {rank for wait in waits for rank in wait.missing}
    if gone := {rank for rank in missing if ranks[rank].is_gone}:
        return tuple(sorted(gone))
    free = missing - {rank for wait in waits if wait.missing or wait.unseen for rank in wait.waiting}
    # A host that waits for its GPU may wait for an earlier receive, which is not an operation of the group.
    busy = {rank for rank in free if not _waits_for_gpu(ranks[rank])}
    busy = busy or {rank for rank in missing if ranks[rank].calls and not _waits_for_gpu(ranks[rank])}
    return tuple(sorted(busy or (() if _circle(waits) else free)))


def _waits_for_gpu(rank: RankProgress) -> bool:
    """Whether the host is in a call that waits."""
    return any(_WAITS.search(call.call) for call in rank.calls)


def _why(waits: Sequence[GroupWait], missing: tuple[int, ...], ranks: Sequence[RankProgress]) -> Iterator[str]:
    """Yield the ranks to blame, in sentences."""
    held = sorted({rank for wait in waits for rank in (*wait.waiting, *wait.missing)} - set(missing))
    for wait in waits:
        if wait.differ:
            called = "; ".join(f"{_named(callers)} {name}" for name, callers in sorted(wait.differ.items()))
            yield f"hang: members of {wait.group} called different operations as number {wait.number}: {called}"
    by_rank = {rank.rank: rank for rank in ranks}
    for number in missing[:_MOST_NAMED]:
        due = next(wait for wait in waits if number in wait.missing)
        yield (
            f"hang: rank {number} has not come to {due}, where {_named(due.waiting)} "
            f"{'waits' if len(due.waiting) == 1 else 'wait'}, for {duration(due.waited_ns)}: {_doing(by_rank[number])}"
        )
    if len(missing) > _MOST_NAMED:
        yield f"hang: so have not {amount(len(missing) - _MOST_NAMED, 'further rank')}: {_named(missing)}"
    if missing and len(held) > 1:
        yield f"held up by {_named(missing)}: {_named(held)}"
    if not missing and (circle := _circle(waits)):
        yield f"hang: order deadlock: {', which '.join(circle)}"
    yield from (_all_came(wait) for wait in waits if not wait.missing and not wait.differ)


def _all_came(wait: GroupWait) -> str:
    start = f"hang: {_named(wait.waiting)} waits" if len(wait.waiting) == 1 else f"hang: {_named(wait.waiting)} wait"
    if wait.unseen:
        return f"{start} in {wait} for {amount(wait.unseen, 'member')} whose files are not here"
    since = f"for {duration(wait.waited_ns)}"
    return f"hang: all members have called {wait}, which has not ended {since}: a GPU or the network holds it up"


def _doing(rank: RankProgress) -> str:
    """Return the activity of a rank, as far as it is recorded."""
    if rank.is_gone:
        last = f", last in {rank.calls[0].call}" if rank.calls else ""
        return f"no sign of life of it for {duration(rank.behind_ns)}: killed, stopped or cut off{last}"
    thread = rank.range
    within = f"the range {thread.range} for {duration(rank.since(thread.range_since))}" if thread else ""
    if rank.calls:
        call = rank.calls[0]
        return f"it has been in {call.call} for {duration(rank.since(call.since))}{within and f', in {within}'}"
    return f"it {f'has been in {within}, and ' if within else ''}is in no call that is recorded"


def _circle(waits: Sequence[GroupWait]) -> list[str]:
    """Return a shortest circle of ranks that wait for each other, in words; empty if there is none."""
    edges: dict[int, dict[int, GroupWait]] = defaultdict(dict)
    for wait in waits:
        for waiter in wait.waiting:
            for other in wait.missing:
                edges[waiter].setdefault(other, wait)
    circles = [path for start in list(edges)[:_MOST_NAMED] if (path := _path_back(edges, start))]
    if not circles:
        return []
    path = min(circles, key=len)
    pairs = list(zip(path, [*path[1:], path[0]], strict=True))
    words = [f"waits in {edges[waiter][other]} for rank {other}" for waiter, other in pairs]
    return [f"rank {path[0]} {words[0]}", *words[1:]]


def _path_back(edges: Mapping[int, Mapping[int, GroupWait]], start: int) -> list[int]:
    """Return the ranks on a shortest path from a rank back to it; empty if there is none."""
    paths = [[start]]
    seen = {start}
    while paths:
        path = paths.pop(0)
        for other in edges.get(path[-1], {}):
            if other == start:
                return path
            if other not in seen:
                seen.add(other)
                paths.append([*path, other])
    return []


def _beside(ranks: Sequence[RankProgress]) -> Iterator[str]:
    """Yield further facts on ranks: separate runs, stopped ranks, ranks that write no rows, unknown ranks."""
    yield from _runs(ranks)
    stopped = [rank for rank in ranks if rank.life is Life.STOPPED]
    if stopped and len(stopped) == sum(rank.state is not None for rank in ranks):
        silent = duration(min(rank.silent_ns for rank in stopped))
        yield f"no rank has given a sign of life for {silent}: this is how they stood"
    elif stopped:
        yield f"no sign of life for up to {duration(max(r.silent_ns for r in stopped))}: {_of(stopped)}"
    if lost := [rank for rank in ranks if rank.lost_rows]:
        yield f"rows are no longer written, is the disk full: {_of(lost)}"
    if ended := [rank for rank in ranks if rank.life is Life.ENDED]:
        yield f"has ended: {_of(ended)}"
    if unknown := [rank for rank in ranks if rank.life is Life.UNKNOWN]:
        yield f"not recorded, as without a state file: {_of(unknown)}"


def _runs(ranks: Sequence[RankProgress]) -> Iterator[str]:
    """Yield a sentence on the separate runs of ranks, if there are several."""
    runs = sorted({rank.run for rank in ranks})
    if len(runs) > 1:
        each = "; ".join(_of(rank for rank in ranks if rank.run == run) for run in runs)
        yield f"{len(runs)} separate runs, not one job: {each}"


def _groups(ranks: Sequence[RankProgress], first: Sequence[str]) -> Iterator[str]:
    """Yield for each group the progress of its members, named groups first."""
    groups: dict[tuple[int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank in ranks:
        for group in rank.groups:
            entered = f"entered {group.entered} {group.operation}".strip()
            left = f"left {group.left} {group.left_operation}".strip()
            groups[rank.run, group.name][f"{entered}, {left}"].append(rank.rank)
    order = sorted(groups, key=lambda key: (first.index(key[1]) if key[1] in first else len(first), key))
    for key in order[:_MOST_GROUPS]:
        yield f"{key[1]}: " + "; ".join(f"{_named(members)} {how}" for how, members in groups[key].items())
    if len(order) > _MOST_GROUPS:
        yield f"and {amount(len(order) - _MOST_GROUPS, 'group')} more: --format json has all"


def _last(ranks: Sequence[RankProgress]) -> Iterator[str]:
    """Yield the last completed collective of each rank, for the few with the oldest one."""
    yield from _runs(ranks)
    known = sorted(((*rank.last, rank) for rank in ranks if rank.last), key=lambda last: last[1])
    for name, end, rank in known[:_MOST_NAMED]:
        at = f"{end / 1e9:.6f} s of its clock"
        yield f"rank {rank.rank} on {rank.host}: last completed {name.partition('(')[0]}, at {at}"
    if len(known) > _MOST_NAMED:
        yield f"and {amount(len(known) - _MOST_NAMED, 'rank')} more"
    if none := [rank for rank in ranks if not rank.last]:
        yield f"no collective completed: {_of(none)}"


def _of(ranks: Iterable[RankProgress]) -> str:
    return _named([rank.rank for rank in ranks])


def _named(ranks: Sequence[int]) -> str:
    """Return ranks in words: `rank 3`, `ranks 0-2,5`.

    >>> _named([3]), _named([0, 1, 2, 5])
    ('rank 3', 'ranks 0-2,5')
    """
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    words = ",".join(f"{a}-{b}" if b > a + 1 else f"{a},{b}" if b > a else f"{a}" for a, b in spans)
    return f"rank {words}" if len(ranks) == 1 else f"ranks {words}"
