"""How much longer communication may take for a cause where its partners are not known. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rocpd.base import Flags, Ints
from rocpd.facts.columns import numbered
from rocpd.replay.job import JobGraph


def may_wait(job: JobGraph, counts: Flags, at: Ints, less: Ints) -> tuple[Ints, ...]:
    """Return the time that transfers with unknown partners may lose, too, once points lose `less` [ns]; empty: none.

    Any of them may wait for the points, for as long as these take longer in the step, but none takes less than the
    shortest transfer by its kernel on its stream.

    Args:
        job: the graph.
        counts: whether each point is in a step that counts.
        at: place of its step among those that count.
        less: time that each point loses [ns].
    """
    points = job.points
    alone = job.unmatched[counts[job.unmatched]]
    if not len(alone):
        return ()
    losing = (counts & (less > 0)).nonzero()[0]
    of_step = np.bincount(at[losing], less[losing], int(at[alone].max()) + 1)
    work, place = points.work[alone], numbered(points.name[alone], points.lane[alone])
    least = np.full(int(place.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, place, work)
    also = np.zeros(len(points), np.int64)
    also[alone] = np.minimum(work - least[place], of_step[at[alone]])
    return (also,)


def with_waits(job: JobGraph, counts: Flags, at: Ints, excess: Callable[[], Ints]) -> tuple[Ints, ...]:
    """Return an excess and the result of `may_wait` for it [ns]; empty where none may wait.

    Args:
        job: the graph.
        counts: whether each point is in a step that counts.
        at: place of its step among those that count.
        excess: returns the time that each point loses [ns], a column as long as the job.
    """
    if not len(job.unmatched):
        return ()
    waits = may_wait(job, counts, at, less := excess())
    return (less, *waits) if waits else ()
