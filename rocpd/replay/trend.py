"""The course of excess times over steps: stalls, an onset, a drift. Pure arithmetic of series, one value per step.

Rows are steps, columns ranks or links; times are in ns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.base import Flags, Floats

NORMAL = 1.4826
"""The factor from a median distance to a standard deviation."""

_FAR = 4.0  # deviations from other steps
_FEW = 3  # steps: of so many, the usual deviation is known to half of it
_SUDDEN = 4.5  # deviations of the changes from step to step: slow growth and decline happen by chance
_STALL, _ONSET = 0.02, 0.03  # share of a step, at least, of a stall or drift, and of the excess from an onset on
_LEAST_APART = 3  # steps before and after an onset
_HARDLY = 0.25  # share of a rank's excess after an onset that it may have before
_APART = 4  # the ranks of a slower part are so many times further from others than from each other
_LEAST_TO_DRIFT, _DRIFTS = 8, 0.8  # steps; correlation of the excess with the number of the step


def alone(more: Floats, slower: Floats) -> Floats:
    """Return how much longer each rank takes in a step than in others, and than other ranks do.

    Args:
        more: how much longer each takes than in other steps.
        slower: lasting slowness of each, as times the time of others: extra work in a step takes it as many times more.
    """
    if more.shape[1] < 2:
        return more
    ordered = np.sort(more, axis=1)
    middle = (ordered.shape[1] - 2) // 2
    others = np.where(more <= ordered[:, [middle]], ordered[:, [middle + 1]], ordered[:, [middle]])
    beyond: Floats = more - np.maximum(others, 0) * np.maximum(slower, 1)
    return beyond


def left(longer: Floats, gone: Floats) -> Floats:
    """Return the excess of each rank that is left once some is gone: then a rank takes as long as the others, not less.

    Args:
        longer: excess of each over the usual time of others.
        gone: the part of it that is gone; 0: nothing of the rank.
    """
    is_whole = ~gone.any(0)
    if is_whole.any():
        gone = np.minimum(gone, np.maximum(longer - np.median(longer[:, is_whole], axis=1)[:, None], 0))
    return longer - gone


def stalls(more: Floats, step_ns: float, *, is_one_kind: bool) -> Flags:
    """Return the steps in which ranks, or links, take far longer than in others.

    Args:
        more: how much longer each takes in a step than others.
        step_ns: length of a step.
        is_one_kind: whether all vary alike from step to step; if not, each is judged by its own variation.
    """
    if not more.size:
        return np.zeros(more.shape, bool)
    apart = np.abs(more - np.median(more, axis=0))
    far = _FAR * (1 + _FEW / len(more)) * NORMAL * (np.median(apart) if is_one_kind else np.median(apart, axis=0))
    are_far: Flags = more > np.maximum(far, _STALL * step_ns)
    return are_far


def drifts(longer: Floats, step_ns: float) -> Flags:
    """Return the ranks that take longer and longer than others, such as one that gets hot.

    Args:
        longer: excess of each over the usual time of others.
        step_ns: length of a step.
    """
    count, ranks = longer.shape
    if count < _LEAST_TO_DRIFT or ranks < 2:
        return np.zeros(ranks, bool)
    common = np.quantile(longer, 0.25, axis=1)  # an excess that all ranks share belongs to none of them
    if NORMAL * np.median(np.abs(common - np.median(common))) > _STALL * step_ns:
        return np.zeros(ranks, bool)  # steps differ in their work
    apart = longer - common[:, None]
    place, at = apart.argsort(0).argsort(0), np.arange(count)[:, None]
    goes_along = 1 - 6 * ((place - at) ** 2).sum(0) / (count * (count**2 - 1)) >= _DRIFTS  # Spearman's rho
    are_drifting: Flags = goes_along & (_grew(apart) >= _STALL * step_ns)
    return are_drifting


def stands_out(longer: Floats) -> Flags:
    """Return the ranks that grow far more than most ranks grow or shrink by chance.

    Args:
        longer: excess of each over the usual time of others.
    """
    grew = _grew(longer - np.median(longer, axis=1)[:, None])
    are_far: Flags = grew >= _FAR * NORMAL * np.median(np.abs(grew))
    return are_far


def longest(longer: Floats, least: float) -> dict[int, list[int]]:
    """Return place of a step -> the ranks, up to half of all, that take clearly longest in it, if there are any.

    Args:
        longer: excess of each over the usual time of others.
        least: least distance to the next rank.
    """
    deviation = NORMAL * np.median(np.abs(longer - np.median(longer, axis=0)))
    order = np.argsort(-longer, axis=1, kind="stable")[:, : longer.shape[1] // 2 + 1]
    most = np.take_along_axis(longer, order, axis=1)
    clear = most[:, :-1] - np.maximum(most[:, 1:], 0) >= max(_FAR * deviation, least)
    return {int(at): order[at, : clear[at].argmax() + 1].tolist() for at in clear.any(1).nonzero()[0]}


def _grew(longer: Floats) -> Floats:
    """Return the growth of each rank's excess from the first to the last quarter of steps."""
    first, last = quarters(len(longer))
    grew: Floats = np.median(longer[last], axis=0) - np.median(longer[first], axis=0)
    return grew


def quarters(count: int) -> tuple[slice, slice]:
    """Return the first and the last quarter of so many steps."""
    return slice(count // 4), slice(count - count // 4, None)


def slower_part(longer: Floats, least: float) -> list[int]:
    """Return the ranks, at least half and all but two at most, that take far longer than the others; else nothing.

    Fewer slow ranks stand out one by one; ranks of so large a part do not.

    Args:
        longer: excess of each over the usual time of others.
        least: least distance of the part from the others.
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
    """Return the place of the step from which on some ranks take longer; None: in all steps, or only now and then.

    Args:
        every: excess of each rank over the usual time of others.
        columns: the columns of the ranks in question.
        step_ns: length of a step.
    """
    others = np.delete(every, columns, 1)
    low, high = _LEAST_APART, len(every) - _LEAST_APART
    if low > high or not others.size:
        return None
    longer = every[:, columns].mean(1) - np.median(others, axis=1)
    # The cut that leaves the least variance within the two parts has the most between them.
    cuts, before = np.arange(low, high + 1), np.cumsum(longer - longer.mean())[low - 1 : high]
    at = int(cuts[np.argmax(before**2 * (1 / cuts + 1 / (len(longer) - cuts)))])
    before, after = longer[:at], longer[at:]
    apart = float(after.mean() - np.median(before))
    spread = NORMAL * float(np.median(np.abs(before - np.median(before))))
    changes = NORMAL * float(np.median(np.abs(np.diff(every - np.median(every, axis=1)[:, None], axis=0))))
    is_new = float(np.quantile(after, 0.1)) > float(np.quantile(before, 0.9))
    is_far = apart > max(_FAR * spread, _SUDDEN * changes, _ONSET * step_ns)
    return at if is_new and is_far and before.mean() < _HARDLY * after.mean() else None
