"""What was sampled of a GPU while each kernel ran on it: power, clock, temperature; and the energy that kernels took.

A sample stands for the time until the next one, in which many kernels may run: means weigh each by how long the kernel
ran in it. Energy counts where one kernel took most of that time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.groups import grouped
from rocpd.summary.intervals import Union, covered, union
from rocpd.summary.ops import kernel_texts
from rocpd.summary.reading import Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.samples import SampledValue, held_values, times_held
from rocpd.summary.statements import statement
from rocpd.summary.sums import Total, merge
from rocpd.trace.steps import is_step
from rocpd.trace.times import valid_times
from rocpd.types import Floats, Ints

_MOST = 0.5  # of the time for which a sample stands: then its power is that of the kernel
_COLUMNS = ("name", "agent", "start", "end")

TABLES = by_name(
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
    )
)


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


def kernel_samples(reading: Reading) -> Iterator[Summary]:
    """Return what was sampled while kernels ran.

    Raises:
        RocpdError: nothing was sampled of a GPU while a kernel ran on it.
    """
    divisions: dict[Key, _Sums] = {}
    for _, added in reading.each(partial(_of_rank, step=is_step(reading.options.step_marker))):
        for key, of_rank in added.items():
            merge(divisions.setdefault(key, {}), of_rank)
    if not divisions:
        raise RocpdError("no samples of a GPU while kernels ran on it", "`rocpd record --smi` samples GPUs")
    rows = []
    for key in sorted(divisions, key=order_of):
        for what, sums in sorted(divisions[key].items(), key=lambda item: (-item[1].time, order_of(item[0]))):
            is_power = what[2] == "W"
            energy = (sums.energy / 1e9, 100 * sums.dominated / sums.time) if is_power else (None, None)
            rows.append((*key, *what, sums.integral / sums.time, round(sums.time), *energy))
    yield reading.summary(TABLES["kernel-samples"], rows)


def _of_rank(reading: RankReading, step: re.Pattern[str]) -> dict[Key, _Sums]:
    series, _ = held_values(reading, step)
    read = columns(reading.reader, "rocpd_kernel_dispatch", statement("kernels"), _COLUMNS)
    valid = np.flatnonzero(valid_times(read[2], read[3]))
    kernel, agent, start, end = (column[valid] for column in read)
    texts = kernel_texts(reading.reader, reading.options.kernel_names, kernel)
    courses = {key: _course(values) for key, values in series.items() if values}
    divisions: dict[Key, _Sums] = {}
    for (number, gpu), rows in grouped([kernel, agent]):
        runs = union(start[rows], end[rows])
        for (_, of, name, unit), course in courses.items():
            if of == gpu and (sums := _sums(runs, course)).time:
                of_kernel: _Sums = {(texts.get(number), name, unit): sums}
                merge(divisions.setdefault(reading.key(gpu), {}), of_kernel)
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
