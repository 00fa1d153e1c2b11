"""Which operation has the time of an agent where several run: compute, then communication, then copies. Pure.

Within one kind it is the operation that started first. What also runs meanwhile is hidden.
"""

from __future__ import annotations

import numpy as np

from rocpd.base.types import Ints
from rocpd.facts.timeline import NOTHING, Pieces, inside, outside, owned, union, unite

KINDS = ("compute", "communication", "copy")
"""What an operation does for an agent; also the order in which time is given where operations overlap."""

COMPUTE, COMMUNICATION, COPIES = range(3)

EXPOSED_COMMUNICATION, EXPOSED_COPIES = "exposed communication", "exposed copies"

PARTS = ("compute", EXPOSED_COMMUNICATION, EXPOSED_COPIES, "idle")
"""What the time of an agent is divided into; the first are `KINDS` of operations where nothing before hides them."""

IDLE = 3
HIDES_COMMUNICATION, HIDES_COPIES = 1, 2


def busy_pieces(start: Ints, end: Ints, kinds: Ints) -> tuple[Pieces, Ints, Ints]:
    """Divide the time of operations of one agent among them.

    Args:
        start, end: of each [ns].
        kinds: numbers in `KINDS`.

    Returns:
        pieces, in order of time; of each its number in `PARTS`, and what else runs, as `AgentTime.hides`.

    >>> compute, talk = (10, 40), (30, 60)
    >>> pieces, part, hides = busy_pieces(*np.array([compute, talk]).T, np.array([0, 1]))
    >>> pieces.start.tolist(), pieces.end.tolist(), part.tolist(), hides.tolist()
    ([10, 30, 40], [30, 40, 60], [0, 0, 1], [0, 1, 0])
    """
    unions = [union(start[of_kind], end[of_kind]) for of_kind in (kinds == kind for kind in range(len(KINDS)))]
    before, parts = NOTHING, []
    for kind, of_kind in enumerate(unions):
        rows = np.flatnonzero(kinds == kind)
        own = owned(start[rows], end[rows])
        pieces = outside(Pieces(rows[own.of], own.start, own.end), before)
        hides = np.zeros(len(pieces.of), np.int64)
        for other, bit in ((COMMUNICATION, HIDES_COMMUNICATION), (COPIES, HIDES_COPIES)):
            if other > kind and len(unions[other][0]):
                lies_in, cut = inside(Pieces.each(pieces.start, pieces.end), unions[other])
                hides = hides[cut.of] + bit * lies_in
                pieces = Pieces(pieces.of[cut.of], cut.start, cut.end)
        parts.append((*pieces, np.full(len(pieces.of), kind), hides))
        before = unite(before, of_kind)
    of, start, end, part, hides = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    return Pieces(of, start, end).take(order), part[order], hides[order]
