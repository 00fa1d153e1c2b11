"""The call that launched an operation: the innermost region that has the operation's stack id in its rank.

Profilers give a call and the operations that it launches one stack id. An API built on another API has two regions with
that id, of which the inner one launches. The innermost region is the one that starts last; of equal starts the one that
ends first, where an invalid end counts as the start; of equal times the last row. A region with an invalid start
launches nothing, and neither does a stack id of 0 or less. The thread does not matter: a process uses an id once.
"""

from __future__ import annotations

import numpy as np

from rocpd.base import Flags, Ints
from rocpd.schema.rules.categories import IS_CALL
from rocpd.schema.rules.events import VALID_START, valid_start, valid_times

LAUNCHING_STACKS = f"""SELECT E.stack_id FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
WHERE E.stack_id > 0 AND R.{VALID_START} AND {IS_CALL} GROUP BY E.stack_id"""
"""SELECT of the stack ids of launching calls of a rank; `MAX(R.start)` is the start of the innermost of them."""


def launching_regions(stack: Ints, start: Ints, end: Ints, operations: Ints) -> Ints:
    """Return the region that launched each operation, as its row in the columns of regions; -1 where none did.

    Args:
        stack, start, end: of all regions of the rank, regardless of the selection, in order of rows; times [ns].
        operations: stack ids of the operations.

    >>> outer, inner, other = (7, 1, 100), (7, 10, 20), (8, 30, 40)
    >>> launching_regions(*np.array([outer, inner, other]).T, np.array([8, 7, 7, 9, 0])).tolist()
    [2, 1, 1, -1, -1]
    """
    rows = np.flatnonzero((stack > 0) & valid_start(start))
    if not len(rows):
        return np.full(len(operations), -1, np.int64)
    rows = rows[np.argsort(stack[rows], kind="stable")]
    known = stack[rows]
    if np.any(known[1:] == known[:-1]):
        until = np.where(valid_times(start, end), end, start)[rows]
        rows = rows[np.lexsort((-until, start[rows], known))]
    last = np.maximum(np.searchsorted(known, operations, side="right") - 1, 0)
    return np.where(known[last] == operations, rows[last], -1)


def launches(stack: Ints, start: Ints, end: Ints) -> Flags:
    """Return whether each region is the launching one of its stack id; arguments as for `launching_regions`."""
    is_innermost: Flags = launching_regions(stack, start, end, stack) == np.arange(len(stack))
    return is_innermost
