"""How much longer communication may take for a cause where its partners are not known. Pure arithmetic."""

from __future__ import annotations

import numpy as np

from rocpd.base import Flags, Ints
from rocpd.facts.columns import numbered
from rocpd.replay.job import JobGraph
from rocpd.replay.points import Point


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
    alone = (counts & (points.kind == Point.TRANSFER) & (job.link < 0)).nonzero()[0]
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
