"""The places inside kernels where time goes: samples of program counters by kernel, source line and instruction.

Reads the samples of program counters of each rank. A sample stands for a wave at an instruction. Stochastic samples say
whether the wave issues it or waits, and why; those of host traps only its place. A share is estimated from samples; its
margin holds for 95 % of such estimates. Also draws flame graphs of samples: kernel, source line, instruction, and the
reason of the wait.

Runs with instrumentation, as Omniprobe makes them, show more: memory accesses of kernels per source line (cache lines
needed and touched, bank conflicts, pages, addresses), and time by basic block. Such runs are slow, so their own times
say little: times come from a trace of the same program, which has to dispatch the same kernels in the same order to be
matched; times of blocks follow from their share of ticks. Processes, ids and times do not match.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial, reduce
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from rocpd.base import NULL, Ints, Row, by_key, frozen
from rocpd.base.texts import json_object, json_value
from rocpd.facts.columns import grouped, statement
from rocpd.facts.operations import kernel_texts, numbered_dispatches, timed_columns
from rocpd.facts.pc_sampling import active_lanes
from rocpd.facts.rank import By, Key, RankReading, key_of
from rocpd.schema.rules.events import PC_SAMPLES
from rocpd.schema.rules.kernel_names import without_instrumentation
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Sums, add, added, in_order, merge, most_first, nothing, order_of
from rocpd.summary.host.calls import SAMPLES, FlameProfile, folded_of, labels_of, speedscope_of
from rocpd.summary.reading import RankAnswers, Reading, Tables
from rocpd.summary.result import Field, by_name, table_of

FEWEST = 30
"""Samples of a kernel below which no shares in it are given."""

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
    Field("stall_reason", "", "the most frequent reason why waves wait"),
    Field("stall_percent", "%", "share of the samples there in which they wait for that"),
    Field("lanes", "", "mean number of lanes that are active", True),
)

_LINE = 128  # bytes of a cache line of gfx90a and later
_MEASURED_KERNEL = Field("kernel", "", "kernel, as it is called without instrumentation", is_kernel=True)
_DISPATCHES = Field("dispatches", "", "dispatches in which it was measured", True)

_TIME_DOC = "time of the kernel's measured dispatches in the trace, mean over ranks; NULL without a trace"
_OF_KERNEL = (_MEASURED_KERNEL, Field("kernel_time_ns", "ns", _TIME_DOC))

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
        Field("stall_reason", "", "why the wave waits, as rocprofiler-sdk calls it"),
        Field("instruction_type", "", "kind of instruction that was issued instead, NO_INST for none"),
        Field("samples", "", "samples in which waves wait for it"),
        *_SHARE,
    ),
    table_of(
        "memory-access",
        "Accesses to memory by source line, as Omniprobe's MemoryAnalysis counts them; kernels with most time first.",
        *_OF_KERNEL,
        Field("source", "", "file, line and column"),
        Field("access", "", "read, write or read/write"),
        Field("instruction", "", "instruction; NULL for banks of the LDS", True),
        _DISPATCHES,
        Field("executions", "", "how often waves executed it"),
        Field("bytes", "bytes", "width of the instruction, else of the access in the source", True),
        Field("lines_needed", "", "cache lines that would do for the bytes of all lanes; NULL for banks", True),
        Field("lines_used", "", "cache lines that were touched; NULL for banks", True),
        Field("line_use_percent", "%", "lines_needed by lines_used: 100 where no lane reaches for a line of its own"),
        Field("bank_conflicts", "", "further accesses that banks of the LDS needed; NULL for caches"),
        Field("conflicts_per_execution", "", "bank conflicts by executions"),
    ),
    table_of(
        "memory-pages",
        "Pages of memory by accesses of a kernel, as Omniprobe's Heatmap counts them.",
        *_OF_KERNEL,
        Field("page", "", "first address"),
        Field("bytes", "bytes", "size of the page"),
        _DISPATCHES,
        Field("accesses", "", "accesses to it"),
        Field("percent", "%", "share of the accesses of the kernel", is_share=True),
    ),
    table_of(
        "memory-addresses",
        "Accesses of waves by source line, from the addresses that Omniprobe's AddressLogger wrote.",
        *_OF_KERNEL,
        Field("line", "", "source line"),
        Field("access", "", "read, write or read/write"),
        _DISPATCHES,
        Field("messages", "", "accesses, each of a wave"),
        Field("lanes", "", "mean number of lanes that are active"),
        Field("lines", "", f"mean number of different cache lines of {_LINE} bytes that an access touches"),
    ),
    table_of(
        "basic-blocks",
        "Basic blocks of kernels, as Omniprobe's BasicBlockAnalysis measures them; kernels with most time first.",
        _MEASURED_KERNEL,
        Field(
            "kernel_time_ns", "ns", "time of its measured dispatches in the trace, mean over ranks; NULL without one"
        ),
        Field("source", "", "file, first and last line"),
        _DISPATCHES,
        Field("executions", "", "how often waves ran it"),
        Field("ticks", "", "ticks of the GPU clock in it"),
        Field("percent", "%", "share of the ticks of the kernel", is_share=True),
        Field("time_ns", "ns", "an estimate: that share of the kernel's time"),
        Field("idle_lanes_percent", "%", "lanes that did not take part (branchiness), mean over executions"),
        Field("instructions", "", "its most frequent instructions, with how often each stands in it"),
    ),
)

_RUN = ("kernel", "agent", "dispatch", "start", "end")
_SAMPLED = "program counters are sampled"
_HOW = "`rocprofv3 --pc-sampling-beta-enabled --pc-sampling-method stochastic --output-format json` records them"


class Spot(NamedTuple):
    """The place of a wave in a kernel; None where it is not known.

    Args:
        source: file and line, such as `a.cpp:3`.
        instruction: assembly.
        offset: offset of the instruction in its code object [bytes].
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
"""Spot -> number of samples; of those with a state, and of those that issue; sum of active lanes, and number of samples
that have it; (kind of instruction, reason of the wait) -> samples that wait."""


@frozen
class KernelSpots:
    """Samples of a kernel by spot, and the time of its dispatches [ns]."""

    spots: _Spots
    time: int

    @cached_property
    def total(self) -> Sums:
        """The samples of all its spots."""
        return reduce(operator.add, self.spots.values())

    @cached_property
    def lines(self) -> _Spots:
        """The samples by source line."""
        lines: _Spots = {}
        for spot, samples in self.spots.items():
            merge(lines, {Spot(spot.source, None, None): samples})
        return lines


SampledKernels: TypeAlias = dict[Key, dict["str | None", KernelSpots]]
"""Division -> name of the kernel -> its samples."""

_OfRank: TypeAlias = "tuple[dict[Key, dict[tuple[str | None, Spot], Sums]], dict[Key, dict[str | None, int]]]"
"""By division, samples of kernels and their spots; and the time of all dispatches of kernels [ns]."""


def asked(reading: Reading) -> RankAnswers[_OfRank]:
    """Return the answers of ranks with their samples.

    Raises:
        RocpdError: no samples were taken.
    """
    if not any(base in rank.tables for rank in reading.session.ranks for base in PC_SAMPLES):
        raise nothing(_SAMPLED, _HOW)
    return reading.each(_of_rank)


def sampled_kernels(answers: RankAnswers[_OfRank]) -> SampledKernels:
    """Return the samples of all ranks, for each kernel that has some.

    Raises:
        RocpdError: no samples were taken.
    """
    samples, times = added(answers, _SAMPLED, _HOW)
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
        lane = number if reading.options.by is By.DISPATCH else agent
        key = key_of(reading.options.by, reading.rank, lane if isinstance(lane, int) else NULL)
        add(spots, key, spot, Sums((count, *says, waits)))
    return spots, _times(reading, runs, names)


def _times(reading: RankReading, runs: list[Ints], names: Mapping[int, str | None]) -> dict[Key, dict[str | None, int]]:
    """Return the time of the dispatches of each kernel [ns]."""
    (kernel, agent, dispatch, start, end), by = runs, reading.options.by
    lanes = dispatch if by is By.DISPATCH else agent if by is By.AGENT else np.zeros(len(kernel), np.int64)
    times: dict[Key, dict[str | None, int]] = {}
    for (number, lane), rows in grouped([kernel, lanes]):
        add(times, key_of(by, reading.rank, lane), names.get(number), int((end[rows] - start[rows]).sum()))
    return times


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
    """Return samples, their share of the kernel's [%], its margin [%], and the time of that share [ns]."""
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
    """Yield a sentence on where the kernel with most samples spends its time, or that they are too few to know."""
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
    for key, kernels in in_order(sampled_kernels(asked(reading))):
        stacks = [
            ([name or "unknown kernel", *path], samples)
            for name, kernel in _by_samples(kernels)
            for path, samples in _paths(kernel)
        ]
        yield FlameProfile(labels_of(reading, key), SAMPLES, stacks)


folded = partial(folded_of, _profiles)
speedscope = partial(speedscope_of, _profiles, "rocpd pc-samples")


def _paths(kernel: KernelSpots) -> Iterator[tuple[list[str], int]]:
    """Yield the frames below the kernel, and the number of samples that have them."""
    for spot in sorted(kernel.spots, key=order_of):
        count, _, issued, *_ = kernel.spots[spot]
        frames = [spot.source or "unknown line", spot.shown or "unknown instruction"]
        reasons = {str(reason): samples for reason, samples in _by_reason(kernel.spots[spot]).items()}
        yield from (([*frames, reason], samples) for reason, samples in sorted(reasons.items()))
        if issued:
            yield [*frames, "issued"], issued
        yield frames, count - issued - sum(reasons.values())


_SOURCES = {
    "memory-access": ("rocpd_memory_access", "memory_accesses"),
    "memory-pages": ("rocpd_memory_page", "memory_pages"),
    "memory-addresses": ("rocpd_memory_message", "memory_messages"),
    "basic-blocks": ("rocpd_basic_block", "basic_blocks"),
}
"""Table -> table of a file, and name of the statement that reads it."""

_MOST = 3  # mnemonics that are shown


KernelDispatch: TypeAlias = tuple[str, int]
"""Name of a kernel, and the number of its dispatch, from 1."""


@frozen
class Instrumented:
    """Values measured by instrumentation, with the dispatches they are from, and the times of these in the trace.

    Args:
        rows: kernel, ordinal and measured values.
        times: of dispatches in the trace: number of ranks in which it passes window and filters, number of these with
            valid times, and the sum of these times [ns].
    """

    rows: list[Row]
    times: Mapping[KernelDispatch, Sums]

    def kernel_times(self) -> dict[str, int | None]:
        """Return kernel -> time of its measured dispatches in the trace, mean over ranks [ns]; None without one."""
        times: dict[str, int | None] = {}
        for kernel, ordinal in dict.fromkeys(map(_dispatch, self.rows)):
            _, timed, time = self.times.get((kernel, ordinal), (0, 0, 0))
            known = times.setdefault(kernel, None)
            if timed:
                times[kernel] = (known or 0) + round(time / timed)
        return times


def _instrumented(reading: Reading, table: str, select: str) -> Instrumented:
    """Return the values that instrumentation measured on all ranks, with the times of the dispatches.

    Args:
        reading: the job: files of Omniprobe, and traces of the same program.
        table: the table that holds them.
        select: name of the statement; its first columns are kernel and ordinal.
    """
    if not any(table in rank.tables for rank in reading.session.ranks):
        return Instrumented([], {})
    rows = [row for _, of_rank in reading.each(partial(_rows_of_table, select=select)) for row in of_rank]
    kernels = frozenset(kernel for kernel, _ in map(_dispatch, rows))
    times: dict[KernelDispatch, Sums] = {}
    for _, of_rank in reading.each(partial(_times_of_kernels, kernels=kernels)) if rows else ():
        merge(times, of_rank)
    # A dispatch that is in no trace passes window and filters.
    return Instrumented([row for row in rows if times.get(_dispatch(row), (1,))[0]], times)


def _dispatch(row: Row) -> KernelDispatch:
    return cast("KernelDispatch", row[:2])


def _rows_of_table(reading: RankReading, select: str) -> list[Row]:
    rows = reading.reader.rows(statement(select))
    return [row for row in rows if isinstance(row[0], str) and isinstance(row[1], int)]


def _times_of_kernels(reading: RankReading, kernels: frozenset[str]) -> dict[KernelDispatch, Sums]:
    """Return the dispatches of kernels with their times; a merged window lacks the numbers of dispatches."""
    if reading.rank.window:
        return {}
    numbers: Counter[str] = Counter()
    times: dict[KernelDispatch, Sums] = {}
    kernel_of = cache(lambda name: without_instrumentation(name or ""))
    for name, counted in numbered_dispatches(reading):
        kernel = kernel_of(name)
        if kernel in kernels:
            numbers[kernel] += 1
            start, end = counted or (NULL, NULL)
            is_timed = 0 < start <= end
            times[kernel, numbers[kernel]] = Sums((int(counted is not None), int(is_timed), (end - start) * is_timed))
    return times


def _known_sum(values: Iterable[object]) -> int | None:
    """Return the sum of the whole numbers among values; None if there are no such numbers."""
    numbers = [value for value in values if isinstance(value, int)]
    return sum(numbers) if numbers else None


def memory_access(reading: Reading) -> Tables:
    """Return accesses by source line, pages and addresses.

    Raises:
        RocpdError: no accesses were measured.
    """
    tables = ("memory-access", "memory-pages", "memory-addresses")
    return _tables(reading, tables, "accesses to memory", "MemoryAnalysis")


def basic_blocks(reading: Reading) -> Tables:
    """Return basic blocks.

    Raises:
        RocpdError: none were measured.
    """
    return _tables(reading, ("basic-blocks",), "basic blocks", "BasicBlockAnalysis")


def _tables(reading: Reading, names: Iterable[str], what: str, analysis: str) -> Tables:
    measured = {name: _instrumented(reading, *_SOURCES[name]) for name in names}
    if not any(instrumented.rows for instrumented in measured.values()):
        how = f"Omniprobe measures them: `omniprobe -i -a {analysis} -- ./app`, LOGDUR_LOG_FORMAT=json"
        raise nothing(f"{what} are measured", how)
    for each in measured.values():
        if missing := sorted({kernel for kernel, _ in {*map(_dispatch, each.rows)} - each.times.keys()}):
            shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
            reading.session.note(f"no time of {shown}: open a trace of the same program with it")
    for name, instrumented in measured.items():
        if instrumented.rows:
            yield reading.summary(TABLES[name], _PLACES[name].rows(instrumented))


_Rows: TypeAlias = Sequence[Row]


@frozen
class _Places:
    """The way in which measured values become a table.

    Args:
        until: places in a kernel are distinguished by the columns from the third up to this one.
        cells: returns the columns of a place after kernel and time, from its name, its rows, and the result of `whole`.
        order: returns the sort key of a row within its kernel.
        whole: returns, from all rows of a kernel and its time, the total that the places share.
    """

    until: int
    cells: Callable[[Row, _Rows, Any], Row]
    order: Callable[[Row], Row]
    whole: Callable[[_Rows, int | None], Any] = lambda _rows_of_table, _time: None

    def rows(self, measured: Instrumented) -> list[Row]:
        """Return the rows of the table, the kernels with most time first."""
        times = measured.kernel_times()
        rows: list[Row] = []
        for kernel, of_kernel in by_key((str(row[0]), row) for row in measured.rows).items():
            whole = self.whole(of_kernel, times[kernel])
            places = by_key((row[2 : self.until], row) for row in of_kernel)
            rows += ((kernel, times[kernel], *self.cells(place, group, whole)) for place, group in places.items())
        return sorted(rows, key=lambda row: (-(row[1] or 0), row[0], *self.order(row)))


def _access(place: Row, group: _Rows, _whole: None) -> Row:
    file, line, column, access, instruction, _ = place
    executions, needed, used, conflicts = (_known_sum(row[at] for row in group) for at in (8, 11, 12, 13))
    width = next((row[at] for row in group for at in (10, 9) if isinstance(row[at], int)), None)
    use = 100 * needed / used if used and needed is not None else None
    of_each = conflicts / executions if executions and conflicts is not None else None
    counts = (_dispatches(group), executions, width, needed, used, use, conflicts, of_each)
    return _source(file, line, column), access, instruction, *counts


def _page(place: Row, group: _Rows, whole: int | None) -> Row:
    start, end = place
    accesses = _known_sum(row[4] for row in group)
    share = 100 * accesses / whole if accesses is not None and whole else None
    size = end - start if isinstance(start, int) and isinstance(end, int) else None
    return hex(start) if isinstance(start, int) else None, size, _dispatches(group), accesses, share


def _address(place: Row, group: _Rows, _whole: None) -> Row:
    lanes = [row[4] for row in group if isinstance(row[4], int)]
    lines = [len({address // _LINE for address in each}) for each in map(_listed, group) if each]
    return *place, _dispatches(group), len(group), *(sum(some) / len(some) if some else None for some in (lanes, lines))


def _listed(row: Row) -> list[int]:
    """Return the addresses of a message."""
    addresses = json_value(row[5])
    return [each for each in addresses if isinstance(each, int)] if isinstance(addresses, list) else []


def _dispatches(group: _Rows) -> int:
    return len({row[1] for row in group})


def _source(file: object, line: object, column: object) -> str | None:
    """Return a place in the form that compilers print.

    >>> _source("a.cpp", 3, 7), _source("a.cpp", None, None), _source(None, None, None)
    ('a.cpp:3:7', 'a.cpp', None)
    """
    return ":".join(str(part) for part in (file, line, column) if part is not None) or None


def _block(place: Row, group: _Rows, whole: tuple[float | None, int | None]) -> Row:
    ticks, (of_kernel, time) = _ticks(group), whole
    share = ticks / of_kernel if ticks is not None and of_kernel else None
    estimate = round(share * time) if share is not None and time is not None else None
    counts = _dispatches(group), _known_sum(row[6] for row in group), ticks, None if share is None else 100 * share
    return _lines_of(*place), *counts, estimate, _idle_lanes(group), _mnemonics(group)


def _ticks(group: _Rows) -> float | None:
    known = [float(row[5]) for row in group if isinstance(row[5], int | float)]
    return sum(known) if known else None


def _idle_lanes(group: _Rows) -> float | None:
    known = [(row[7], row[6]) for row in group if isinstance(row[7], int | float) and isinstance(row[6], int)]
    executions = sum(count for _, count in known)
    return 100 * sum(float(share) * count for share, count in known) / executions if executions else None


def _mnemonics(group: _Rows) -> str | None:
    """Return the most frequent instructions of a block; they are the same in each dispatch."""
    recorded = json_object(group[0][8]) or {}
    counts = {name: count for name, count in recorded.items() if isinstance(count, int)}
    most = sorted(counts, key=lambda name: (-counts[name], name))[:_MOST]
    return ", ".join(f"{counts[name]} {name}" for name in most) or None


def _lines_of(file: object, first: object, last: object) -> str | None:
    """Return a range of lines in the form that editors show.

    >>> _lines_of("a.cpp", 3, 7), _lines_of(None, 3, 3), _lines_of(None, None, None)
    ('a.cpp:3-7', '3', None)
    """
    lines = "-".join(dict.fromkeys(str(line) for line in (first, last) if line is not None))
    return ":".join(part for part in (str(file) if file is not None else "", lines) if part) or None


_PLACES = {
    "memory-access": _Places(
        8, _access, lambda row: ((row[8] or 0) - (row[9] or 0) - (row[11] or 0), order_of(row[2:5]))
    ),
    "memory-pages": _Places(
        4, _page, lambda row: (-(row[5] or 0), order_of(row[2:3])), lambda rows, _: _known_sum(row[4] for row in rows)
    ),
    "memory-addresses": _Places(4, _address, lambda row: (-row[5], order_of(row[2:4]))),
    "basic-blocks": _Places(
        5, _block, lambda row: (-(row[5] or 0), order_of(row[2:3])), lambda rows, time: (_ticks(rows), time)
    ),
}
