"""Where kernels spend their time inside: samples of program counters by kernel, source line, instruction and reason.

A share is estimated from samples; its margin is that of 95 % of such estimates.

Reads the samples of program counters of one rank: how often its waves were where in which kernel, and why.

A sample stands for a wave at an instruction. Stochastic samples say whether the wave issued it or waits, and for what;
those of host traps only where it is.

Owns flame graphs of samples of program counters: kernel, source line, instruction, and what the wave waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property, partial
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
from rocpd.summary.grouping import Total, add, all_added, in_order, merge, most_first, nothing, order_of
from rocpd.summary.host.flame import SAMPLES, FlameProfile, folded_of, labels_of, speedscope_of
from rocpd.summary.reading import RankAnswers, Reading, Tables
from rocpd.summary.result import Field, by_name, table_of

FEWEST = 30
"""Samples of a kernel below which nothing is said of shares in it."""

_KERNEL = Field("kernel", "", "kernel, NULL where the dispatch is not known", is_kernel=True)
_SOURCE = Field("source", "", "source line, NULL where the kernel was compiled without -g")
_INSTRUCTION = Field("instruction", "", "assembly, NULL where it is not known")
_SAMPLES = Field("samples", "", "samples there: waves that were at it")
_PERCENT = Field("percent", "%", "share of the samples of the kernel", is_share=True)
_MARGIN = Field("margin_percent", "%", "the share lies within this of percent, 95 times of 100; NULL under 30 samples")
_TIME = Field("time_ns", "ns", "an estimate: that share of the time of the kernel")

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
        _PERCENT,
        _MARGIN,
        _TIME,
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
        _PERCENT,
        _MARGIN,
        _TIME,
        *_WHY,
    ),
    table_of(
        "stall-reasons",
        "Why waves of a kernel wait, by samples that say so.",
        _KERNEL,
        Field("stall_reason", "", "what the wave waits for, as rocprofiler-sdk calls it"),
        Field("instruction_type", "", "kind of instruction that was issued instead, NO_INST for none"),
        Field("samples", "", "samples in which waves wait for it"),
        _PERCENT,
        _MARGIN,
        _TIME,
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


@frozen
class SpotSamples(Total):
    """Samples of a spot, or of several; two of them add up.

    Args:
        samples: how many.
        judged: of them, those that say whether the wave issues.
        issued: of these, those in which it does.
        lanes: active lanes of those that say so.
        masked: how many say so.
        reasons: (kind of instruction, why the wave waits) -> samples in which it waits.
    """

    samples: int = 0
    judged: int = 0
    issued: int = 0
    lanes: int = 0
    masked: int = 0
    reasons: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)


@frozen
class KernelSpots:
    """Samples of a kernel by spot, and the time of its dispatches [ns]."""

    spots: dict[Spot, SpotSamples]
    time: int

    @cached_property
    def total(self) -> SpotSamples:
        """Samples of all its spots."""
        return sum(self.spots.values(), SpotSamples())


SampledKernels: TypeAlias = dict[Key, dict["str | None", KernelSpots]]
"""Division -> name of the kernel -> its samples."""

_OfRank: TypeAlias = "tuple[dict[Key, dict[tuple[str | None, Spot], SpotSamples]], dict[Key, dict[str | None, int]]]"
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
    samples, times = all_added(answers, 2)
    if not samples:
        raise nothing(_SAMPLED, _HOW)
    sampled: SampledKernels = {}
    for key, spots in samples.items():
        kernels = sampled.setdefault(key, {})
        for (name, spot), of_spot in spots.items():
            if name not in kernels:
                kernels[name] = KernelSpots({}, times.get(key, {}).get(name, 0))
            kernels[name].spots[spot] = of_spot
    return sampled


def _of_rank(reading: RankReading) -> _OfRank:
    rows = reading.reader.rows(statement("pc_samples"), (int(reading.options.by is By.DISPATCH),))
    if not rows:
        return {}, {}
    runs = timed_columns(reading, "rocpd_kernel_dispatch", "kernel_runs", _RUN, "kernels")
    ids = np.array([kernel for kernel, *_ in rows if isinstance(kernel, int)], np.int64)
    names = kernel_texts(reading.reader, reading.options.kernel_names, np.concatenate([ids, runs[0]]))
    spots: dict[Key, dict[tuple[str | None, Spot], SpotSamples]] = {}
    for kernel, agent, number, source, instruction, offset, issued, kind, reason, mask, count in rows:
        waits = Counter({(kind, reason): count}) if issued == 0 else Counter()
        lanes = active_lanes(mask) * count if isinstance(mask, int) else 0
        samples = SpotSamples(
            count, count * (issued is not None), count * bool(issued), lanes, count * isinstance(mask, int), waits
        )
        spot = names.get(kernel), Spot(source, instruction, offset)
        add(spots, _division(reading, agent, number), spot, samples)
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
        for name, kernel in by_samples(kernels)
        for row in rows_of(kernel)
    ]


def by_samples(kernels: Mapping[str | None, KernelSpots]) -> list[tuple[str | None, KernelSpots]]:
    """Return kernels, those with most samples first."""
    return most_first(kernels, lambda kernel: kernel.total.samples)


def _hot_spot(kernel: KernelSpots) -> Iterator[Row]:
    total = kernel.total
    (source, *_), of_source = _most(_by_source(kernel))
    spot, of_spot = _most(kernel.spots)
    shares = (100 * each.samples / total.samples for each in (of_source, of_spot))
    at_line, at_instruction = shares
    why = _why(total)
    yield (total.samples, kernel.time or None, *why, source, at_line, spot.shown, at_instruction)


def _lines(kernel: KernelSpots) -> Iterator[Row]:
    for spot, samples in _in_order(_by_source(kernel)):
        yield (spot.source, *_share(kernel, samples.samples), *_why(samples))


def _instructions(kernel: KernelSpots) -> Iterator[Row]:
    for spot, samples in _in_order(kernel.spots):
        where = (spot.source, spot.offset, spot.instruction)
        yield (*where, *_share(kernel, samples.samples), *_why(samples))


def _reasons(kernel: KernelSpots) -> Iterator[Row]:
    reasons = kernel.total.reasons
    for kind, reason in sorted(reasons, key=lambda pair: (-reasons[pair], order_of(pair))):
        yield (reason, kind, *_share(kernel, reasons[kind, reason]))


def _by_source(kernel: KernelSpots) -> dict[Spot, SpotSamples]:
    lines: dict[Spot, SpotSamples] = {}
    for spot, samples in kernel.spots.items():
        merge(lines, {Spot(spot.source, None, None): samples})
    return lines


def _in_order(spots: Mapping[Spot, SpotSamples]) -> list[tuple[Spot, SpotSamples]]:
    return most_first(spots, lambda samples: samples.samples)


def _most(spots: Mapping[Spot, SpotSamples]) -> tuple[Spot, SpotSamples]:
    return _in_order(spots)[0]


def _share(kernel: KernelSpots, samples: int) -> Row:
    """Return samples, their share of those of a kernel, its margin, and the time of that share."""
    total = kernel.total.samples
    share = samples / total
    margin = 196 * (share * (1 - share) / total) ** 0.5 if total >= FEWEST else None
    return samples, 100 * share, margin, round(share * kernel.time) if kernel.time else None


def _why(samples: SpotSamples) -> Row:
    """Return the values of `_WHY`."""
    issued = 100 * samples.issued / samples.judged if samples.judged else None
    reason, waits = _top_reason(samples)
    percent = 100 * waits / samples.samples if waits else None
    return issued, reason, percent, samples.lanes / samples.masked if samples.masked else None


def _top_reason(samples: SpotSamples) -> tuple[str | None, int]:
    by_reason: dict[str | None, int] = {}
    for (_, reason), count in samples.reasons.items():
        by_reason[reason] = by_reason.get(reason, 0) + count
    return min(by_reason.items(), key=lambda item: (-item[1], order_of([item[0]])), default=(None, 0))


def _findings(kernels: Mapping[str | None, KernelSpots]) -> Iterator[Finding]:
    """Say where the kernel with most samples spends its time, or that its samples are too few for that."""
    name, kernel = by_samples(kernels)[0]
    total = kernel.total.samples
    evidence: dict[str, object] = {"samples": total}
    if total < FEWEST:
        text = f"{name or 'the kernel'} has {total} samples of its program counter: too few to say where its time goes"
        yield Finding(text, "kernel.hot-spot", Verdict.UNKNOWN, evidence=evidence)
        return
    spot, samples = _most(_by_source(kernel))
    if spot.source is None:
        spot, samples = _most(kernel.spots)
    _, percent, margin, _ = _share(kernel, samples.samples)
    reason, waits = _top_reason(samples)
    where = spot.source or spot.shown or "an instruction that is not known"
    waiting = f", where waves mostly wait for {reason}" if waits * 2 > samples.samples else ""
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
            for name, kernel in by_samples(kernels)
            for path, samples in _paths(kernel)
        ]
        yield FlameProfile(labels_of(reading, key), SAMPLES, stacks)


folded = partial(folded_of, _profiles)
speedscope = partial(speedscope_of, _profiles, "rocpd pc-samples")


def _paths(kernel: KernelSpots) -> Iterator[tuple[list[str], int]]:
    """Yield the frames below the kernel, and how many samples have them."""
    for spot in sorted(kernel.spots, key=order_of):
        samples = kernel.spots[spot]
        frames = [spot.source or "unknown line", spot.shown or "unknown instruction"]
        by_reason: dict[str, int] = {}
        for (_, reason), count in samples.reasons.items():
            by_reason[str(reason)] = by_reason.get(str(reason), 0) + count
        yield from (([*frames, reason], count) for reason, count in sorted(by_reason.items()))
        if samples.issued:
            yield [*frames, "issued"], samples.issued
        yield frames, samples.samples - samples.issued - sum(by_reason.values())
