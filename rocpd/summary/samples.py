"""What was sampled while the job ran: clocks, power, temperature, memory of GPUs and processes."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.columns import number
from rocpd.read.names import as_text
from rocpd.summary.clock_effect import ClockEffect, clock_effects
from rocpd.summary.reading import AGENT, RANK, Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.statements import statement
from rocpd.summary.steady import steady_default
from rocpd.summary.steps import read_ranges
from rocpd.trace.sampled import adds_up, is_sentinel, meant_unit
from rocpd.trace.steps import is_step, step_times
from rocpd.types import NULL, Row

CLOCK = re.compile(r"gfx.?clock|gfxclk|sclk", re.IGNORECASE)
"""Names of what samples the clock of the compute units."""

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
)


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


def samples(reading: Reading) -> Iterator[Summary]:
    """Return what was sampled.

    Raises:
        RocpdError: nothing was.
    """
    values: dict[Key, _Series] = {}
    for _, added in reading.each(
        partial(_of_rank, step=is_step(reading.options.step_marker), has_steps=reading.wants("step-samples"))
    ):
        values |= added
    if not values:
        raise RocpdError("no samples in the selection")
    rows = [(*key, *_statistics(values[key])) for key in sorted(values, key=order_of)]
    yield Summary(TABLES["samples"], TABLES["samples"].fields, rows)
    in_steps = [
        (step, *key, mean, mean * held / 1e9 if key[3] == "W" else None, percent)
        for key in sorted(values, key=order_of)
        for step, (mean, held, percent) in values[key].in_steps.items()
    ]
    if in_steps:
        yield Summary(TABLES["step-samples"], TABLES["step-samples"].fields, sorted(in_steps, key=order_of))


def _statistics(series: _Series) -> Row:
    if not series.values:
        return (0, None, None, None, None, None, series.left_out, None, None)
    some = np.array([each.value for each in series.values])
    statistics = (some.mean(), some.min(), np.median(some), some.max(), _mean_over_time(series.values))
    return (len(some), *map(float, statistics), series.left_out, *(series.effect or (None, None)))


def _of_rank(reading: RankReading, step: re.Pattern[str], has_steps: bool) -> dict[Key, _Series]:
    """Return the values of each counter in the order of their times, with what steps and kernels have of them."""
    steps = step_times(read_ranges(reading.reader).every, step) if has_steps else {}
    held, left_out = held_values(reading, step)
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


def held_values(reading: RankReading, step: re.Pattern[str]) -> tuple[dict[Key, list[SampledValue]], Counter[Key]]:
    """Return the values of each counter in the order of their times, and how many were left out.

    The key is rank, agent, name and unit. Of a counter that adds up what was before the values are its rates.
    """
    steady, base = steady_default(reading, step), reading.window.base
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
