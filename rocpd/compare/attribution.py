"""Shows where the difference of two sides comes from: mean units, equal kernels, and the changes of each.

Times are whole nanoseconds that add up, on every level. Shares of a unit are rounded so that parts add up to their sum
(`apportioned`), on each side alone: so differences change their signs when the sides change places.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import accumulate, pairwise
from operator import attrgetter
from statistics import fmean, median
from typing import NamedTuple, TypeAlias

from rocpd.base import amount, by_key, few, frozen
from rocpd.compare.measure import COPY_KIND, CodeFacts, Grid, KernelLaunch, Moved
from rocpd.compare.run_profile import PARTS, UNMATCHED, WAITING, CallLengths, LaunchUse, RunProfile
from rocpd.facts.communication.rccl import Transfer
from rocpd.facts.short_names import kernel_name
from rocpd.schema.rules.kernel_names import without_kd
from rocpd.table.human import readable


class UnitShare(NamedTuple):
    """The share of a kind of launch in one unit of one side, on average.

    Args:
        calls: number of calls.
        duration: sum of durations [ns].
        times: part -> time [ns], in whole numbers that add up with all others.
        median: median duration of a call [ns].
        lengths: durations of a call on all ranks, on average of the runs.
    """

    calls: float
    duration: float
    times: Mapping[str, int]
    median: float | None
    lengths: CallLengths | None = None

    @property
    def total(self) -> int:
        """The time in all parts [ns]."""
        return sum(self.times.values())


@frozen
class Side:
    """The mean unit of one side, in whole numbers [ns].

    Args:
        shares: launch -> its share of a unit.
        idle: idle part -> time.
    """

    shares: Mapping[KernelLaunch, UnitShare]
    idle: Mapping[str, int]

    def parts(self) -> dict[str, int]:
        """Return the time of each part [ns]."""
        parts = dict.fromkeys(PARTS, 0)
        for share in self.shares.values():
            for part, time in share.times.items():
                parts[part] += time
        return {**parts, **self.idle}

    @property
    def total(self) -> int:
        """The time of the mean unit [ns]."""
        return sum(self.parts().values())


def apportioned(shares: Sequence[int], divisor: int) -> list[int]:
    """Divide whole numbers such that the results add up to their sum divided by the divisor, rounded down.

    >>> apportioned([5, 5, 5], 2), sum([5, 5, 5]) // 2
    ([2, 3, 2], 7)
    """
    ends = (total // divisor for total in accumulate(shares, initial=0))
    return [end - start for start, end in pairwise(ends)]


def side_of(runs: Sequence[RunProfile]) -> Side:
    """Return the mean unit of all runs of a side."""
    scale = math.lcm(*(run.scale for run in runs))
    units = sum(run.units for run in runs)
    uses = defaultdict[KernelLaunch, list[tuple[int, LaunchUse]]](list)
    times = Counter[tuple[int, str, KernelLaunch | None]]()
    for run in runs:
        factor = scale // run.scale
        for use in run.uses:
            uses[use.launch].append((factor, use))
            for part, time in use.exposed.items():
                times[PARTS.index(part), part, use.launch] += factor * time
        for part, time in run.idle.items():
            times[len(PARTS), part, None] += factor * time
    ordered = sorted(times, key=lambda key: (key[0], key[1], repr(key[2])))
    shares = dict(zip(ordered, apportioned([times[key] for key in ordered], scale * units), strict=True))
    by_launch = defaultdict[KernelLaunch | None, dict[str, int]](dict)
    for (_, part, launch), time in shares.items():
        by_launch[launch][part] = time
    of_launches = {
        launch: UnitShare(
            sum(factor * use.calls for factor, use in some) / (scale * units),
            sum(factor * use.time for factor, use in some) / (scale * units),
            by_launch[launch],
            median(known) if (known := [use.median for _, use in some if use.median is not None]) else None,
            _mean([use.lengths for _, use in some if use.lengths]),
        )
        for launch, some in uses.items()
    }
    return Side(of_launches, by_launch[None])


def _mean(lengths: Sequence[CallLengths]) -> CallLengths | None:
    if not lengths:
        return None
    ranks, quickest, usual = zip(*lengths, strict=True)
    return CallLengths(max(ranks), fmean(quickest), fmean(usual))


@frozen
class Difference:
    """A time of both sides, per unit [ns]."""

    base: int
    new: int

    @property
    def change(self) -> int:
        """The change from the base to the other side [ns]."""
        return self.new - self.base


_CHANGING = re.compile(r"\(anonymous namespace\)::|\[clone [^\]]*\]|_clone\b|\.kd\b|0x[0-9a-fA-F]+")
_MOST = 2000  # launches of one place up to which they are aligned
_OFTEN = 0.1  # share of the time of a kernel
_NOTHING = "other"  # category without a meaning


class MatchLevel(StrEnum):
    """The property by which two kernels are the same."""

    REGEX = "--match"
    MANGLED = "mangled name"
    NAME = "name"
    FAMILY = "family"
    OPERATOR = "operator"
    POSITION = "position"
    CATEGORY = "category"
    NEW = "new"
    GONE = "gone"


class KernelIdentity(NamedTuple):
    """The properties by which a kernel is identified; a copy, by its direction."""

    kind: str
    symbol: str
    name: str
    category: str


_Left: TypeAlias = tuple[list[KernelIdentity], list[KernelIdentity]]
"""The kernels of both sides that are not paired yet."""


class KernelPair(NamedTuple):
    """Kernels of both sides that are the same; one side is empty for new kernels, and for those that are gone."""

    level: MatchLevel
    base: tuple[KernelIdentity, ...]
    new: tuple[KernelIdentity, ...]


def identity_of(launch: KernelLaunch) -> KernelIdentity:
    """Return the identity of the kernel of a launch."""
    return KernelIdentity(launch.kind, launch.symbol, launch.name, launch.category)


def plain_name(name: str) -> str:
    """Return a name without the parts that change from build to build.

    >>> plain_name("void (anonymous namespace)::gemm(float*) [clone .kd]")
    'void gemm(float*)'
    """
    return _CHANGING.sub("", without_kd(name)).strip()


def pair_kernels(
    base: Sequence[LaunchUse], new: Sequence[LaunchUse], match: re.Pattern[str] | None = None
) -> list[KernelPair]:
    """Return pairs of kernels that are the same on two sides, and those that only one side has.

    Args:
        base, new: launches of both sides, in the order of their first ones.
        match: kernels with equal groups of it are the same.
    """
    of_base, of_new = (list(dict.fromkeys(identity_of(use.launch) for use in side)) for side in (base, new))
    left = of_base, of_new
    keys: dict[MatchLevel, Callable[[KernelIdentity], Hashable]] = {
        MatchLevel.REGEX: lambda kernel: _groups(match, kernel),
        MatchLevel.MANGLED: lambda kernel: (kernel.kind, kernel.symbol) if kernel.symbol else None,
        MatchLevel.NAME: lambda kernel: (kernel.kind, plain_name(kernel.name)) if kernel.name else None,
        MatchLevel.FAMILY: lambda kernel: (kernel.kind, kernel_name(kernel.name).family) if kernel.name else None,
    }
    pairs: list[KernelPair] = []
    for level, key in keys.items():
        pairs += _paired(level, left, key)
    pairs += _paired(MatchLevel.OPERATOR, left, _by_operators((*base, *new), {*left[0], *left[1]}).get)
    pairs += _paired(MatchLevel.POSITION, left, dict(_same_places(base, new, pairs, left)).get)
    pairs += _paired(MatchLevel.CATEGORY, left, lambda k: None if k.category == _NOTHING else (k.kind, k.category))
    pairs += [KernelPair(MatchLevel.GONE, (kernel,), ()) for kernel in left[0]]
    pairs += [KernelPair(MatchLevel.NEW, (), (kernel,)) for kernel in left[1]]
    return pairs


def _groups(match: re.Pattern[str] | None, kernel: KernelIdentity) -> Hashable:
    part = match and (match.search(kernel.name) or match.search(kernel.symbol))
    return (kernel.kind, part.groups() or part[0]) if part else None


def _paired(level: MatchLevel, left: _Left, key: Callable[[KernelIdentity], Hashable]) -> Iterator[KernelPair]:
    """Yield pairs of kernels with equal keys, and remove them from the remaining ones."""
    groups = defaultdict[Hashable, _Left](lambda: ([], []))
    for number, kernel in ((number, kernel) for number, kernels in enumerate(left) for kernel in kernels):
        if (identity := key(kernel)) is not None:
            groups[identity][number].append(kernel)
    for sides in groups.values():
        if all(sides):
            for kernels, those in zip(left, sides, strict=True):
                kernels[:] = [kernel for kernel in kernels if kernel not in those]
            yield KernelPair(level, *map(tuple, sides))


def _same_places(
    base: Sequence[LaunchUse], new: Sequence[LaunchUse], pairs: Iterable[KernelPair], left: _Left
) -> Iterator[tuple[KernelIdentity, int]]:
    """Yield remaining kernels, each with a number shared by those that stand in one place between known kernels.

    The launches inside the same marker ranges and operator are aligned by their order; where one kernel took the place
    of another, the two are one.
    """
    tokens: dict[KernelIdentity, Hashable] = {}
    for number, pair in enumerate(pairs):
        tokens |= dict.fromkeys((*pair.base, *pair.new), number)
    by_place = [_by_place(side) for side in (base, new)]
    wanted = set(left[0]), set(left[1])
    taken: set[KernelIdentity] = set()
    number = 0
    for place, of_base in by_place[0].items():
        of_new = by_place[1].get(place, [])
        if not any(place) or max(len(of_base), len(of_new)) > _MOST:
            continue
        for one, other in _replaced(of_base, of_new, tokens):
            is_free = one in wanted[0] and other in wanted[1] and not {one, other} & taken
            if is_free and one.kind == other.kind != COPY_KIND:
                taken |= {one, other}
                yield from ((one, number), (other, number))
                number += 1


def _by_place(uses: Iterable[LaunchUse]) -> dict[tuple[str, str], list[KernelIdentity]]:
    """Return marker ranges and operator -> kernels launched there, in the order of their first launch."""
    places = defaultdict[tuple[str, str], dict[KernelIdentity, None]](dict)
    for use in uses:
        places[use.launch.path, use.launch.operator][identity_of(use.launch)] = None
    return {place: list(kernels) for place, kernels in places.items()}


def _by_operators(uses: Iterable[LaunchUse], left: Container[KernelIdentity]) -> dict[KernelIdentity, int]:
    """Return kernel -> a number shared by kernels that the same operators launch, directly or through further kernels.

    Only for remaining kernels, without copies. An operator counts if it launches a tenth of the time of a kernel.
    """
    times = defaultdict[KernelIdentity, Counter[str]](Counter)
    for use in uses:
        kernel = identity_of(use.launch)
        if kernel in left and kernel.kind != COPY_KIND:
            times[kernel][use.launch.operator] += use.time
    groups: list[tuple[set[KernelIdentity], set[tuple[str, str]]]] = []
    for kernel, of_kernel in times.items():
        least = _OFTEN * sum(of_kernel.values())
        operators = {(kernel.kind, name) for name, time in of_kernel.items() if name and time >= least}
        met = [group for group in groups if group[1] & operators]
        groups = [group for group in groups if group not in met]
        groups.append(({kernel}.union(*(each[0] for each in met)), operators.union(*(each[1] for each in met))))
    return {kernel: number for number, (kernels, operators) in enumerate(groups) if operators for kernel in kernels}


def _replaced(
    base: Sequence[KernelIdentity], new: Sequence[KernelIdentity], tokens: Mapping[KernelIdentity, Hashable]
) -> Iterator[tuple[KernelIdentity, KernelIdentity]]:
    """Yield pairs of kernels that replaced each other in one place."""
    sequences = [[tokens.get(kernel, kernel) for kernel in side] for side in (base, new)]
    matcher = difflib.SequenceMatcher(None, sequences[0], sequences[1], autojunk=False)
    for what, low, high, first, last in matcher.get_opcodes():
        if what == "replace" and high - low == last - first:
            yield from zip(base[low:high], new[first:last], strict=True)


_MOST_VALUES = 2
_WORK = ("moved", "grid")  # properties of the work of a launch: the first one that is known identifies it
_ROUNDING = 3  # error of all effects together [ns]


@frozen
class KernelDifference(Difference):
    """The time of a kernel, or of several that are taken for one, per unit.

    The change of its time is `calls` + `work` + `speed` + `overlap` + `waiting`, exactly.

    Args:
        pair: the kernels.
        calls_per_unit: calls on both sides.
        calls: change due to the number of calls, with the duration of the base [ns].
        work: change due to calls of other work: another grid, or other bytes or ranks of a collective [ns].
        speed: change due to the duration of calls of the same work [ns].
        overlap: change due to the part of these calls that is hidden behind other work [ns].
        waiting: change of waiting for other ranks, and of unmatched communication [ns].
        ratio: duration of a call as times that of the base, by medians, at equal work where possible; None: unknown, or
            communication, which waits.
        everywhere: this ratio on every rank at least; 1 if it differs only on some ranks; None: unknown.
        ranks: number of ranks that call it, as far as known.
        is_other_work: whether each side has work that the other lacks.
        launched: differences in how it is launched and built, in words.
        p: Mann-Whitney probability of the runs of both sides, adjusted by Holm; None with one run a side.
    """

    pair: KernelPair = KernelPair(MatchLevel.NEW, (), ())
    calls_per_unit: tuple[float, float] = (0.0, 0.0)
    calls: int = 0
    work: int = 0
    speed: int = 0
    overlap: int = 0
    waiting: int = 0
    ratio: float | None = None
    everywhere: float | None = None
    ranks: int = 0
    is_other_work: bool = False
    launched: str = ""
    p: float | None = None


class _Sum(NamedTuple):
    """The calls of a kernel with the same work, per unit; times in ns.

    Args:
        calls: number of calls.
        own: time added to the unit, without waiting.
        duration: sum of durations, without exposed waiting.
        median_calls: median duration of a call, times calls.
        quickest_calls, usual_calls: duration of a call on the quickest rank, and on the median rank, times calls.
    """

    calls: float = 0.0
    own: float = 0
    duration: float = 0.0
    median_calls: float = 0.0
    quickest_calls: float = 0.0
    usual_calls: float = 0.0


def kernel_difference(pair: KernelPair, base: Side, new: Side) -> KernelDifference:
    """Return the time of kernels that are the same on both sides, and the effects behind its change."""
    sides = _shares(base, pair.base), _shares(new, pair.new)
    known = [name for name in _WORK if all(any(getattr(launch, name) for launch, _ in side) for side in sides)]
    works = [_by_work(side, known) for side in sides]
    before, after = (sum(share.total for _, share in side) for side in sides)
    waiting = [_part_of(side, (WAITING, UNMATCHED)) for side in sides]
    calls, work, speed = map(round, _effects(*works))
    waited = waiting[1] - waiting[0]
    overlap = after - before - calls - work - speed - waited
    if abs(overlap) <= _ROUNDING:
        speed, overlap = speed + overlap, 0
    others = [_sum(some for key, some in works[side].items() if key not in works[1 - side]) for side in (0, 1)]
    is_other = bool(others[0].calls and others[1].calls)
    per_unit = _sum(works[0].values()).calls, _sum(works[1].values()).calls
    ratio = None if any(launch.kind == "communication" for launch, _ in sides[0]) else _ratio(*works)
    launched = _launched(*([launch for launch, _ in side] for side in sides))
    effects = calls, work, speed, overlap, waited
    ranks = max((share.lengths.ranks for _, share in sides[1] if share.lengths), default=0)
    times = before, after, pair, per_unit
    return KernelDifference(*times, *effects, ratio, _everywhere(*works), ranks, is_other, launched)


def _shares(side: Side, kernels: Iterable[KernelIdentity]) -> list[tuple[KernelLaunch, UnitShare]]:
    wanted = set(kernels)
    return [(launch, share) for launch, share in side.shares.items() if identity_of(launch) in wanted]


def _part_of(side: Iterable[tuple[KernelLaunch, UnitShare]], parts: Sequence[str]) -> int:
    return sum(time for _, share in side for part, time in share.times.items() if part in parts)


def _by_work(side: Iterable[tuple[KernelLaunch, UnitShare]], known: Sequence[str]) -> dict[Hashable, _Sum]:
    """Return the calls of a kernel by their work; `known`: properties of `_WORK` that both sides have."""
    works: dict[Hashable, _Sum] = {}
    for launch, share in side:
        waited = _part_of([(launch, share)], (WAITING, UNMATCHED))
        median_calls = (share.median or 0.0) * share.calls
        lengths = (share.lengths.quickest, share.lengths.usual) if share.lengths else (0.0, 0.0)
        on_ranks = [length * share.calls for length in lengths]
        added = _Sum(share.calls, share.total - waited, share.duration - waited, median_calls, *on_ranks)
        work = next(filter(None, (getattr(launch, name) for name in known)), None)
        works[work] = _sum((works.get(work, _Sum()), added))
    return works


def _sum(sums: Iterable[_Sum]) -> _Sum:
    return _Sum(*map(sum, zip(_Sum(), *sums, strict=True)))


def _effects(base: Mapping[Hashable, _Sum], new: Mapping[Hashable, _Sum]) -> tuple[float, float, float]:
    """Return the parts of a change due to the number of calls, to other work in calls, and to their duration [ns].

    More calls count with the duration of the base. A shift of calls between kinds of work, as when another rank is
    critical, counts as other work.
    """
    common = base.keys() & new.keys()
    gone = _sum(each for key, each in base.items() if key not in common)
    added = _sum(each for key, each in new.items() if key not in common)
    counts = sum(_of_calls(base[key], new[key]) for key in common) + added.own - gone.own
    speed = sum(_of_speed(base[key], new[key]) for key in common)
    before, after = _sum(base.values()), _sum(new.values())
    is_one = len({*base, *new}) == 1 or not (before.calls and after.calls)
    calls = counts if is_one else _of_calls(before, after)
    return calls, counts - calls, speed


def _of_speed(base: _Sum, new: _Sum) -> float:
    """Return the time added by longer calls, if the same share of them is hidden as in the base [ns]."""
    if not (base.calls and new.calls and base.duration > 0):
        return 0.0
    longer = new.duration / new.calls - base.duration / base.calls
    return new.calls * longer * base.own / base.duration


def _of_calls(base: _Sum, new: _Sum) -> float:
    return (new.calls - base.calls) * base.own / base.calls if base.calls else float(new.own - base.own)


def _ratio(base: Mapping[Hashable, _Sum], new: Mapping[Hashable, _Sum]) -> float | None:
    """Return the duration of a call as times that of the base, by medians; work is weighted by calls in the base."""
    if common := [work for work in base if work in new and base[work].median_calls and new[work].calls]:
        now = sum(new[work].median_calls / new[work].calls * base[work].calls for work in common)
        return now / sum(base[work].median_calls for work in common)
    before, after = _sum(base.values()), _sum(new.values())
    if not (before.median_calls and after.calls):
        return None
    return (after.median_calls / after.calls) / (before.median_calls / before.calls)


def _everywhere(base: Mapping[Hashable, _Sum], new: Mapping[Hashable, _Sum]) -> float | None:
    """Return the ratio of durations of calls of equal work on the quickest or on the median rank, if both agree.

    A change on some ranks only leaves one of these as it is.
    """
    common = [work for work in base if work in new and base[work].usual_calls and new[work].usual_calls]
    if not common:
        return None
    weights = {work: base[work].calls / new[work].calls for work in common}
    quickest = sum(new[work].quickest_calls * weights[work] for work in common)
    usual = sum(new[work].usual_calls * weights[work] for work in common)
    low, high = sorted(
        (
            quickest / sum(base[work].quickest_calls for work in common),
            usual / sum(base[work].usual_calls for work in common),
        )
    )
    return low if low > 1 else min(high, 1.0)


def _launched(base: Sequence[KernelLaunch], new: Sequence[KernelLaunch]) -> str:
    """Return the differences in how a kernel is launched and built, in words."""
    if not base or not new:
        return ""
    says = list(_moved(*({launch.moved for launch in side if launch.moved} for side in (base, new))))
    grids = [sorted({_grid(launch.grid) for launch in side if launch.grid}) for side in (base, new)]
    if not says and all(grids) and not set(grids[0]) & set(grids[1]):
        says.append(f"grid {few(grids[0], _MOST_VALUES)} -> {few(grids[1], _MOST_VALUES)}")
    words = ("VGPR", "AGPR", "SGPR", "LDS", "scratch", "code object")
    for name, word in zip(CodeFacts._fields, words, strict=True):
        values = [sorted({getattr(launch.code, name) for launch in side} - {None}) for side in (base, new)]
        if all(values) and values[0] != values[1]:
            says.append(f"{word} {few(values[0], _MOST_VALUES)} -> {few(values[1], _MOST_VALUES)}")
    return "; ".join(says)


def _moved(base: set[Moved], new: set[Moved]) -> Iterator[str]:
    """Yield the collectives that move other bytes than in the base, or join other ranks, in words."""
    gone, added = (by_key((move[:2], move.size) for move in sorted(moves)) for moves in (base - new, new - base))
    for (operation, ranks), sizes in added.items():
        if before := gone.get((operation, ranks)):
            of = f" of {amount(ranks, 'rank')}" if ranks else ""
            now, then = (few([readable(size, "bytes") for size in some], _MOST_VALUES) for some in (sizes, before))
            yield f"{Transfer(operation).shown}{of} moves {now} instead of {then}"
        elif others := [str(of) for name, of in gone if name == operation]:
            yield f"{Transfer(operation).shown} of {amount(ranks, 'rank')} instead of {few(others, _MOST_VALUES)}"


def _grid(grid: Grid) -> str:
    x, y, z, *group = grid
    return f"{x}x{y}x{z}/{'x'.join(map(str, group))}"


@frozen
class Attribution:
    """The sources of a difference.

    Args:
        unit: time of a unit.
        parts: its parts.
        kernels: kernels and copies, the largest change first; they add up to the parts other than idle time.
        categories, paths, operators: the same by category of kernels, by marker ranges, and by operators of PyTorch.
    """

    unit: Difference
    parts: Mapping[str, Difference]
    kernels: Sequence[KernelDifference]
    categories: Mapping[str, Difference] = field(default_factory=dict)
    paths: Mapping[str, Difference] = field(default_factory=dict)
    operators: Mapping[str, Difference] = field(default_factory=dict)

    @property
    def like_for_like(self) -> float:
        """The share of the base's kernel time in kernels that do the same work per call."""
        computing = [kernel for kernel in self.kernels if kernel.pair.base and kernel.pair.base[0].kind == "compute"]
        total = sum(kernel.base for kernel in computing)
        return sum(kernel.base for kernel in computing if not kernel.is_other_work) / total if total else 1.0


def attribute(base: Side, new: Side, pairs: Sequence[KernelPair]) -> Attribution:
    """Return the sources of the difference of two sides."""
    parts = base.parts(), new.parts()
    by_part = {part: Difference(parts[0].get(part, 0), parts[1].get(part, 0)) for part in PARTS}
    known = {part: times for part, times in by_part.items() if times.base or times.new}
    kernels = [kernel_difference(pair, base, new) for pair in pairs]
    ordered = sorted(kernels, key=lambda kernel: (-abs(kernel.change), -kernel.base, kernel.pair))
    divided = [_by(base, new, attrgetter(name)) for name in ("category", "path", "operator")]
    return Attribution(Difference(base.total, new.total), known, ordered, *divided)


def _by(base: Side, new: Side, key: Callable[[KernelLaunch], str]) -> dict[str, Difference]:
    sums = Counter[str](), Counter[str]()
    for side, of_side in zip((base, new), sums, strict=True):
        for launch, share in side.shares.items():
            of_side[key(launch)] += share.total
    times = {name: Difference(sums[0][name], sums[1][name]) for name in {*sums[0], *sums[1]}}
    return dict(sorted(times.items(), key=lambda item: (-abs(item[1].change), item[0])))


def explaining(rows: Sequence[Difference], share: float = 0.9) -> Iterator[int]:
    """Yield the numbers of rows, in their order, until these make up a share of all changes."""
    total, seen = sum(abs(row.change) for row in rows), 0
    for number, row in enumerate(rows):
        if not row.change or seen >= share * total:
            return
        seen += abs(row.change)
        yield number
