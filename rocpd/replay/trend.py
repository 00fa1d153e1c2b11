"""How what ranks take longer runs over steps: stalls, an onset, a drift. Pure arithmetic of series, one value a step.

Rows are steps, columns ranks or links; times are in ns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.base import Flags, Floats

NORMAL = 1.4826
"""The deviation by median distance."""

_FAR = 4.0  # deviations from other steps
_SUDDEN = 3.0  # deviations of how much ranks change from step to step: what grows and falls slowly does by chance
_STALL, _ONSET = 0.02, 0.03  # of a step, that a rank stalls or drifts, or takes longer from some step on, at least
_LEAST_APART = 3  # steps before and after an onset
_HARDLY = 0.25  # of what a rank takes longer after an onset, what it does before
_APART = 4  # times as far from others as from each other, lie ranks of a slower part
_LEAST_TO_DRIFT, _DRIFTS = 8, 0.8  # steps; how well what takes longer goes with the number of the step


def alone(more: Floats, slower: Floats) -> Floats:
    """Return what each rank takes more in a step than in others, and than other ranks do.

    Args:
        more: what it takes more than in others.
        slower: times as long as others that each takes for good: so many times as much more takes a step of more work.
    """
    if more.shape[1] < 2:
        return more
    ordered = np.sort(more, axis=1)
    middle = (ordered.shape[1] - 2) // 2
    others = np.where(more <= ordered[:, [middle]], ordered[:, [middle + 1]], ordered[:, [middle]])
    beyond: Floats = more - np.maximum(others, 0) * np.maximum(slower, 1)
    return beyond


def stalls(more: Floats, step_ns: float, *, is_one_kind: bool) -> Flags:
    """Return in which steps ranks, or links, take far longer than in others.

    Args:
        more: what each takes more in a step than others do.
        step_ns: how long a step takes.
        is_one_kind: whether all differ by as much from step to step; else each says how far it does.
    """
    if not more.size:
        return np.zeros(more.shape, bool)
    apart = np.abs(more - np.median(more, axis=0))
    far = _FAR * NORMAL * (np.median(apart) if is_one_kind else np.median(apart, axis=0))
    are_far: Flags = more > np.maximum(far, _STALL * step_ns)
    return are_far


def drifts(longer: Floats, step_ns: float) -> Flags:
    """Return which ranks take longer and longer than others, as one that gets hot.

    Args:
        longer: what each takes longer than others usually do.
        step_ns: how long a step takes.
    """
    count, ranks = longer.shape
    if count < _LEAST_TO_DRIFT or ranks < 2:
        return np.zeros(ranks, bool)
    common = np.quantile(longer, 0.25, axis=1)  # what all take longer is nobody's
    if NORMAL * np.median(np.abs(common - np.median(common))) > _STALL * step_ns:
        return np.zeros(ranks, bool)  # steps differ in their work
    apart = longer - common[:, None]
    place, at = apart.argsort(0).argsort(0), np.arange(count)[:, None]
    goes_along = 1 - 6 * ((place - at) ** 2).sum(0) / (count * (count**2 - 1)) >= _DRIFTS  # Spearman's rho
    are_drifting: Flags = goes_along & (_grew(apart) >= _STALL * step_ns)
    return are_drifting


def stands_out(longer: Floats) -> Flags:
    """Return which ranks grow far more than most grow or shrink, which they do by chance.

    Args:
        longer: what each takes longer than others usually do.
    """
    grew = _grew(longer - np.median(longer, axis=1)[:, None])
    are_far: Flags = grew >= _FAR * NORMAL * np.median(np.abs(grew))
    return are_far


def longest(longer: Floats, least: float) -> dict[int, list[int]]:
    """Return place of a step -> the ranks, up to half of all, that take clearly longest in it, where some do.

    Args:
        longer: what each takes longer than others usually do.
        least: by so much longer.
    """
    deviation = NORMAL * np.median(np.abs(longer - np.median(longer, axis=0)))
    order = np.argsort(-longer, axis=1, kind="stable")[:, : longer.shape[1] // 2 + 1]
    most = np.take_along_axis(longer, order, axis=1)
    clear = most[:, :-1] - np.maximum(most[:, 1:], 0) >= max(_FAR * deviation, least)
    return {int(at): order[at, : clear[at].argmax() + 1].tolist() for at in clear.any(1).nonzero()[0]}


def _grew(longer: Floats) -> Floats:
    """Return how much longer each rank takes in the last quarter of steps than in the first."""
    first, last = quarters(len(longer))
    grew: Floats = np.median(longer[last], axis=0) - np.median(longer[first], axis=0)
    return grew


def quarters(count: int) -> tuple[slice, slice]:
    """Return the first quarter of so many steps, and the last one."""
    return slice(count // 4), slice(count - count // 4, None)


def slower_part(longer: Floats, least: float) -> list[int]:
    """Return half of the ranks, or more but for two, that take far longer than all others; nothing where none do.

    None of them stands out, as each of fewer does.

    Args:
        longer: what each takes longer than others usually do.
        least: by so much longer.
    """
    usual = np.median(longer, axis=0)
    order = np.argsort(usual, kind="stable")
    gaps = np.diff(usual[order])[1 : len(order) // 2]
    if not len(gaps):
        return []
    cut = 2 + int(gaps.argmax())
    apart = max(np.ptp(usual[order[:cut]]), np.ptp(usual[order[cut:]]))
    return sorted(order[cut:].tolist()) if gaps.max() > max(_APART * apart, least) else []


def onset(every: Floats, columns: Sequence[int], step_ns: float) -> int | None:
    """Return the place of the step from which on some ranks take longer; None: they do in all, or now and then.

    Args:
        every: what each rank takes longer than others usually do.
        columns: those that are asked for.
        step_ns: how long a step takes.
    """
    others = np.delete(every, columns, 1)
    low, high = _LEAST_APART, len(every) - _LEAST_APART
    if low > high or not others.size:
        return None
    longer = every[:, columns].mean(1) - np.median(others, axis=1)
    # Where it is divided in two, so that each part varies least.
    at = min(range(low, high + 1), key=lambda cut: longer[:cut].var() * cut + longer[cut:].var() * (len(longer) - cut))
    before, after = longer[:at], longer[at:]
    apart = float(after.mean() - np.median(before))
    spread = NORMAL * float(np.median(np.abs(before - np.median(before))))
    changes = NORMAL * float(np.median(np.abs(np.diff(every - np.median(every, axis=1)[:, None], axis=0))))
    is_new = float(np.quantile(after, 0.1)) > float(np.quantile(before, 0.9))
    is_far = apart > max(_FAR * spread, _SUDDEN * changes, _ONSET * step_ns)
    return at if is_new and is_far and before.mean() < _HARDLY * after.mean() else None
