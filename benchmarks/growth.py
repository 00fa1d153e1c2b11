"""How what grows with a job grows: each input doubles three times; an exponent of 1 is linear, 1.15 the bar.

CPU time, least of some runs: what else the machine does adds to it, and never takes away. Without Python's collector,
which looks through all objects once there are some ten thousand: that is a step, not a slope.
"""

from __future__ import annotations

import gc
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.measure import SIZE, TINY, cpu_seconds
from rocpd.base import Ints
from rocpd.base.evidence import Evidence, check_output
from rocpd.facts.communication.collectives import Channel, CommunicationKernels, match
from rocpd.facts.regions import nest_times
from rocpd.facts.spread import Spread
from rocpd.federate.open.identify import Rank
from rocpd.federate.open.opening import Opening
from rocpd.federate.select.align import Span, clock_domains, machines
from rocpd.federate.select.clocks import Meetings, align_clocks

BAR = 1.15
RUNS = 3
COLLECTIVES = 200
_MS = 1_000_000


def run() -> None:
    """Print seconds at each of four sizes, and the exponent of a line through their logarithms."""
    print(f"{'what grows':42} {'sizes':>24} {'CPU s':>30} {'exponent':>9}")
    for name, (sizes, made) in CASES.items():
        sizes = tuple(max(2, size // 16) for size in sizes) if SIZE is TINY else sizes
        actions = [made(size) for size in sizes]
        gc.disable()
        times = [min(cpu_seconds(action) for _ in range(RUNS)) for action in actions]
        gc.enable()
        grown = exponent(sizes, times)
        shown = f"{', '.join(map(str, sizes)):>24} {', '.join(f'{time:.4f}' for time in times):>30}"
        print(f"{name:42} {shown} {grown:9.2f}{'' if grown <= BAR else f' (bar: {BAR})'}", flush=True)


def exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """Return the slope of the line through the logarithms of sizes and times.

    >>> round(exponent((1, 2, 4, 8), [3, 12, 48, 192]), 2)
    2.0
    """
    logs = [math.log(max(time, 1e-6)) for time in times]
    return float(np.polyfit(np.log(sizes), logs, 1)[0])


def _clocks(count: int) -> Callable[[], object]:
    """Clocks that all meet in each collective."""
    random = np.random.default_rng(1)
    true = np.arange(COLLECTIVES)[:, None] * 5 * _MS + random.integers(0, 10**12, count)
    left = true + random.integers(0, 3000, true.shape)
    entered = true - random.integers(10_000, _MS, true.shape)
    return lambda: align_clocks(Meetings(entered, left, left + 500))


def _nodes(count: int) -> Callable[[], object]:
    """Nodes of two ranks, of unknown communicators and clocks that are not aligned."""
    random = np.random.default_rng(2)
    true = np.cumsum(random.integers(_MS, 9 * _MS, COLLECTIVES))
    channels = list(_channels(count, true, random))
    clocks = {channel.rank: channel.rank // 2 for channel in channels}
    return lambda: match(channels, clocks)


def _channels(count: int, true: Ints, random: np.random.Generator) -> Iterator[Channel]:
    nothing = np.zeros(0, np.int64)
    for rank in range(2 * count):
        end = true + (rank // 2) * 10**12 + random.integers(0, 2000, len(true))
        start = end - random.integers(50_000, 400_000, len(true))
        row = np.arange(len(true))
        kernels = CommunicationKernels(row, row * 0, row * 0, row * 0, start, end)
        yield Channel("ncclDevKernel", rank, 0, None, None, start, end, nothing, row, kernels)


def _open_ranges(count: int) -> Callable[[], object]:
    """Ranges that are all open at one time, and cross."""
    start = np.arange(count, dtype=np.int64)
    return lambda: nest_times(start, start + count)


def _nested_ranges(count: int) -> Callable[[], object]:
    """Ranges each in the one before."""
    start = np.arange(count, dtype=np.int64)
    return lambda: nest_times(start, 2 * count - start)


def _domains(count: int) -> Callable[[], object]:
    """Ranks of one machine, which ran at one time."""
    ranks, spans = _ranks(count, lambda _: "one"), {number: Span(number, number + count) for number in range(count)}
    return lambda: machines(clock_domains(ranks, spans))


def _machines(count: int) -> Callable[[], object]:
    """Ranks each of a machine of its own."""
    ranks, spans = _ranks(count, str), {number: Span(number, number + count) for number in range(count)}
    return lambda: machines(clock_domains(ranks, spans))


def _ranks(count: int, machine: Callable[[int], str]) -> list[Rank]:
    opening, columns = Opening(Path("rank.db"), "file:rank.db"), dict[str, tuple[str, ...]]()
    return [Rank(n, f"{n}", f"_{n}", opening, columns, "3.0.0", machine_id=machine(n)) for n in range(count)]


def _outputs(count: int) -> Callable[[], object]:
    """Outputs that are there, beside as many inputs."""
    folder = Path(tempfile.mkdtemp(prefix="rocpd-growth-"))
    inputs, outputs = ([folder / f"{kind}{n}.db" for n in range(count)] for kind in ("in", "out"))
    for path in (*inputs, *outputs):
        path.touch()

    def check() -> None:
        evidence = Evidence(inputs)
        for path in outputs:
            check_output(path)
        evidence.release()

    return check


def _spreads(count: int) -> Callable[[], object]:
    """Distributions of ranks, added up."""
    random = np.random.default_rng(3)
    spreads = [Spread.of(random.integers(0, 10**9, 300)) for _ in range(count)]
    return lambda: Spread.sum(spreads).moments


CASES: Mapping[str, tuple[tuple[int, ...], Callable[[int], Callable[[], object]]]] = {
    "clocks that meet in all collectives": ((32, 64, 128, 256), _clocks),
    "nodes without names of communicators": ((8, 16, 32, 64), _nodes),
    "ranges that are open at one time": ((2000, 4000, 8000, 16000), _open_ranges),
    "ranges each inside the one before": ((2000, 4000, 8000, 16000), _nested_ranges),
    "ranks of one machine": ((1000, 2000, 4000, 8000), _domains),
    "ranks each of its own machine": ((1000, 2000, 4000, 8000), _machines),
    "outputs beside as many inputs": ((250, 500, 1000, 2000), _outputs),
    "distributions of ranks, added up": ((500, 1000, 2000, 4000), _spreads),
}
