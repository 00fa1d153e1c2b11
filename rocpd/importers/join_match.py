"""Finds which dispatches of two recordings of one process are the same: one by rocprofv3, one by PyTorch's profiler.

Both have the times that the GPU took, on clocks that differ by an offset nobody recorded, and that drift. The offset is
the one at which names and durations agree; from there it is followed both ways. A dispatch is matched where one of the
other recording has its name, its duration and its time, and no other comes near: a match that may be wrong is none.
Knows columns alone, no files.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Flags, Ints

NEAR = 20_000
"""How far two times of a dispatch may be apart once the offset is known [ns]: profilers round to a microsecond."""

_ALIKE_NS, _ALIKE = 2_000, 0.02  # durations differ by no more than that [ns], or that share
_ANCHORS = 24  # dispatches of which every like one is tried as the same
_TRIED = 4_000  # of these at most
_SAMPLE = 256  # dispatches by which an offset is judged
_ENOUGH, _APART = 0.6, 0.2  # of the sample that agrees, and by how much more than at any other offset
_BLOCK = 64  # dispatches, after which the offset is adjusted


@frozen
class ProcessDispatches:
    """ProcessDispatches of a process in order of start; all columns are equally long.

    Args:
        start, end: [ns].
        name: number of the kernel's name, one for both recordings.
    """

    start: Ints
    end: Ints
    name: Ints

    def __len__(self) -> int:
        return len(self.start)


@frozen
class Matches:
    """Rows of dispatches that are the same.

    Args:
        one, other: rows in each recording; equally long.
    """

    one: Ints
    other: Ints


_NOTHING = Matches(np.zeros(0, np.int64), np.zeros(0, np.int64))


def matched(one: ProcessDispatches, other: ProcessDispatches) -> Matches:
    """Return which dispatches of two recordings are the same.

    >>> def of(starts, offset):
    ...     start = np.array(starts) + offset
    ...     count = np.arange(len(starts))
    ...     return ProcessDispatches(start, start + count % 7 * 9_000 + 5_000, count % 3)
    >>> starts = np.cumsum(np.arange(40) * 999 % 50 * 1000)
    >>> same = matched(of(starts, 0), of(starts, 10**12))
    >>> same.one.tolist() == same.other.tolist() == list(range(40))
    True
    """
    known = np.intersect1d(one.name, other.name)
    rows = np.flatnonzero(np.isin(one.name, known))
    if not len(rows):
        return _NOTHING
    searched = _ByName(other)
    first = _best_offset(one, rows, other, searched)
    if first is None:
        return _NOTHING
    at, offset = first
    ahead = list(_followed(one, rows[np.searchsorted(rows, at) :], searched, offset))
    back = list(_followed(one, rows[: np.searchsorted(rows, at)][::-1], searched, offset))
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *back, *ahead])
    return _once(pairs)


class _ByName:
    """Finds dispatches of a name by their start."""

    def __init__(self, dispatches: ProcessDispatches) -> None:
        self.dispatches = dispatches
        order = np.lexsort((dispatches.start, dispatches.name))
        self._rows = order
        self._name, self._start = dispatches.name[order], dispatches.start[order]
        self._edges: dict[int, tuple[int, int]] = {}

    def rows_of(self, name: int) -> Ints:
        """Return the rows of a name, in order of start."""
        low, high = np.searchsorted(self._name, [name, name + 1])
        return self._rows[low:high]

    def nearest(self, name: Ints, start: Ints) -> tuple[Ints, Ints, Ints]:
        """Return for each name the row that starts nearest to a time, how far apart it is, and the second nearest [ns].

        -1 and a long time where there is none.
        """
        far = np.iinfo(np.int64).max
        row, apart, second = np.full(len(name), -1), np.full(len(name), far), np.full(len(name), far)
        for each in np.unique(name).tolist():
            mine = np.flatnonzero(name == each)
            rows = self.rows_of(each)
            if not len(rows):
                continue
            starts = self.dispatches.start[rows]
            at = np.searchsorted(starts, start[mine])
            around = np.clip(at[:, None] + np.array([-2, -1, 0, 1]), 0, len(rows) - 1)
            away = np.abs(starts[around] - start[mine][:, None])
            best = np.argmin(away, 1)
            line = np.arange(len(mine))
            row[mine], apart[mine] = rows[around[line, best]], away[line, best]
            is_other = around != around[line, best][:, None]
            second[mine] = np.where(is_other, away, far).min(1)
        return row, apart, second


def _alike(one: ProcessDispatches, rows: Ints, other: ProcessDispatches, others: Ints) -> Flags:
    """Whether durations are about the same."""
    durations = [(each.end - each.start)[which] for each, which in ((one, rows), (other, others))]
    alike: Flags = np.abs(durations[0] - durations[1]) <= np.maximum(_ALIKE_NS, durations[0] * _ALIKE)
    return alike


def _best_offset(
    one: ProcessDispatches, rows: Ints, other: ProcessDispatches, searched: _ByName
) -> tuple[int, int] | None:
    """Return a row and what is added to its start [ns], by which most around it agree; None: none stands out."""
    counts = {name: len(searched.rows_of(name)) for name in np.unique(one.name[rows]).tolist()}
    rare = np.argsort([counts[name] for name in one.name[rows].tolist()], kind="stable")
    found: list[tuple[float, int, int]] = []
    for at in rows[rare[:: max(1, len(rare) // 4 // _ANCHORS)][:_ANCHORS]].tolist():
        like = searched.rows_of(int(one.name[at]))
        like = like[_alike(one, np.full(len(like), at), other, like)][:_TRIED]
        place = int(np.searchsorted(rows, at))
        around = rows[max(0, place - 2 * _SAMPLE) : place + 2 * _SAMPLE]
        around = around[:: max(1, len(around) // _SAMPLE)]
        for offset in (other.start[like] - one.start[at]).tolist():
            row, apart, _ = searched.nearest(one.name[around], one.start[around] + offset)
            agrees = (apart <= NEAR) & _alike(one, around, other, np.maximum(row, 0))
            found.append((float(agrees.mean()), at, offset))
    found.sort(reverse=True)
    if not found or found[0][0] < _ENOUGH:
        return None
    share, at, offset = found[0]
    others = [each[0] for each in found if abs(each[2] - offset) > 2 * NEAR and each[1] == at]
    return None if others and others[0] > share - _APART else (at, offset)


def _followed(one: ProcessDispatches, rows: Ints, searched: _ByName, offset: int) -> Iterator[Ints]:
    """Yield pairs of rows, block by block, away from where an offset is known."""
    for low in range(0, len(rows), _BLOCK):
        block = rows[low : low + _BLOCK]
        row, apart, second = searched.nearest(one.name[block], one.start[block] + offset)
        is_same = (apart <= NEAR) & (apart * 2 < second)
        is_same &= _alike(one, block, searched.dispatches, np.maximum(row, 0))
        if is_same.any():
            pairs = np.stack([block[is_same], row[is_same]], 1)
            offset = int(np.median(searched.dispatches.start[pairs[:, 1]] - one.start[pairs[:, 0]]))
            yield pairs


def _once(pairs: Ints) -> Matches:
    """Return pairs of which none shares a row with another one."""
    names, counts = np.unique(pairs[:, 1], return_counts=True)
    pairs = pairs[np.isin(pairs[:, 1], names[counts == 1])]
    pairs = pairs[np.argsort(pairs[:, 0])]
    return Matches(pairs[:, 0], pairs[:, 1])
