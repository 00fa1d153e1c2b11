"""Finds which kernels of two sides are the same: by name, by what stays of it, or by where they run.

The first level that finds a partner wins. Where several fit, they stay together as one group: nothing is guessed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from rocpd.compare.launches import COPY_KIND
from rocpd.compare.run_profile import LaunchUse
from rocpd.trace.kernel_names import without_kd
from rocpd.trace.short_names import kernel_name

_CHANGING = re.compile(r"\(anonymous namespace\)::|\[clone [^\]]*\]|_clone\b|\.kd\b|0x[0-9a-fA-F]+")
_MOST = 2000  # launches of one place that are aligned
_OFTEN = 0.1  # of the time of a kernel
_NOTHING = "other"  # category that says nothing


class MatchLevel(StrEnum):
    """By what two kernels are the same."""

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
    """By what a kernel is known; of copies, the direction."""

    kind: str
    symbol: str
    name: str
    category: str


class KernelPair(NamedTuple):
    """Kernels of the base and of the other side that are the same; one side is empty for what is new or gone."""

    level: MatchLevel
    base: tuple[KernelIdentity, ...]
    new: tuple[KernelIdentity, ...]


def identity_of(use: LaunchUse) -> KernelIdentity:
    """Return by what the kernel of a launch is known."""
    return KernelIdentity(use.launch.kind, use.launch.symbol, use.launch.name, use.launch.category)


def plain_name(name: str) -> str:
    """Return a name without what changes from build to build.

    >>> plain_name("void (anonymous namespace)::gemm(float*) [clone .kd]")
    'void gemm(float*)'
    """
    return _CHANGING.sub("", without_kd(name)).strip()


def pair_kernels(
    base: Sequence[LaunchUse], new: Sequence[LaunchUse], match: re.Pattern[str] | None = None
) -> list[KernelPair]:
    """Return which kernels of two sides are the same, and those that only one side has.

    Args:
        base, new: launches of both sides, in the order of their first ones.
        match: kernels with equal groups of it are the same.
    """
    left = list(dict.fromkeys(map(identity_of, base))), list(dict.fromkeys(map(identity_of, new)))
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
    pairs += _paired(MatchLevel.CATEGORY, left, _by_category)
    pairs += [KernelPair(MatchLevel.GONE, (kernel,), ()) for kernel in left[0]]
    pairs += [KernelPair(MatchLevel.NEW, (), (kernel,)) for kernel in left[1]]
    return pairs


def _groups(match: re.Pattern[str] | None, kernel: KernelIdentity) -> Hashable:
    part = match and (match.search(kernel.name) or match.search(kernel.symbol))
    return (kernel.kind, part.groups() or part[0]) if part else None


def _by_category(kernel: KernelIdentity) -> Hashable:
    return None if kernel.category == _NOTHING else (kernel.kind, kernel.category)


def _paired(
    level: MatchLevel,
    left: tuple[list[KernelIdentity], list[KernelIdentity]],
    key: Callable[[KernelIdentity], Hashable],
) -> Iterator[KernelPair]:
    """Yield pairs of kernels with equal keys, and remove them from those that are left."""
    sides = [_by_key(kernels, key) for kernels in left]
    for identity in [identity for identity in sides[0] if identity in sides[1]]:
        pair = KernelPair(level, tuple(sides[0][identity]), tuple(sides[1][identity]))
        for kernels, those in zip(left, (pair.base, pair.new), strict=True):
            kernels[:] = [kernel for kernel in kernels if kernel not in those]
        yield pair


def _by_key(
    kernels: Iterable[KernelIdentity], key: Callable[[KernelIdentity], Hashable]
) -> dict[Hashable, list[KernelIdentity]]:
    groups: dict[Hashable, list[KernelIdentity]] = {}
    for kernel in kernels:
        identity = key(kernel)
        if identity is not None:
            groups.setdefault(identity, []).append(kernel)
    return groups


def _same_places(
    base: Sequence[LaunchUse],
    new: Sequence[LaunchUse],
    pairs: Iterable[KernelPair],
    left: tuple[Sequence[KernelIdentity], Sequence[KernelIdentity]],
) -> Iterator[tuple[KernelIdentity, int]]:
    """Yield kernels that are left, with a number that those of one place share: between the same known kernels.

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
    """Return marker ranges and operator -> kernels that are launched there, in the order of their first launch."""
    places: dict[tuple[str, str], dict[KernelIdentity, None]] = {}
    for use in uses:
        places.setdefault((use.launch.path, use.launch.operator), {})[identity_of(use)] = None
    return {place: list(kernels) for place, kernels in places.items()}


def _by_operators(uses: Iterable[LaunchUse], left: Container[KernelIdentity]) -> dict[KernelIdentity, int]:
    """Return kernel -> number that those have in common which the same operators launch, directly or by way of others.

    Only of kernels that are left and are no copies. An operator counts that launches a tenth of the time of a kernel.
    """
    times: dict[KernelIdentity, dict[str, int]] = {}
    for use in uses:
        kernel = identity_of(use)
        if kernel in left and kernel.kind != COPY_KIND:
            of_kernel = times.setdefault(kernel, {})
            of_kernel[use.launch.operator] = of_kernel.get(use.launch.operator, 0) + use.time
    groups: list[tuple[set[KernelIdentity], set[tuple[str, str]]]] = []
    for kernel, of_kernel in times.items():
        least = _OFTEN * sum(of_kernel.values())
        kernels, operators = (
            {kernel},
            {(kernel.kind, name) for name, time in of_kernel.items() if name and time >= least},
        )
        met = [group for group in groups if group[1] & operators]
        groups = [group for group in groups if group not in met]
        groups.append((kernels.union(*(each[0] for each in met)), operators.union(*(each[1] for each in met))))
    return {kernel: number for number, (kernels, operators) in enumerate(groups) if operators for kernel in kernels}


def _replaced(
    base: Sequence[KernelIdentity], new: Sequence[KernelIdentity], tokens: Mapping[KernelIdentity, Hashable]
) -> Iterator[tuple[KernelIdentity, KernelIdentity]]:
    """Yield kernels that stand in one place, one to one."""
    sequences = [[tokens.get(kernel, kernel) for kernel in side] for side in (base, new)]
    matcher = difflib.SequenceMatcher(None, sequences[0], sequences[1], autojunk=False)
    for what, low, high, first, last in matcher.get_opcodes():
        if what == "replace" and high - low == last - first:
            yield from zip(base[low:high], new[first:last], strict=True)
