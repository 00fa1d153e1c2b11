"""A rank that ought to be a cause, though no record links its longer computing to the waits of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rocpd.base import Ints, frozen, percent_text
from rocpd.facts.columns import numbered
from rocpd.replay.job import WELL_MATCHED, JobGraph

HIDDEN_HOST = "a host that comes late is not seen: no calls that launch work are recorded"
"""Why nothing is known of hosts where `hides_hosts` holds."""

_LEAST = 0.03  # share of a step by which a rank that ought to be a cause computes longer
_TRIED = 6  # ranks, those that compute longest first
_REGAINED = 0.01  # share of a step below which a gain counts as nothing
_LINKED = 0.1  # share of a rank's excess: if its replay saves as much, records link the two
_FOR_ONE = 0.5  # share of all waiting between ranks that is for such a rank


@frozen
class Denied:
    """A rank that computes longer, and that others wait for or that costs much, but is no cause.

    Args:
        rank: its number.
        longer: share by which it computes longer than others.
        waiting: share of the ranks' waiting in collectives that is spent on it as the last member.
        regains: share of a step that the replay without it saves; 0 where no record links the two.
        most: share of a step that it may cost by communication whose partners are not known; 0: it hardly does.
    """

    rank: int
    longer: float
    waiting: float
    regains: float = 0.0
    most: float = 0.0

    def __str__(self) -> str:
        """Return the rank with its excess, and why nothing more is known."""
        if self.most:
            longer, most = percent_text(self.longer * 100), percent_text(self.most * 100)
            why = "who communicates with whom is known in part only"
            return f"rank {self.rank} computes {longer} longer, and may cost up to {most} of a step: {why}"
        why = (
            f"; without it a step takes {percent_text(self.regains * 100)} less, but steps are too few or too much "
            "alike, or ranks too far apart, to tell that from chance"
            if self.regains
            else ", but no record links the two: it takes calls by which hosts wait for GPUs"
        )
        longer, waiting = percent_text(self.longer * 100), f"{self.waiting * 100:.0f} %"
        return f"rank {self.rank} computes {longer} longer, and {waiting} of the waiting is for it{why}"


def denied(
    job: JobGraph,
    meets: tuple[Ints, Ints],
    longer: Mapping[int, Sequence[float]],
    step_ns: float,
    regains: Callable[[int], tuple[float, float]],
) -> Denied | None:
    """Return the longest-computing rank that is no cause, but is waited for most or would cost much; else None.

    A rank that others wait for, but that costs little by a replay of waits that are known, is not denied.

    Args:
        job: the graph.
        meets: numbers of the points at which members come to collectives, and of those at which these start.
        longer: rank that is no cause -> its extra time of computing per step [ns], and the share that this is.
        step_ns: length of a step [ns].
        regains: returns the share of a step that the replay without a rank saves, and may save if communication whose
            partners are not known waits for it.
    """
    came, meet = meets
    waits = job.points.time[meet] - job.points.time[came]
    if not waits.any():
        return None
    at, last = numbered(meet), (waits == 0).nonzero()[0]
    every, of = np.unique(job.rank_of(came[last]), return_inverse=True)
    for_ranks = dict(zip(every.tolist(), np.bincount(of, np.bincount(at, waits)[at[last]]).tolist(), strict=True))
    for rank in sorted(longer, key=lambda rank: -longer[rank][0])[:_TRIED]:
        (more, share), waiting = longer[rank], for_ranks.get(rank, 0.0) / float(waits.sum())
        if more >= _LEAST * step_ns and (waiting >= _FOR_ONE or len(longer) == len(job.steps)):
            regained, most = regains(rank)
            is_little = job.matched >= WELL_MATCHED and _LINKED * more <= regained * step_ns < _REGAINED * step_ns
            if (waiting >= _FOR_ONE and not is_little) or regained >= _LEAST:
                unknown = most if regained < _REGAINED <= most else 0.0
                return Denied(rank, share, waiting, regained if regained >= _REGAINED else 0.0, unknown)
            if most >= _REGAINED:
                return Denied(rank, share, waiting, most=most)
    return None


def hides_hosts(job: JobGraph, meets: tuple[Ints, Ints], alone: Ints, all_ns: float) -> bool:
    """Whether a host may be late unseen: ranks wait, or may wait, and on some no call that launches is recorded.

    Args:
        job: the graph.
        meets: as for `denied`.
        alone: numbers of the transfers whose partners are not known: they may be waits.
        all_ns: length of all steps; waits of a rank that are less than one in a hundred cost no job more [ns].
    """
    came, meet = meets
    ranks = job.rank_of(np.concatenate([came, alone]))
    waits = np.bincount(ranks, np.append(job.points.time[meet] - job.points.time[came], job.points.work[alone]))
    return bool(waits.max(initial=0) >= _REGAINED * all_ns and not set(ranks.tolist()) <= job.launching)
