"""How much a cause may cost where waits are not known: for partners in communication, or of hosts. Pure arithmetic."""

from __future__ import annotations

import numpy as np

from rocpd.base import Flags, Ints
from rocpd.facts.columns import numbered
from rocpd.facts.timeline import length, union
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
    alone = job.unmatched_in(counts)
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


def at_most(job: JobGraph, counts: Flags, less: Ints) -> float:
    """Return the most by which any path may get shorter once points lose `less`, in all steps together [ns].

    A path is at one point at a time: it loses no more than the union of the times of the points, times the share that
    they lose. Host work and operations are taken apart, for of a late host nearly all goes.

    Args:
        job: the graph.
        counts: whether each point is in a step that counts.
        less: time that each point loses [ns].
    """
    points, most = job.points, 0.0
    losing = (counts & (less > 0)).nonzero()[0]
    for rows in (losing[is_some] for is_some in (points.part[losing] < 0, points.part[losing] >= 0)):
        end, work = points.time[rows].astype(np.int64), points.work[rows].astype(np.int64)
        most += float(less[rows].sum()) / max(1, work.sum()) * length(union(end - work, end))
    return most
