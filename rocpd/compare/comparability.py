"""Says whether two sides compare at all: what differs beside their times, in sentences, and a score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from rocpd.compare.attribution import Attribution
from rocpd.compare.kernel_pairs import MatchLevel
from rocpd.compare.run_profile import PLURALS, RunProfile
from rocpd.frozen import frozen

_OTHER_GPU = 0.6
_OTHER_RECORDING = 0.9
_CLOCK = 0.02  # share by which clocks differ that is worth saying
_SHARED = 0.98  # of the kernel time
_MOST_SETTINGS = 12
_NOT_SET = "not set"
_WEAK = (MatchLevel.NEW, MatchLevel.GONE, MatchLevel.CATEGORY)


class _Difference(NamedTuple):
    """What differs, and what is left of the score for it."""

    text: str
    factor: float = 1.0


@frozen
class Comparability:
    """Whether two sides compare: from 0, not at all, to 1, from what score on they do, and what differs."""

    score: float
    least: float
    sentences: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        """Whether a comparison says anything."""
        return self.score >= self.least


def comparability(
    base: Sequence[RunProfile], new: Sequence[RunProfile], attribution: Attribution, least: float
) -> Comparability:
    """Return whether two sides compare; below the score `least` they do not.

    The score is a product: fewer by more ranks, 0.6 for other GPUs, 0.9 for each kind of event that one side lacks, 0
    for other units, and the smaller share of kernel time in kernels that both sides have.
    """
    differences = [
        *_selections(base, new),
        *_units(base, new),
        *_machines(base, new),
        *_recorded(base, new),
        *_shared(attribution),
    ]
    differences += [*_clocks(base, new), *_settings(_environment(base), _environment(new))]
    score = 1.0
    for each in differences:
        score *= each.factor
    return Comparability(score, least, tuple(each.text for each in differences if each.text))


def _selections(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Iterator[_Difference]:
    parts = [sorted({run.selection or "all of it" for run in side}) for side in (base, new)]
    if parts[0] != parts[1]:
        yield _Difference(f"what counts: {', '.join(parts[0])} and {', '.join(parts[1])}")


def _units(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Iterator[_Difference]:
    kinds = [sorted({run.unit for run in side}) for side in (base, new)]
    if kinds[0] != kinds[1]:
        yield _Difference(f"the base has {PLURALS[kinds[0][0]]} to compare, the other side {PLURALS[kinds[1][0]]}", 0.0)
        return
    for what in ("units", "warm_up"):
        counts = [sorted({getattr(run, what) for run in side}) for side in (base, new)]
        if counts[0] != counts[1]:
            said = PLURALS[kinds[0][0]] + ("" if what == "units" else " of warm-up, left out")
            yield _Difference(f"{said}: {_several(counts[0])} and {_several(counts[1])}")


def _several(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _machines(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Iterator[_Difference]:
    for what in ("ranks", "hosts"):
        counts = [sorted({getattr(run.facts, what) for run in side}) for side in (base, new)]
        if counts[0] != counts[1]:
            factor = min(counts[0][0], counts[1][0]) / max(counts[0][-1], counts[1][-1]) if what == "ranks" else 1.0
            yield _Difference(f"{what}: {_several(counts[0])} and {_several(counts[1])}", factor)
    for what, word, factor in (("gpus", "GPUs", _OTHER_GPU), ("versions", "schema", 1.0), ("commands", "command", 1.0)):
        values = [sorted({value for run in side for value in getattr(run.facts, what)}) for side in (base, new)]
        is_unknown = what == "gpus" and not all(values)
        if values[0] != values[1] and not is_unknown:
            yield _Difference(f"{word}: {', '.join(values[0]) or '-'} and {', '.join(values[1]) or '-'}", factor)


def _recorded(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Iterator[_Difference]:
    kinds = [set.intersection(*(set(run.facts.recorded) for run in side)) for side in (base, new)]
    for name in sorted(kinds[0] ^ kinds[1]):
        side = "the base" if name in kinds[0] else "the other side"
        yield _Difference(f"{name}: recorded on {side} alone", _OTHER_RECORDING)


def _shared(attribution: Attribution) -> Iterator[_Difference]:
    shares = []
    for side in ("base", "new"):
        kernels = [kernel for kernel in attribution.kernels if getattr(kernel.pair, side)]
        computing = [kernel for kernel in kernels if getattr(kernel.pair, side)[0].kind == "compute"]
        total = sum(getattr(kernel, side) for kernel in computing)
        shared = sum(getattr(kernel, side) for kernel in computing if kernel.pair.level not in _WEAK)
        shares.append(shared / total if total else 1.0)
    text = f"kernels that both sides have take {shares[0]:.0%} and {shares[1]:.0%} of the compute time"
    yield _Difference(text if min(shares) < _SHARED else "", min(shares))


def _clocks(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Iterator[_Difference]:
    clocks = [[run.facts.clock_mhz for run in side if run.facts.clock_mhz] for side in (base, new)]
    if not all(clocks):
        return
    first, second = fmean(clocks[0]), fmean(clocks[1])
    if abs(second / first - 1) > _CLOCK:
        yield _Difference(f"clocks of GPUs: {first:.0f} and {second:.0f} MHz, {second / first - 1:+.1%}")


def _environment(runs: Sequence[RunProfile]) -> Mapping[str, str]:
    """Return the settings that all runs of a side share, and those that differ between them as such."""
    names = sorted({name for run in runs for name in run.facts.environment})
    values = {name: {run.facts.environment.get(name, _NOT_SET) for run in runs} for name in names}
    return {name: " or ".join(sorted(some)) for name, some in values.items()}


def _settings(base: Mapping[str, str], new: Mapping[str, str]) -> Iterator[_Difference]:
    changed = [name for name in sorted({*base, *new}) if base.get(name) != new.get(name)]
    for name in changed[:_MOST_SETTINGS]:
        before, after = (side.get(name, _NOT_SET) for side in (base, new))
        yield _Difference(f"{name}: {before} and {after}")
    if len(changed) > _MOST_SETTINGS:
        yield _Difference(f"{len(changed) - _MOST_SETTINGS} more settings of the environment differ")
