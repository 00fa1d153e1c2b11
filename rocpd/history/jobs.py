"""Which runs of a store are of one job: those that `rocpd diff` would compare."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from rocpd.compare.attribution import attribute, pair_kernels, side_of
from rocpd.compare.comparison import OTHER_GPU, OTHER_RECORDING, comparability
from rocpd.compare.options import DiffOptions
from rocpd.history.entry import RunEntry

_LEAST = DiffOptions().least_score
_Kind = tuple[object, ...]


def jobs_of(entries: Iterable[RunEntry]) -> list[tuple[RunEntry, ...]]:
    """Divide runs, in order of time, into jobs; the one with the newest run comes first.

    A run is of the job whose newest run before it is most like it.
    """
    jobs: list[list[RunEntry]] = []
    scores: dict[tuple[_Kind, _Kind], float] = {}
    for entry in entries:
        best: tuple[float, list[RunEntry]] = (0.0, [])
        for job in jobs:
            pair = _kind(job[-1]), _kind(entry)
            if pair not in scores:
                scores[pair] = score(job[-1], entry)
            best = max(best, (scores[pair], job), key=lambda each: each[0])
        if best[0] >= _LEAST:
            best[1].append(entry)
        else:
            jobs.append([entry])
    return [tuple(job) for job in sorted(jobs, key=lambda job: (-job[-1].at, job[-1].run))]


def closest(jobs: Sequence[Sequence[RunEntry]], entry: RunEntry) -> int:
    """Return the number of the job that a run is most like, from 1."""
    scores = [_quick(job[-1], entry) for job in jobs]
    return 1 + scores.index(max(scores))


def score(first: RunEntry, second: RunEntry) -> float:
    """Return how well two runs compare, from 0 to 1: by their first lines, and where these say they do not, in full."""
    quick = _quick(first, second)
    if quick >= _LEAST or first.unit != second.unit:
        return quick
    base, new = [first.profile()], [second.profile()]
    pairs = pair_kernels(base[0].uses, new[0].uses, None)
    return comparability(base, new, attribute(side_of(base), side_of(new), pairs), _LEAST).score


def _quick(first: RunEntry, second: RunEntry) -> float:
    """Return the score of `comparability`, as far as kernels are the same only by name."""
    if (first.unit, first.config.get("what counts")) != (second.unit, second.config.get("what counts")):
        return 0.0
    score = min(first.ranks, second.ranks) / max(first.ranks, second.ranks, 1)
    gpus = [entry.config.get("GPU") for entry in (first, second)]
    score *= OTHER_GPU if all(gpus) and gpus[0] != gpus[1] else 1.0
    score *= OTHER_RECORDING ** len({*first.recorded} ^ {*second.recorded})
    return score * min(_shared(first.compute, second.compute), _shared(second.compute, first.compute))


def _shared(mine: Mapping[str, float], other: Container[str]) -> float:
    total = sum(mine.values())
    return sum(share for name, share in mine.items() if name in other) / total if total else 1.0


def _kind(entry: RunEntry) -> _Kind:
    """Return what scores go by."""
    config = entry.config.get("GPU"), entry.config.get("what counts")
    return entry.unit, entry.ranks, *config, entry.recorded, tuple(sorted(entry.compute))
