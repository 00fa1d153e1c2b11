"""Where kernels spend their time inside: samples of program counters by kernel, source line, instruction and reason.

A share is estimated from samples; its margin is that of 95 % of such estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.reading import Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.sampled_kernels import KernelSpots, SampledKernels, Spot, SpotSamples, sampled_kernels
from rocpd.summary.sums import merge
from rocpd.types import Row

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
    TableDefinition(
        "hot-spots",
        "Kernels whose program counters were sampled, each with its hottest line and instruction.",
        (
            _KERNEL,
            Field("samples", "", "samples in the kernel", True),
            Field("kernel_time_ns", "ns", "time of its dispatches; NULL where they are not known"),
            *_WHY,
            _SOURCE,
            Field("source_percent", "%", "share of the kernel's samples at that line", is_share=True),
            Field("instruction", "", "assembly, else the offset in the code object; NULL where neither is known"),
            Field("instruction_percent", "%", "share of the kernel's samples at that instruction", is_share=True),
        ),
    ),
    TableDefinition(
        "pc-lines",
        "Source lines of kernels by samples of the program counter.",
        (_KERNEL, _SOURCE, _SAMPLES, _PERCENT, _MARGIN, _TIME, *_WHY),
    ),
    TableDefinition(
        "pc-samples",
        "Instructions of kernels by samples of the program counter.",
        (
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
    ),
    TableDefinition(
        "stall-reasons",
        "Why waves of a kernel wait, by samples that say so.",
        (
            _KERNEL,
            Field("stall_reason", "", "what the wave waits for, as rocprofiler-sdk calls it"),
            Field("instruction_type", "", "kind of instruction that was issued instead, NO_INST for none"),
            Field("samples", "", "samples in which waves wait for it"),
            _PERCENT,
            _MARGIN,
            _TIME,
        ),
    ),
)


def pc_samples(reading: Reading) -> Iterator[Summary]:
    """Return hot spots, lines, instructions and reasons.

    Raises:
        RocpdError: no program counters were sampled.
    """
    divisions = sampled_kernels(reading)
    findings = _findings(next(iter(divisions.values()))) if not reading.by else ()
    yield reading.summary(TABLES["hot-spots"], _rows(divisions, _hot_spot), findings=findings)
    yield reading.summary(TABLES["pc-lines"], _rows(divisions, _lines))
    yield reading.summary(TABLES["pc-samples"], _rows(divisions, _instructions))
    yield reading.summary(TABLES["stall-reasons"], _rows(divisions, _reasons))


def _rows(divisions: SampledKernels, rows_of: Callable[[KernelSpots], Iterable[Row]]) -> list[Row]:
    """Return the rows of each kernel, those with most samples first."""
    return [
        (*key, name, *row)
        for key in sorted(divisions, key=order_of)
        for name, kernel in by_samples(divisions[key])
        for row in rows_of(kernel)
    ]


def by_samples(kernels: Mapping[str | None, KernelSpots]) -> list[tuple[str | None, KernelSpots]]:
    """Return kernels, those with most samples first."""
    return sorted(kernels.items(), key=lambda item: (-item[1].total.samples, order_of([item[0]])))


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
    return sorted(spots.items(), key=lambda item: (-item[1].samples, order_of(item[0])))


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
