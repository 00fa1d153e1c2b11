"""Where kernels spend their time inside: samples of program counters by kernel, source line, instruction and reason.

A share is estimated from samples; its margin is that of 95 % of such estimates.

Reads the samples of program counters of one rank: how often its waves were where in which kernel, and why.

A sample stands for a wave at an instruction. Stochastic samples say whether the wave issued it or waits, and for what;
those of host traps only where it is.

Draws flame graphs of samples of program counters: kernel, source line, instruction, and what the wave waits for.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial, reduce
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Ints, Row
from rocpd.facts.columns import grouped, statement
from rocpd.facts.operations import kernel_texts, timed_columns
from rocpd.facts.pc_sampling import active_lanes
from rocpd.facts.rank import By, Key, RankReading, key_of
from rocpd.schema.rules.events import PC_SAMPLES
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, add, all_added, in_order, merge, most_first, nothing, order_of
from rocpd.summary.host.calls import SAMPLES, FlameProfile, folded_of, labels_of, speedscope_of
from rocpd.summary.reading import RankAnswers, Reading, Tables
from rocpd.summary.result import Field, by_name, table_of

FEWEST = 30
"""Samples of a kernel below which nothing is said of shares in it."""

_KERNEL = Field("kernel", "", "kernel, NULL where the dispatch is not known", is_kernel=True)
_SOURCE = Field("source", "", "source line, NULL where the kernel was compiled without -g")
_INSTRUCTION = Field("instruction", "", "assembly, NULL where it is not known")
_SAMPLES = Field("samples", "", "samples there: waves that were at it")
_SHARE = (
    Field("percent", "%", "share of the samples of the kernel", is_share=True),
    Field("margin_percent", "%", "the share lies within this of percent, 95 times of 100; NULL under 30 samples"),
    Field("time_ns", "ns", "an estimate: that share of the time of the kernel"),
)

_WHY = (
    Field("issued_percent", "%", "of samples that say so: the wave issues its instruction; else it waits", True),
    Field("stall_reason", "", "what waves wait for most"),
    Field("stall_percent", "%", "share of the samples there in which they wait for that"),
    Field("lanes", "", "mean number of lanes that are active", True),
)

TABLES = by_name(
    table_of(
        "hot-spots",
        "Kernels whose program counters were sampled, each with its hottest line and instruction.",
        _KERNEL,
        Field("samples", "", "samples in the kernel", True),
        Field("kernel_time_ns", "ns", "time of its dispatches; NULL where they are not known"),
        *_WHY,
        _SOURCE,
        Field("source_percent", "%", "share of the kernel's samples at that line", is_share=True),
        Field("instruction", "", "assembly, else the offset in the code object; NULL where neither is known"),
        Field("instruction_percent", "%", "share of the kernel's samples at that instruction", is_share=True),
    ),
    table_of(
        "pc-lines",
        "Source lines of kernels by samples of the program counter.",
        _KERNEL,
        _SOURCE,
        _SAMPLES,
        *_SHARE,
        *_WHY,
    ),
    table_of(
        "pc-samples",
        "Instructions of kernels by samples of the program counter.",
        _KERNEL,
        _SOURCE,
        Field("offset", "", "place of the instruction in its code object; NULL where only its text is known", True),
        _INSTRUCTION,
        _SAMPLES,
        *_SHARE,
        *_WHY,
    ),
    table_of(
        "stall-reasons",
        "Why waves of a kernel wait, by samples that say so.",
        _KERNEL,
        Field("stall_reason", "", "what the wave waits for, as rocprofiler-sdk calls it"),
        Field("instruction_type", "", "kind of instruction that was issued instead, NO_INST for none"),
        Field("samples", "", "samples in which waves wait for it"),
        *_SHARE,
    ),
)

_RUN = ("kernel", "agent", "dispatch", "start", "end")
_SAMPLED = "program counters are sampled"
_HOW = "`rocprofv3 --pc-sampling-beta-enabled --pc-sampling-method stochastic --output-format json` records them"


class Spot(NamedTuple):
    """Where in a kernel a wave is; None where it is not known.

    Args:
        source: file and line, such as `a.cpp:3`.
        instruction: assembly.
        offset: of the instruction in its code object [bytes].
    """

    source: str | None
    instruction: str | None
    offset: int | None

    @property
    def shown(self) -> str | None:
        """The instruction, else its offset: files need not hold the assembly.

        >>> Spot(None, None, 72).shown
        'offset 0x48'
        """
        known = isinstance(self.offset, int)
        return self.instruction or (f"offset {self.offset:#x}" if known else None)


_Spots: TypeAlias = dict[Spot, Sums]
"""Spot -> samples; of them those that say whether the wave issues, and of these those in which it does; active lanes of
those that say so, and how many say so; (kind of instruction, why the wave waits) -> samples in which it waits."""


@frozen
class KernelSpots:
    """Samples of a kernel by spot, and the time of its dispatches [ns]."""

    spots: _Spots
    time: int

    @cached_property
    def total(self) -> Sums:
        """Samples of all its spots."""
        return reduce(operator.add, self.spots.values())

    @cached_property
    def lines(self) -> _Spots:
        """Samples by source line."""
        lines: _Spots = {}
        for spot, samples in self.spots.items():
            merge(lines, {Spot(spot.source, None, None): samples})
        return lines


SampledKernels: TypeAlias = dict[Key, dict["str | None", KernelSpots]]
"""Division -> name of the kernel -> its samples."""

_OfRank: TypeAlias = "tuple[dict[Key, dict[tuple[str | None, Spot], Sums]], dict[Key, dict[str | None, int]]]"
"""By division, samples of kernels and their spots, and the time of all dispatches of kernels [ns]."""


def asked(reading: Reading) -> RankAnswers[_OfRank]:
    """Return what ranks have of samples.

    Raises:
        RocpdError: none were taken.
    """
    if not any(base in rank.tables for rank in reading.session.ranks for base in PC_SAMPLES):
        raise nothing(_SAMPLED, _HOW)
    return reading.each(_of_rank)


def sampled_kernels(answers: RankAnswers[_OfRank]) -> SampledKernels:
    """Return the samples of all ranks, of each kernel that has some.

    Raises:
        RocpdError: none were taken.
    """
    samples, times = all_added(answers, 2, _SAMPLED, _HOW)
    sampled: SampledKernels = {}
    for key, spots in samples.items():
        for (name, spot), of_spot in spots.items():
            kernel = KernelSpots({}, times.get(key, {}).get(name, 0))
            sampled.setdefault(key, {}).setdefault(name, kernel).spots[spot] = of_spot
    return sampled


def _of_rank(reading: RankReading) -> _OfRank:
    rows = reading.reader.rows(statement("pc_samples"), (int(reading.options.by is By.DISPATCH),))
    if not rows:
        return {}, {}
    runs = timed_columns(reading, "rocpd_kernel_dispatch", "kernel_runs", _RUN, "kernels")
    ids = np.array([kernel for kernel, *_ in rows if isinstance(kernel, int)], np.int64)
    names = kernel_texts(reading.reader, reading.options.kernel_names, np.concatenate([ids, runs[0]]))
    spots: dict[Key, dict[tuple[str | None, Spot], Sums]] = {}
    for kernel, agent, number, source, instruction, offset, issued, kind, reason, mask, count in rows:
        waits = Counter({(kind, reason): count}) if issued == 0 else Counter()
        lanes = active_lanes(mask) * count if isinstance(mask, int) else 0
        says = count * (issued is not None), count * bool(issued), lanes, count * isinstance(mask, int)
        spot = names.get(kernel), Spot(source, instruction, offset)
        add(spots, _division(reading, agent, number), spot, Sums((count, *says, waits)))
    return spots, _times(reading, runs, names)


def _times(reading: RankReading, runs: list[Ints], names: Mapping[int, str | None]) -> dict[Key, dict[str | None, int]]:
    """Return the time of the dispatches of each kernel."""
    kernel, agent, dispatch, start, end = runs
    lanes = {By.AGENT: agent, By.DISPATCH: dispatch}.get(reading.options.by or By.RANK, np.zeros(len(kernel), np.int64))
    times: dict[Key, dict[str | None, int]] = {}
    for (number, lane), rows in grouped([kernel, lanes]):
        add(times, _division(reading, lane, lane), names.get(number), int((end[rows] - start[rows]).sum()))
    return times


def _division(reading: RankReading, agent: object, dispatch: object) -> Key:
    if reading.options.by is By.DISPATCH:
        return reading.rank.number, dispatch if dispatch != NULL else None
    return key_of(reading.options.by, reading.rank, agent if isinstance(agent, int) else NULL)


def pc_samples(reading: Reading) -> Tables:
    """Return hot spots, lines, instructions and reasons.

    Raises:
        RocpdError: no program counters were sampled.
    """
    yield (answers := asked(reading))
    divisions = sampled_kernels(answers)
    findings = _findings(next(iter(divisions.values()))) if not reading.by else ()
    yield reading.summary(TABLES["hot-spots"], _rows(divisions, _hot_spot), findings=findings)
    yield reading.summary(TABLES["pc-lines"], _rows(divisions, _lines))
    yield reading.summary(TABLES["pc-samples"], _rows(divisions, _instructions))
    yield reading.summary(TABLES["stall-reasons"], _rows(divisions, _reasons))


def _rows(divisions: SampledKernels, rows_of: Callable[[KernelSpots], Iterable[Row]]) -> list[Row]:
    """Return the rows of each kernel, those with most samples first."""
    return [
        (*key, name, *row)
        for key, kernels in in_order(divisions)
        for name, kernel in _by_samples(kernels)
        for row in rows_of(kernel)
    ]


def _by_samples(kernels: Mapping[str | None, KernelSpots]) -> list[tuple[str | None, KernelSpots]]:
    """Return kernels, those with most samples first."""
    return most_first(kernels, lambda kernel: kernel.total[0])


def _in_order(spots: _Spots) -> list[tuple[Spot, Sums]]:
    return most_first(spots, lambda samples: samples[0])


def _hot_spot(kernel: KernelSpots) -> Iterator[Row]:
    (count, *_), (line, at_line), (spot, at_spot) = kernel.total, _in_order(kernel.lines)[0], _in_order(kernel.spots)[0]
    shares = (line.source, 100 * at_line[0] / count, spot.shown, 100 * at_spot[0] / count)
    yield (count, kernel.time or None, *_why(kernel.total), *shares)


def _lines(kernel: KernelSpots) -> Iterator[Row]:
    for spot, samples in _in_order(kernel.lines):
        yield (spot.source, *_share(kernel, samples[0]), *_why(samples))


def _instructions(kernel: KernelSpots) -> Iterator[Row]:
    for spot, samples in _in_order(kernel.spots):
        yield (spot.source, spot.offset, spot.instruction, *_share(kernel, samples[0]), *_why(samples))


def _reasons(kernel: KernelSpots) -> Iterator[Row]:
    *_, reasons = kernel.total
    for (kind, reason), samples in most_first(reasons, lambda samples: samples):
        yield (reason, kind, *_share(kernel, samples))


def _share(kernel: KernelSpots, samples: int) -> Row:
    """Return samples, their share of those of a kernel, its margin, and the time of that share."""
    total = kernel.total[0]
    share = samples / total
    margin = 196 * (share * (1 - share) / total) ** 0.5 if total >= FEWEST else None
    return samples, 100 * share, margin, round(share * kernel.time) if kernel.time else None


def _why(samples: Sums) -> Row:
    """Return the values of `_WHY`."""
    count, judged, issued, lanes, masked, _ = samples
    reason, waits = _top_reason(samples)
    waiting = 100 * waits / count if waits else None
    return 100 * issued / judged if judged else None, reason, waiting, lanes / masked if masked else None


def _by_reason(samples: Sums) -> Counter[str | None]:
    reasons: Counter[str | None] = Counter()
    for (_, reason), count in samples[5].items():
        reasons[reason] += count
    return reasons


def _top_reason(samples: Sums) -> tuple[str | None, int]:
    return next(iter(most_first(_by_reason(samples), lambda count: count)), (None, 0))


def _findings(kernels: Mapping[str | None, KernelSpots]) -> Iterator[Finding]:
    """Say where the kernel with most samples spends its time, or that its samples are too few for that."""
    name, kernel = _by_samples(kernels)[0]
    total = kernel.total[0]
    evidence: dict[str, object] = {"samples": total}
    if total < FEWEST:
        text = f"{name or 'the kernel'} has {total} samples of its program counter: too few to say where its time goes"
        yield Finding(text, "kernel.hot-spot", Verdict.UNKNOWN, evidence=evidence)
        return
    spot, samples = _in_order(kernel.lines)[0]
    if spot.source is None:
        spot, samples = _in_order(kernel.spots)[0]
    _, percent, margin, _ = _share(kernel, samples[0])
    reason, waits = _top_reason(samples)
    where = spot.source or spot.shown or "an instruction that is not known"
    waiting = f", where waves mostly wait for {reason}" if waits * 2 > samples[0] else ""
    text = f"{name or 'the kernel'} spends {percent:.0f} % (±{margin:.0f}) of its time at {where}{waiting}"
    evidence |= {"share_percent": percent, "margin_percent": margin}
    yield Finding(text, "kernel.hot-spot", Verdict.NOTE, Confidence.LIKELY, evidence=evidence)


def _profiles(reading: Reading) -> Iterator[FlameProfile]:
    """Yield the samples of each division by kernel, instruction and reason to wait.

    Raises:
        RocpdError: no program counters were sampled.
    """
    divisions = sampled_kernels(asked(reading))
    for key, kernels in in_order(divisions):
        stacks = [
            ([name or "unknown kernel", *path], samples)
            for name, kernel in _by_samples(kernels)
            for path, samples in _paths(kernel)
        ]
        yield FlameProfile(labels_of(reading, key), SAMPLES, stacks)


folded = partial(folded_of, _profiles)
speedscope = partial(speedscope_of, _profiles, "rocpd pc-samples")


def _paths(kernel: KernelSpots) -> Iterator[tuple[list[str], int]]:
    """Yield the frames below the kernel, and how many samples have them."""
    for spot in sorted(kernel.spots, key=order_of):
        (count, _, issued, *_), frames = (
            kernel.spots[spot],
            [spot.source or "unknown line", spot.shown or "unknown instruction"],
        )
        reasons = {str(reason): samples for reason, samples in _by_reason(kernel.spots[spot]).items()}
        yield from (([*frames, reason], samples) for reason, samples in sorted(reasons.items()))
        if issued:
            yield [*frames, "issued"], issued
        yield frames, count - issued - sum(reasons.values())
