"""Reads the samples of program counters of one rank: how often its waves were where in which kernel, and why.

A sample stands for a wave at an instruction. Stochastic samples say whether the wave issued it or waits, and for what;
those of host traps only where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from rocpd.errors import RocpdError
from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.groups import grouped
from rocpd.summary.ops import kernel_texts
from rocpd.summary.options import By
from rocpd.summary.reading import Key, RankReading, Reading, key_of
from rocpd.summary.statements import statement
from rocpd.summary.sums import Total, merge
from rocpd.trace.pc_sampling import active_lanes
from rocpd.trace.tables import PC_SAMPLES
from rocpd.trace.times import valid_times
from rocpd.types import NULL, Ints

_RUN = ("kernel", "agent", "dispatch", "start", "end")
_SAMPLED = "no program counters are sampled in the selection"
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
    """Samples of a kernel by spot, and the time of its dispatches [ns]; two of them add up."""

    spots: Mapping[Spot, SpotSamples] = field(default_factory=dict)
    time: int = 0

    def __add__(self, other: KernelSpots) -> KernelSpots:
        spots = dict(self.spots)
        merge(spots, other.spots)
        return KernelSpots(spots, self.time + other.time)

    @cached_property
    def total(self) -> SpotSamples:
        """Samples of all its spots."""
        return sum(self.spots.values(), SpotSamples())


SampledKernels: TypeAlias = dict[Key, dict["str | None", KernelSpots]]
"""Division -> name of the kernel -> its samples."""


def sampled_kernels(reading: Reading) -> SampledKernels:
    """Return the samples of all ranks, of each kernel that has some.

    Raises:
        RocpdError: none were taken.
    """
    if not any(base in rank.tables for rank in reading.session.ranks for base in PC_SAMPLES):
        raise RocpdError(_SAMPLED, _HOW)
    divisions: SampledKernels = {}
    for _, of_rank in reading.each(_of_rank):
        for key, kernels in of_rank.items():
            merge(divisions.setdefault(key, {}), kernels)
    sampled = {
        key: {name: kernel for name, kernel in kernels.items() if kernel.spots} for key, kernels in divisions.items()
    }
    sampled = {key: kernels for key, kernels in sampled.items() if kernels}
    if not sampled:
        raise RocpdError(_SAMPLED, _HOW)
    return sampled


def _of_rank(reading: RankReading) -> SampledKernels:
    rows = reading.reader.rows(statement("pc_samples"), (int(reading.options.by is By.DISPATCH),))
    if not rows:
        return {}
    runs = columns(reading.reader, "rocpd_kernel_dispatch", statement("kernel_runs"), _RUN)
    ids = np.array([kernel for kernel, *_ in rows if isinstance(kernel, int)], np.int64)
    names = kernel_texts(reading.reader, reading.options.kernel_names, np.concatenate([ids, runs[0]]))
    spots: dict[tuple[Key, str | None], dict[Spot, SpotSamples]] = {}
    for kernel, agent, number, source, instruction, offset, issued, kind, reason, mask, count in rows:
        waits = Counter({(kind, reason): count}) if issued == 0 else Counter()
        lanes = active_lanes(mask) * count if isinstance(mask, int) else 0
        samples = SpotSamples(
            count, count * (issued is not None), count * bool(issued), lanes, count * isinstance(mask, int), waits
        )
        of_kernel = spots.setdefault((_division(reading, agent, number), names.get(kernel)), {})
        merge(of_kernel, {Spot(source, instruction, offset): samples})
    divisions = _times(reading, runs, names)
    for (key, name), of_kernel in spots.items():
        merge(divisions.setdefault(key, {}), {name: KernelSpots(of_kernel)})
    return divisions


def _times(reading: RankReading, runs: list[Ints], names: Mapping[int, str | None]) -> SampledKernels:
    """Return the time of the dispatches of each kernel."""
    valid = np.flatnonzero(valid_times(runs[3], runs[4]))
    kernel, agent, dispatch, start, end = (column[valid] for column in runs)
    reading.left_out["kernels"] += len(runs[0]) - len(valid)
    lanes = {By.AGENT: agent, By.DISPATCH: dispatch}.get(reading.options.by or By.RANK, np.zeros(len(kernel), np.int64))
    divisions: SampledKernels = {}
    for (number, lane), rows in grouped([kernel, lanes]):
        time = KernelSpots(time=int((end[rows] - start[rows]).sum()))
        merge(divisions.setdefault(_division(reading, lane, lane), {}), {names.get(number): time})
    return divisions


def _division(reading: RankReading, agent: object, dispatch: object) -> Key:
    if reading.options.by is By.DISPATCH:
        return reading.rank.number, dispatch if dispatch != NULL else None
    return key_of(reading.options.by, reading.rank, agent if isinstance(agent, int) else NULL)
