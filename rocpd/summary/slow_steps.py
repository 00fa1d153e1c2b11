"""What a slow step has more of than usual ones of its rank: compute, communication, copies or idle time, and in what.

Of each rank the few slowest steps are compared with those whose length is nearest to the median. Calls are read only
where idle time is what grew most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.groups import grouped
from rocpd.summary.idle_causes import CAUSES, activities, idle_pieces
from rocpd.summary.intervals import Union, covered, unite
from rocpd.summary.ops import OperationNames, Ops, read_ops
from rocpd.summary.options import By
from rocpd.summary.reading import RankReading
from rocpd.summary.regions import read_regions
from rocpd.types import NULL, Ints

PARTS = ("compute", "communication", "copy")
"""Kinds of operations, each with what it adds to those before it; the rest of a step is idle."""

IDLE = "idle"

_SLOW = 1.2  # times the median
_MOST, _USUAL = 4, 15  # steps that are looked at, and that they are compared with
_FEWEST = 4  # steps of a rank


@frozen
class Growth:
    """What grew most in a step, beside the median of usual ones of its rank.

    Args:
        part: `compute`, `communication`, `copy` or `idle`.
        time: by how much [ns].
        what: kernel, copy, or what the host did meanwhile, that grew most of it; None: nothing of it is known.
        own: by how much all but communication grew, in which ranks wait for each other [ns].
    """

    part: str
    time: int
    what: str | None
    own: int


def growths(
    reading: RankReading,
    ops: Ops,
    names: OperationNames,
    kinds: Mapping[str, Ints],
    steps: Mapping[tuple[str, int], tuple[int, int]],
) -> dict[tuple[str, int], Growth]:
    """Return slow steps of a rank -> what grew most.

    Args:
        reading: reads the rank.
        ops: its operations.
        names: names of these.
        kinds: which of them are of which of `PARTS`.
        steps: text and number -> start and length [ns].
    """
    keys = sorted(steps, key=lambda key: steps[key])
    start, length = (np.array([steps[key][n] for key in keys], np.int64) for n in (0, 1))
    slow, usual = _chosen(length)
    if not slow or not len(ops):
        return {}
    compared = _Compared(start[[*slow, *usual]], (start + length)[[*slow, *usual]], len(slow))
    times = _times(ops, kinds, compared)
    result = {}
    for at, step in enumerate(slow):
        more = {part: compared.more(of_part, at) for part, of_part in times.items()}
        part = max(more, key=lambda name: more[name])
        if part == IDLE:
            what = _idle_in(reading, compared, at)
        else:
            what = _grown_in(ops.take(kinds[part]), names, compared, at)
        result[keys[step]] = Growth(part, more[part], what, sum(more.values()) - more["communication"])
    return result


@frozen
class _Compared:
    """Steps of one rank: first the slow ones, then usual ones.

    Args:
        start, end: of each [ns].
        slow: how many are slow.
    """

    start: Ints
    end: Ints
    slow: int

    def more(self, times: Sequence[int] | Ints, at: int) -> int:
        """Return how much more one step has than the usual ones; `times`: of each."""
        return int(times[at] - np.median(times[self.slow :]))


def _chosen(length: Ints) -> tuple[list[int], list[int]]:
    """Return the numbers of the slowest steps, where they are slow, and of usual ones."""
    if len(length) < _FEWEST:
        return [], []
    typical = float(np.median(length))
    slow = [int(at) for at in np.argsort(-length, kind="stable")[:_MOST] if length[at] > _SLOW * typical]
    nearest = np.argsort(np.abs(length - typical), kind="stable")
    return slow, [int(at) for at in nearest if at not in slow][:_USUAL]


def _times(ops: Ops, kinds: Mapping[str, Ints], compared: _Compared) -> dict[str, Ints]:
    """Return part -> its time in each step."""
    times: dict[str, Ints] = {}
    working: Union = np.zeros(0, np.int64), np.zeros(0, np.int64)
    before = np.zeros(len(compared.start), np.int64)
    for part in PARTS:
        working = unite(working, ops.union(kinds[part]))
        time = covered(working, compared.end) - covered(working, compared.start)
        times[part], before = time - before, time
    return {**times, IDLE: compared.end - compared.start - before}


def _grown_in(ops: Ops, names: OperationNames, compared: _Compared, at: int) -> str | None:
    """Return the operation whose sum of durations grew most."""
    sums = np.zeros((len(names.texts), len(compared.start)), np.int64)
    for step, (low, high) in enumerate(zip(compared.start.tolist(), compared.end.tolist(), strict=True)):
        inside = np.flatnonzero((ops.start >= low) & (ops.start < high))
        np.add.at(sums[:, step], ops.name[inside], ops.duration[inside])
    more = [compared.more(of_name, at) for of_name in sums]
    return names.texts[int(np.argmax(more))] if more and max(more) > 0 else None


def _idle_in(reading: RankReading, compared: _Compared, at: int) -> str | None:
    """Return what the host did meanwhile, that grew most."""
    whole = reading.unwindowed()
    ops = read_ops(whole, OperationNames(), stacks=True)
    regions, names = read_regions(whole)
    threads = activities(regions, names)
    span = int(min(ops.start.min(), compared.start.min())), int(max(ops.end.max(), compared.end.max()))
    sums: dict[tuple[int, ...], list[int]] = {}
    for _, on_agent in ops.lanes(By.AGENT):
        idle = idle_pieces(on_agent, regions, threads, span)
        for step, (low, high) in enumerate(zip(compared.start.tolist(), compared.end.tolist(), strict=True)):
            pieces = idle.within(low, high)
            for key, rows in grouped([pieces.cause, pieces.what]):
                of_key = sums.setdefault(key, [0] * len(compared.start))
                of_key[step] += int((pieces.end - pieces.start)[rows].sum())
    if not sums:
        return None
    cause, what = max(sums, key=lambda key: compared.more(sums[key], at))
    name = None if what == NULL else names.texts[what]
    return f"{CAUSES[cause]}: {name}" if name else CAUSES[cause]
