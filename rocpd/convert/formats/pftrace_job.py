"""The steps of the job in a Perfetto trace: above the ranks, from what each of them says of its own steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocpd.convert.gather.steps import CATEGORY
from rocpd.convert.model import Annotation, Counters, RankEvents, Slices, Track, TrackKind
from rocpd.facts.regions import Steps

_NS_PER_MS = 1_000_000


def job_steps(ranks: Sequence[Steps]) -> RankEvents | None:
    """Return the steps of the job with the time of each as a counter; None where only one rank or none has steps.

    A step of the job lasts from its first start on a rank to its last end on one. Where ranks are apart it is shown
    until the next one starts: the counter has the true time.
    """
    if sum(map(bool, ranks)) < 2:
        return None
    times: dict[int, tuple[int, int]] = {}
    for number, (start, end) in (step for of_rank in ranks for step in of_rank.items()):
        first, last = times.get(number, (start, end))
        times[number] = min(first, start), max(last, end)
    numbers = sorted(times, key=times.__getitem__)
    start, end = np.array([times[number] for number in numbers], np.int64).T
    events = RankEvents(-1, f"job · {len(ranks)} ranks", "steps, each from its first start to its last end on any rank")
    track = np.full(len(start), events.tracks.index("steps", lambda: Track("steps", TrackKind.GPU_TIME, nests=True)))
    name = np.array([events.names.code(f"step {number}") for number in numbers], np.int64)
    until = np.minimum(end, np.append(start[1:], end[-1:]))
    duration = Annotation("duration_ms", (end - start) / _NS_PER_MS)
    steps = Slices.calculated(track, (start, until), name, events.categories.code(CATEGORY), annotations=(duration,))
    events.slices = [steps]
    counter = events.tracks.index("time", lambda: Track("step time", TrackKind.COUNTER, unit="ms"))
    points = np.append(start, end[-1]), np.append((end - start) / _NS_PER_MS, 0.0)
    events.counters = [Counters(np.full(len(start) + 1, counter), *points)]
    return events
