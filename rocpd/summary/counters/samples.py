"""Values sampled while the job ran: clocks, power, temperature, memory of GPUs and processes.

Also whether kernels take longer while the clock of their GPU is lower, by rank correlation of durations and samples;
and the samples of a GPU while each kernel ran on it: power, clock, temperature, and the energy of kernels.

A sample stands for the time until the next one, in which many kernels may run: means weigh each sample by the time that
the kernel ran in it. Energy counts where one kernel took most of that time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import NamedTuple, Self

import numpy as np

from rocpd.base import NULL, Floats, Ints, Row
from rocpd.facts.columns import Select, as_text, grouped, number, per_id, read_all, runs, statement
from rocpd.facts.operations import GRID, kernel_texts, timed_columns
from rocpd.facts.rank import Key, RankReading
from rocpd.facts.regions import read_ranges
from rocpd.facts.sampled import adds_up, are_sentinels, meant_unit
from rocpd.facts.timeline import Union, covered, union
from rocpd.facts.units import RankTime, of_steps
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.steps import is_step, step_times
from rocpd.summary.grouping import Sums, add, in_order, most_first, nothing, rows_of
from rocpd.summary.reading import AGENT, RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, by_name, table_of

CLOCK = re.compile(r"gfx.?clock|gfxclk|sclk", re.IGNORECASE)
"""Names of samples of the clock of the compute units."""

_MOST = 0.5  # share of a sample's time that a kernel takes for the power to count as its own
_RUN = ("name", "agent", "start", "end")
_SAMPLES = Select(statement("sampled_values"), ("pmc", "at", "until"), ("value",))
_SAMPLED_OF = "SELECT id, name, units, agent_id FROM rocpd_info_pmc"

TABLES = by_name(
    table_of(
        "samples",
        "Sampled values of each rank and agent: in its steps without warm-up, where steps are marked.",
        RANK,
        AGENT,
        Field("name", "", "the sampled quantity"),
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
    table_of(
        "step-samples",
        "Sampled values in each step, each by how much of the step it holds.",
        Field("step", "", "number of the step"),
        RANK,
        AGENT,
        Field("name", "", "the sampled quantity"),
        Field("units", "", "its unit"),
        Field("mean_over_time", "", "mean over the time of the step in which a value is known"),
        Field("energy_j", "J", "of power: energy in that time"),
        Field("known_percent", "%", "share of the step that this time is", True),
    ),
    table_of(
        "kernel-samples",
        "What was sampled of the GPU while a kernel ran on it: in steps without warm-up, where steps are marked.",
        Field("kernel", "", "kernel", is_kernel=True),
        Field("name", "", "the sampled quantity"),
        Field("units", "", "its unit"),
        Field("mean", "", "mean over the time of the kernel, each value as long as it holds"),
        Field("time_ns", "ns", "time of the kernel for which a sample stands"),
        Field("energy_j", "J", "of power: energy in that part of the time in which the kernel takes most of it"),
        Field("energy_percent", "%", "share of its time that this part is", True),
    ),
)

_COLUMNS = ("agent", "name", *GRID, "start", "end")


def _clock_effect(reading: RankReading, agent: int, clock: HeldValues) -> tuple[float, int] | None:
    """Return the correlation of the hottest kernel of an agent, on its most common grid, with its clock.

    Returns:
        Spearman's rank correlation of the median duration with the clock, sample by sample: at -1 the kernel always
        takes longer when the clock is lower; and the number of samples in which it ran. None if either is constant.
    """
    of_agent, *shape, start, end = timed_columns(reading, "rocpd_kernel_dispatch", "kernels", _COLUMNS)
    rows = (of_agent == agent).nonzero()[0]
    shapes = [rows[some] for _, some in grouped([column[rows] for column in shape])]
    duration = end - start
    hottest = max(shapes, key=lambda some: int(duration[some].sum()), default=rows)
    at, lasts = np.searchsorted(clock.at, start[hottest], side="right") - 1, duration[hottest]
    order = np.lexsort((lasts, at))[np.count_nonzero(at < 0) :]
    ordered, (first, count) = lasts[order], runs(at[order])
    medians = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    rho = spearman(clock.value[at[order[first]]], medians)
    return None if rho is None else (rho, len(medians))


def spearman(first: Floats, second: Floats) -> float | None:
    """Return the rank correlation of pairs; equal values share the mean of their ranks. None: one of them is constant.

    Spearman, American Journal of Psychology 15, 1904.

    >>> clock = np.array([1, 2, 3, 4])
    >>> round(spearman(clock, np.array([8, 6, 6, 1])), 3), spearman(clock, np.full(4, 3))
    (-0.949, None)
    """
    ranks = [_ranks(values) for values in (first, second)]
    return None if any(len(set(each.tolist())) < 2 for each in ranks) else float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse.reshape(-1)]


class HeldValues(NamedTuple):
    """Sampled values in order of time: when each was taken, until when it holds [ns], and the value."""

    at: Ints
    until: Ints
    value: Floats

    @classmethod
    def of(cls, at: Ints, until: Ints, value: Floats, last: int | None, adds_up: bool = False) -> Self:
        """Return the values of a counter.

        Args:
            at, until, value: time of each value; its recorded end, `NULL` for the time of the next value [ns]; and the
                value.
            last: end of the part of the rank that counts [ns]; None: all counts.
            adds_up: whether values accumulate: they are replaced by their growth per second, each until the next one;
                none where they start anew.
        """
        until = np.where(until == NULL, np.append(at[1:], at[-1:]), until)
        if adds_up:
            grows = ((at[1:] > at[:-1]) & (value[1:] >= value[:-1])).nonzero()[0]
            with np.errstate(all="ignore"):
                value = (value[grows + 1] - value[grows]) * 1e9 / (at[grows + 1] - at[grows])
            at, until = at[grows], at[grows + 1]
        return cls(at, np.maximum(until if last is None else np.minimum(until, last), at), value)


class _Series(NamedTuple):
    """Values of one counter, number left out, by step mean, time [ns] and share [%]; correlation of kernels with it."""

    values: HeldValues
    left_out: int
    in_steps: Mapping[int, tuple[float, int, float]]
    effect: tuple[float, int] | None


def samples(reading: Reading) -> Tables:
    """Return the sampled values.

    Raises:
        RocpdError: nothing was sampled.
    """
    values: dict[Key, _Series] = {}
    step, has_steps = is_step(reading.options.step_marker), reading.wants("step-samples")
    work = partial(_read_samples, step=step, has_steps=has_steps)
    yield (answers := reading.each(work, _SAMPLED, has_steps, given=of_steps(reading.times())))
    for _, of_rank in answers:
        values |= of_rank
    if not values:
        raise nothing("samples")
    yield Summary.whole(TABLES["samples"], [(*key, *_statistics(series)) for key, series in in_order(values)])
    in_steps = [  # by counter, which stays the order within a step
        (step, *key, mean, mean * held / 1e9 if key[3] == "W" else None, percent)
        for key, series in in_order(values)
        for step, (mean, held, percent) in series.in_steps.items()
    ]
    if in_steps:
        yield Summary.whole(TABLES["step-samples"], sorted(in_steps, key=itemgetter(0)))


def _statistics(series: _Series) -> Row:
    at, until, value = series.values
    if not len(value):
        return (0, None, None, None, None, None, series.left_out, None, None)
    held = until - at
    over_time = np.average(value, weights=held if held.any() else None)
    statistics = (value.mean(), value.min(), np.median(value), value.max(), over_time)
    return (len(value), *map(float, statistics), series.left_out, *(series.effect or (None, None)))


_SAMPLED = Fact("sampled", 1, (_Series, HeldValues))


def _read_samples(
    reading: RankReading, steady: RankTime | None, step: re.Pattern[str], has_steps: bool
) -> dict[Key, _Series]:
    """Return the values of each counter in order of time, with their means in steps and the correlation of kernels."""
    steps = step_times(read_ranges(reading.reader).every, step) if has_steps else {}
    held, left_out = held_values(reading, steady)
    clocks = {
        key[1]: key
        for key, values in held.items()
        if len(values.at) and isinstance(key[1], int) and CLOCK.search(as_text(key[2]) or "")
    }
    effects = {key: _clock_effect(reading, int(str(key[1])), held[key]) for key in clocks.values()}
    return {
        key: _Series(values, left_out[key], _means_in_steps(values, steps), effects.get(key))
        for key, values in held.items()
    }


def held_values(reading: RankReading, steady: RankTime | None) -> tuple[dict[Key, HeldValues], Counter[Key]]:
    """Return the values of each counter in order of time, and the number of values left out.

    The key is rank, agent, name and unit. A counter that accumulates has rates as its values.
    """
    base = reading.window.base
    last = steady.end if steady else base[1] if base else None
    read = read_all(reading.reader, _SAMPLES)
    (pmc, at, until), (value,) = read.numbers, read.reals
    reading.left_out["samples"] += int(np.count_nonzero(at < 1))
    key_of = {number: _key(reading.rank.number, *described) for number, *described in reading.reader.rows(_SAMPLED_OF)}
    number_of = {key: number for number, key in enumerate(dict.fromkeys(key_of.values()))}
    taken = ((at >= max(1, steady.start if steady else 1)) & ~np.isnan(value)).nonzero()[0]
    of_key = per_id(pmc[taken], lambda number: number_of[key_of[number]])
    values: dict[Key, HeldValues] = {}
    left_out: Counter[Key] = Counter()
    keys = list(number_of)
    for (place,), of_place in sorted(grouped([of_key]), key=lambda group: int(group[1][0])):
        (key, unit), rows = keys[place], taken[of_place]
        is_after, is_none = at[rows] >= (steady.end if steady else np.inf), are_sentinels(value[rows], unit)
        inside, after = rows[~is_after & ~is_none], rows[is_after & ~is_none]
        left_out[key] += int(np.count_nonzero(~is_after & is_none))
        holds = until[inside]
        if len(holds) and len(after) and holds[-1] == NULL:  # the last value holds until the next one
            holds[-1] = at[after[0]]
        if not is_after.all():
            values[key] = HeldValues.of(at[inside], holds, value[inside], last, adds_up(as_text(key[2])))
    return values, left_out


def _key(rank: int, name: object, units: object, agent: object) -> tuple[Key, str | None]:
    """Return the key of values of a name, and the unit that they are meant in."""
    text, lane = as_text(name), number(agent)
    unit = meant_unit(text, as_text(units))
    return (rank, None if lane == NULL else lane, text, f"{unit or '1'}/s" if adds_up(text) else unit), unit


def _means_in_steps(values: HeldValues, steps: Mapping[int, tuple[int, int]]) -> dict[int, tuple[float, int, float]]:
    """Return for each step the mean over the time in which a value holds, that time [ns], and its share [%]."""
    at, until, value = values
    if not (len(at) and steps):
        return {}
    starts, ends = np.array([*steps.values()]).T
    first = np.maximum(np.searchsorted(at, starts, side="right") - 1, 0).tolist()
    means = {}
    for (step, (start, end)), low, high in zip(steps.items(), first, np.searchsorted(at, ends).tolist(), strict=True):
        rows = slice(low, high)
        held = np.maximum(np.minimum(until[rows], end) - np.maximum(at[rows], start), 0)
        if known := int(held.sum()):
            means[step] = float((value[rows] * held).sum() / known), known, 100 * known / (end - start)
    return means


_Sums = dict[Key, Sums]
"""Kernel, name, unit -> sum of value by time; time [ns]; and both for samples whose time the kernel mostly takes."""


def kernel_samples(reading: Reading) -> Tables:
    """Return the values sampled while kernels ran.

    Raises:
        RocpdError: nothing was sampled of a GPU while a kernel ran on it.
    """
    what, hint = "samples of a GPU while kernels ran on it", "`rocpd record --smi` samples GPUs"
    steady = of_steps(reading.times())
    divisions = yield from reading.summed(_read_kernels, _WITH_KERNELS, given=steady, what=what, hint=hint)
    yield reading.summary(TABLES["kernel-samples"], rows_of(divisions, _kernel_rows))


def _kernel_rows(key: Key, of_kernels: _Sums) -> Iterator[Row]:
    for what, (integral, time, energy, dominated) in most_first(of_kernels, lambda sums: sums[1]):
        is_power = what[2] == "W"
        of_power = (energy / 1e9, 100 * dominated / time) if is_power else (None, None)
        yield (*key, *what, integral / time, round(time), *of_power)


_WITH_KERNELS = Fact("sampled-with-kernels", 1, (Sums,))


def _read_kernels(reading: RankReading, steady: RankTime | None) -> dict[Key, _Sums]:
    series, _ = held_values(reading, steady)
    kernel, agent, start, end = timed_columns(reading, "rocpd_kernel_dispatch", "kernels", _RUN)
    texts = kernel_texts(reading.reader, reading.options.kernel_names, kernel)
    series = {key: values for key, values in series.items() if len(values.at)}
    divisions: dict[Key, _Sums] = {}
    for (name_id, gpu), rows in grouped([kernel, agent]):
        runs = union(start[rows], end[rows])
        for (_, of, name, unit), values in series.items():
            if of == gpu and (sums := _sums(runs, values))[1]:
                add(divisions, reading.key(gpu), (texts.get(name_id), name, unit), sums)
    return divisions


def _sums(runs: Union, values: HeldValues) -> Sums:
    """Return the sums of the samples in some times that do not overlap."""
    until = np.minimum(values.until, np.append(values.at[1:], np.iinfo(np.int64).max))
    busy = (covered(runs, until) - covered(runs, values.at)).astype(np.float64)
    is_most = busy >= _MOST * np.maximum(until - values.at, 1)
    integral = values.value * busy
    return Sums(map(float, (integral.sum(), busy.sum(), integral[is_most].sum(), busy[is_most].sum())))
