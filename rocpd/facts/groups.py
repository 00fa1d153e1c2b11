"""Divides rows into groups of equal keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import Ints

_DENSE = 1 << 12  # numbers this close together are used as they are
_SHORT = 1 << 16  # below this numpy sorts ten times faster


@frozen
class RowGroups:
    """Rows by groups of equal keys.

    Args:
        keys: the keys of each group.
        order: numbers of the rows, group by group, within a group in their order.
        first: where in `order` each group starts.
    """

    keys: list[tuple[int, ...]]
    order: Ints
    first: Ints

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Ints]]:
        """Yield the keys of each group with the numbers of its rows."""
        edges = [*self.first.tolist(), len(self.order)]
        for key, low, high in zip(self.keys, edges, edges[1:], strict=False):
            yield key, self.order[low:high]


def group_rows(keys: Sequence[Ints]) -> RowGroups:
    """Group rows, of which there is at least one, by one column or more."""
    code = _code(keys)
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    heads = order[first]
    return RowGroups(list(zip(*(key[heads].tolist() for key in keys), strict=True)), order, first)


def grouped(keys: Sequence[Ints]) -> Iterator[tuple[tuple[int, ...], Ints]]:
    """Yield each combination of keys that occurs, with the numbers of its rows in their order.

    >>> import numpy as np
    >>> [(key, rows.tolist()) for key, rows in grouped([np.array([7, 5, 7]), np.array([0, 0, 0])])]
    [((5, 0), [1]), ((7, 0), [0, 2])]
    """
    if len(keys[0]):
        yield from group_rows(keys)


def _code(keys: Sequence[Ints]) -> Ints:
    """One small number per combination of keys."""
    code, width = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low = int(key.min())
        span = int(key.max()) - low + 1
        if span <= _DENSE:
            small = key - low
        else:
            distinct, small = np.unique(key, return_inverse=True)
            span = len(distinct)
        code, width = code * span + small, width * span
        if width > _SHORT:
            distinct, code = np.unique(code, return_inverse=True)
            width = len(distinct)
    return code.astype(np.uint16).view() if width <= _SHORT else code  # type: ignore[return-value]
