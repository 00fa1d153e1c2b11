"""What was sampled while the job ran: clocks, power, temperature, memory of GPUs and processes.

Whether kernels take longer while the clock of their GPU is lower: rank correlation of durations and samples.

What was sampled of a GPU while each kernel ran on it: power, clock, temperature; and the energy that kernels took.

A sample stands for the time until the next one, in which many kernels may run: means weigh each by how long the kernel
ran in it. Energy counts where one kernel took most of that time.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.types import NULL, Floats, Ints, Row
from rocpd.facts.columns import as_text, columns, group_rows, grouped, number, statement
from rocpd.facts.operations import kernel_texts
from rocpd.facts.rank import Key, RankReading
from rocpd.facts.regions import read_ranges
from rocpd.facts.sampled import adds_up, is_sentinel, meant_unit
from rocpd.facts.timeline import Union, covered, union
from rocpd.facts.units import Times, of_steps
from rocpd.schema.rules.events import valid_times
from rocpd.schema.rules.steps import is_step, step_times
from rocpd.summary.grouping import Total, add, added, in_order, most_first, order_of, rows_of
from rocpd.summary.reading import AGENT, RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, TableDefinition, by_name

CLOCK = re.compile(r"gfx.?clock|gfxclk|sclk", re.IGNORECASE)
"""Names of what samples the clock of the compute units."""

_MOST = 0.5  # of the time for which a sample stands: then its power is that of the kernel
_RUN = ("name", "agent", "start", "end")

TABLES = by_name(
    TableDefinition(
        "samples",
        "Sampled values of each rank and agent: in its steps without warm-up, where steps are marked.",
        (
            RANK,
            AGENT,
            Field("name", "", "what was sampled"),
            Field("units", "", "its unit"),
            Field("samples", "", "how many", True),
            Field("mean", "", "mean of the values"),
            Field("min", "", "smallest"),
            Field("median", "", "median", True),
            Field("max", "", "largest"),
            Field("mean_over_time", "", "each value by how long it holds: to its recorded end, else to the next one"),
            Field("left_out", "", "values that stand for none, such as 65535 W", True),
            Field("rho", "", "of clocks: Spearman's correlation with the time of the hottest kernel on one grid", True),
            Field("rho_samples", "", "samples in which that kernel ran", True),
        ),
    ),
    TableDefinition(
        "step-samples",
        "Sampled values in each step, each by how much of the step it holds.",
        (
            Field("step", "", "number of the step"),
            RANK,
            AGENT,
            Field("name", "", "what was sampled"),
            Field("units", "", "its unit"),
            Field("mean_over_time", "", "mean over the time of the step in which a value is known"),
            Field("energy_j", "J", "of power: energy in that time"),
            Field("known_percent", "%", "share of the step that this time is", True),
        ),
    ),
    TableDefinition(
        "kernel-samples",
        "What was sampled of the GPU while a kernel ran on it: in steps without warm-up, where steps are marked.",
        (
            Field("kernel", "", "kernel", is_kernel=True),
            Field("name", "", "what was sampled"),
            Field("units", "", "its unit"),
            Field("mean", "", "mean over the time of the kernel, each value as long as it holds"),
            Field("time_ns", "ns", "time of the kernel for which a sample stands"),
            Field("energy_j", "J", "of power: energy in that part of the time in which the kernel takes most of it"),
            Field("energy_percent", "%", "share of its time that this part is", True),
        ),
    ),
)

_COLUMNS = ("agent", "name", "grid_size_x", "grid_size_y", "grid_size_z", "start", "end")


class ClockEffect(NamedTuple):
    """How durations go with the clock.

    Args:
        rho: Spearman's rank correlation of the median duration of the hottest kernel on its most common grid with the
            clock, sample by sample: -1: it always takes longer when the clock is lower.
        samples: of the clock in which the kernel ran.
    """

    rho: float
    samples: int


def clock_effects(reading: RankReading, clocks: Mapping[int, tuple[Ints, Floats]]) -> dict[int, ClockEffect]:
    """Return agent -> how its hottest kernel goes with its clock, where both change.

    Args:
        reading: reads the rank.
        clocks: agent -> times [ns], ascending, and the clock from each of them to the next one.
    """
    agent, kernel, x, y, z, start, end = columns(
        reading.reader, "rocpd_kernel_dispatch", statement("kernels"), _COLUMNS
    )
    valid = valid_times(start, end)
    effects: dict[int, ClockEffect] = {}
    for gpu, (times, values) in clocks.items():
        rows = np.flatnonzero(valid & (agent == gpu))
        if not len(rows):
            continue
        shapes = [rows[some] for _, some in group_rows([column[rows] for column in (kernel, x, y, z)])]
        hottest = max(shapes, key=lambda some: int((end - start)[some].sum()))
        effect = _effect(start[hottest], (end - start)[hottest], times, values)
        effects |= {gpu: effect} if effect else {}
    return effects


def _effect(start: Ints, duration: Ints, times: Ints, values: Floats) -> ClockEffect | None:
    """Return how the durations of runs of one kernel go with the clock; None where one of them does not change."""
    at = np.searchsorted(times, start, side="right") - 1
    medians = {number: float(np.median(duration[rows])) for (number,), rows in grouped([at]) if number >= 0}
    clock = [float(values[number]) for number in medians]
    rho = spearman(clock, list(medians.values()))
    return None if rho is None else ClockEffect(rho, len(medians))


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the rank correlation of pairs; equal values share the mean of their ranks. None: one of them is constant.

    Spearman, American Journal of Psychology 15, 1904.

    >>> round(spearman([1, 2, 3, 4], [8, 6, 6, 1]), 3), spearman([1, 2], [3, 3])
    (-0.949, None)
    """
    ranks = [_ranks(np.array(values)) for values in (first, second)]
    if any(len(set(each.tolist())) < 2 for each in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[inverse.reshape(-1)]
    return ranks


class SampledValue(NamedTuple):
    """A sampled value.

    Args:
        start: when [ns].
        end: until when it holds, None where that was not recorded [ns].
        last: end of the part of the rank that counts, None where all does [ns].
        value: what was sampled.
    """

    start: int
    end: int | None
    last: int | None
    value: float

    def end_before(self, following: int) -> int:
        """Return until when it holds, in the part that counts [ns]; `following` is the start of the next one."""
        end = following if self.end is None else self.end
        return end if self.last is None else min(end, self.last)


class _Series(NamedTuple):
    """Values of one counter, how many were left out, how kernels go with it; by step mean, time [ns] and share [%]."""

    values: Sequence[SampledValue]
    left_out: int
    in_steps: Mapping[int, tuple[float, int, float]]
    effect: ClockEffect | None


def samples(reading: Reading) -> Tables:
    """Return what was sampled.

    Raises:
        RocpdError: nothing was.
    """
    values: dict[Key, _Series] = {}
    step, has_steps = is_step(reading.options.step_marker), reading.wants("step-samples")
    work = partial(_of_rank, step=step, times=of_steps(reading.times()), has_steps=has_steps)
    yield (answers := reading.each(work))
    for _, of_rank in answers:
        values |= of_rank
    if not values:
        raise RocpdError("no samples in the selection")
    rows = [(*key, *_statistics(series)) for key, series in in_order(values)]
    yield Summary.whole(TABLES["samples"], rows)
    in_steps = [
        (step, *key, mean, mean * held / 1e9 if key[3] == "W" else None, percent)
        for key, series in in_order(values)
        for step, (mean, held, percent) in series.in_steps.items()
    ]
    if in_steps:
        yield Summary.whole(TABLES["step-samples"], sorted(in_steps, key=order_of))


def _statistics(series: _Series) -> Row:
    if not series.values:
        return (0, None, None, None, None, None, series.left_out, None, None)
    some = np.array([each.value for each in series.values])
    statistics = (some.mean(), some.min(), np.median(some), some.max(), _mean_over_time(series.values))
    return (len(some), *map(float, statistics), series.left_out, *(series.effect or (None, None)))


def _of_rank(reading: RankReading, step: re.Pattern[str], times: Times, has_steps: bool) -> dict[Key, _Series]:
    """Return the values of each counter in the order of their times, with what steps and kernels have of them."""
    steps = step_times(read_ranges(reading.reader).every, step) if has_steps else {}
    held, left_out = held_values(reading, times)
    effects = _effects(reading, held)
    return {
        key: _Series(values, left_out[key], _means_in_steps(values, steps), effects.get(key))
        for key, values in held.items()
    }


def _effects(reading: RankReading, held: Mapping[Key, Sequence[SampledValue]]) -> dict[Key, ClockEffect]:
    """Return how kernels go with the clocks among sampled values."""
    clocks = {
        key: (np.array([each.start for each in values]), np.array([each.value for each in values]))
        for key, values in held.items()
        if values and isinstance(key[1], int) and CLOCK.search(as_text(key[2]) or "")
    }
    by_agent = {int(str(key[1])): key for key in clocks}
    effects = clock_effects(reading, {agent: clocks[key] for agent, key in by_agent.items()}) if clocks else {}
    return {by_agent[agent]: effect for agent, effect in effects.items()}


def held_values(reading: RankReading, times: Times) -> tuple[dict[Key, list[SampledValue]], Counter[Key]]:
    """Return the values of each counter in the order of their times, and how many were left out.

    The key is rank, agent, name and unit. Of a counter that adds up what was before the values are its rates.
    """
    steady, base = times.get(reading.rank.number), reading.window.base
    last = steady.end if steady else base[1] if base else None
    values: dict[Key, list[SampledValue]] = {}
    left_out: Counter[Key] = Counter()
    key_of_value = functools.cache(partial(_key, reading.rank.number))
    for name, units, agent, at, value, until in reading.reader.rows(statement("sampled_values")):
        start = number(at)
        if start < 1:
            reading.left_out["samples"] += 1
        elif isinstance(value, int | float) and (not steady or steady.start <= start):
            key, unit = key_of_value(name, units, agent)
            is_after = steady is not None and start >= steady.end
            every = values.get(key, []) if is_after else values.setdefault(key, [])
            if is_sentinel(value, unit):
                left_out[key] += not is_after
            elif not is_after:
                every.append(SampledValue(start, until if isinstance(until, int) else None, last, float(value)))
            elif every and every[-1].end is None:  # it holds until this one
                every[-1] = every[-1]._replace(end=start)
    return {key: _rates(every) if adds_up(as_text(key[2])) else every for key, every in values.items()}, left_out


def _key(rank: int, name: object, units: object, agent: object) -> tuple[Key, str | None]:
    """Return what values of a name are counted by, and their unit as it is meant."""
    text, lane = as_text(name), number(agent)
    unit = meant_unit(text, as_text(units))
    return (rank, None if lane == NULL else lane, text, f"{unit or '1'}/s" if adds_up(text) else unit), unit


def _rates(values: Sequence[SampledValue]) -> list[SampledValue]:
    """Return what values that add up grow by in a second, each until the next one; where they start anew, nothing."""
    return [
        SampledValue(one.start, after.start, one.last, (after.value - one.value) * 1e9 / (after.start - one.start))
        for one, after in pairwise(values)
        if after.start > one.start and after.value >= one.value
    ]


def times_held(values: Sequence[SampledValue]) -> list[int]:
    """Return how long each value holds [ns], of values in the order of their times."""
    following = [*(each.start for each in values[1:]), values[-1].start]
    return [
        max(0, each.end_before(next_start) - each.start) for each, next_start in zip(values, following, strict=True)
    ]


def _mean_over_time(values: Sequence[SampledValue]) -> float:
    """Return the mean of values in the order of their times, each by how long it holds."""
    held = times_held(values)
    return float(np.average([each.value for each in values], weights=held if any(held) else None))


def _means_in_steps(
    values: Sequence[SampledValue], steps: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[float, int, float]]:
    """Return the mean over time of the steps in which a value holds, that time [ns], and its share of the step [%]."""
    if not values:
        return {}
    at = np.array([each.start for each in values], np.int64)
    until = at + np.array(times_held(values), np.int64)
    value = np.array([each.value for each in values])
    means = {}
    for step, (start, end) in steps.items():
        rows = slice(max(int(np.searchsorted(at, start, side="right")) - 1, 0), int(np.searchsorted(at, end)))
        held = np.minimum(until[rows], end) - np.maximum(at[rows], start)
        if (weights := np.maximum(held, 0)).any():
            known = int(weights.sum())
            means[step] = float(np.average(value[rows], weights=weights)), known, 100 * known / (end - start)
    return means


@frozen
class KernelSamples(Total):
    """What was sampled while a kernel ran, as sums that add up; times in ns."""

    integral: float
    time: float
    energy: float
    dominated: float


_Sums = dict[tuple[object, ...], KernelSamples]


class _Course(NamedTuple):
    """Sampled values, and from when until when each holds [ns]."""

    at: Ints
    until: Ints
    value: Floats


def kernel_samples(reading: Reading) -> Tables:
    """Return what was sampled while kernels ran.

    Raises:
        RocpdError: nothing was sampled of a GPU while a kernel ran on it.
    """
    yield (answers := reading.each(partial(_kernels_of_rank, times=of_steps(reading.times()))))
    if not (divisions := added(answers)):
        raise RocpdError("no samples of a GPU while kernels ran on it", "`rocpd record --smi` samples GPUs")
    yield reading.summary(TABLES["kernel-samples"], rows_of(divisions, _kernel_rows))


def _kernel_rows(key: Key, of_kernels: _Sums) -> Iterator[Row]:
    for what, sums in most_first(of_kernels, lambda sums: sums.time):
        is_power = what[2] == "W"
        energy = (sums.energy / 1e9, 100 * sums.dominated / sums.time) if is_power else (None, None)
        yield (*key, *what, sums.integral / sums.time, round(sums.time), *energy)


def _kernels_of_rank(reading: RankReading, times: Times) -> dict[Key, _Sums]:
    series, _ = held_values(reading, times)
    read = columns(reading.reader, "rocpd_kernel_dispatch", statement("kernels"), _RUN)
    valid = np.flatnonzero(valid_times(read[2], read[3]))
    kernel, agent, start, end = (column[valid] for column in read)
    texts = kernel_texts(reading.reader, reading.options.kernel_names, kernel)
    courses = {key: _course(values) for key, values in series.items() if values}
    divisions: dict[Key, _Sums] = {}
    for (name_id, gpu), rows in grouped([kernel, agent]):
        runs = union(start[rows], end[rows])
        for (_, of, name, unit), course in courses.items():
            if of == gpu and (sums := _sums(runs, course)).time:
                add(divisions, reading.key(gpu), (texts.get(name_id), name, unit), sums)
    return divisions


def _course(values: Sequence[SampledValue]) -> _Course:
    at = np.array([each.start for each in values], np.int64)
    until = np.minimum(at + np.array(times_held(values), np.int64), np.append(at[1:], np.iinfo(np.int64).max))
    return _Course(at, until, np.array([each.value for each in values]))


def _sums(runs: Union, course: _Course) -> KernelSamples:
    """Return what was sampled in some times that do not overlap."""
    busy = (covered(runs, course.until) - covered(runs, course.at)).astype(np.float64)
    is_most = busy >= _MOST * np.maximum(course.until - course.at, 1)
    integral = course.value * busy
    parts = (integral.sum(), busy.sum(), integral[is_most].sum(), busy[is_most].sum())
    return KernelSamples(*map(float, parts))
