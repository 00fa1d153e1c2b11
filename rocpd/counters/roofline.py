"""Places kernels on the roofline: operations by type, bytes by level of memory, and the rates that limit them.

S. Williams, A. Waterman, D. Patterson: Roofline, CACM 52 (2009): a kernel of intensity I [FLOP/byte] reaches at most
min(highest rate of operations, I times highest rate of bytes).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from rocpd.base import UsageError, by_key, frozen

TABLE = "4.1"
"""Number of the table of definitions with operations and bytes."""

TYPES = tuple(
    f"{unit} {kind}" for unit, kinds in {"VALU": "F16 F32 F64", "MFMA": "F6F4 F8 F16 BF16 F32 F64"}.items()
    for kind in kinds.split()
)  # fmt: skip
"""Types of floating-point operations, as the definitions call them."""

INTEGERS = ("MFMA I8",)
"""Types of integer operations, for kernels with more of these than of floating-point ones."""

LEVELS = ("HBM", "L2", "L1", "LDS")
"""Levels of memory, from the farthest."""

LESS = {"VALU F32": "VALU F32 (FMA alone)", "VALU F64": "VALU F64 (FMA alone)", "HBM": "HBM (FETCH_SIZE, WRITE_SIZE)"}
"""Less exact counters that replace counters that were not collected."""

NEAR = 60.0
"""Use from which a limit binds a kernel [%]: below it something else slows the kernel."""

_COLUMNS = {
    "HBM": "HBMBw", "L2": "L2Bw", "L1": "L1Bw", "LDS": "LDSBw", "VALU F16": "FP16Flops", "VALU F32": "FP32Flops",
    "VALU F64": "FP64Flops", "MFMA F16": "MFMAF16Flops", "MFMA BF16": "MFMABF16Flops", "MFMA F32": "MFMAF32Flops",
    "MFMA F64": "MFMAF64Flops", "MFMA F8": "MFMAF8Flops", "MFMA I8": "MFMAI8Ops", "MFMA F6F4": "MFMAF6F4Flops",
}  # fmt: skip
"""Type or level -> column of a `roofline.csv`, in GFLOP/s and GB/s."""


@frozen
class MeasuredKernel:
    """The counters of a kernel, means of its dispatches.

    Args:
        time: duration [ns].
        operations: type -> operations: floating-point ones, or integer ones if there are more of them.
        traffic: level -> bytes.
        rates: type or level -> the highest rate of the GPU [GFLOP/s, GB/s].
    """

    time: float
    operations: Mapping[str, float]
    traffic: Mapping[str, float]
    rates: Mapping[str, float]

    @property
    def type(self) -> str:
        """The type of most of the operations."""
        return max(self.operations, key=lambda name: self.operations[name])

    @property
    def flops(self) -> float:
        """Number of all operations."""
        return sum(self.operations.values())

    @property
    def rate(self) -> float:
        """Rate of operations [GFLOP/s]."""
        return self.flops / self.time

    def bandwidth_percent(self, level: str) -> float | None:
        """Return the rate of bytes of a level as a share of its highest rate [%]; None: unknown."""
        highest = self.rates.get(level)
        return 100 * self.traffic[level] / self.time / highest if highest else None

    def intensity(self, level: str) -> float | None:
        """Return the operations per byte of a level; None without bytes."""
        return self.flops / self.traffic[level] if self.traffic[level] else None

    def roof(self, level: str) -> float | None:
        """Return the highest rate of operations that level and type allow [GFLOP/s]; None: a rate is unknown."""
        intensity, bandwidth, highest = self.intensity(level), self.rates.get(level), self.rates.get(self.type)
        if not highest or not bandwidth:
            return None
        return highest if intensity is None else min(highest, intensity * bandwidth)

    @property
    def use(self) -> dict[str, float]:
        """Use of each limit [%]: of the type of most operations, and of the levels."""
        highest = self.rates.get(self.type)
        percents = {self.type: 100 * self.rate / highest if highest and self.flops else None}
        percents |= {level: self.bandwidth_percent(level) for level in self.traffic}
        return {name: percent for name, percent in percents.items() if percent is not None}

    @property
    def nearest(self) -> tuple[str, float] | None:
        """The limit with the highest use, and that use [%]; None: no limit is known."""
        use = self.use
        name = max(use, key=lambda name: use[name], default=None)
        return (name, use[name]) if name else None

    @property
    def bound(self) -> str | None:
        """The limit with the highest use, if that is at least `NEAR`; None: the kernel is near no limit."""
        return self.nearest[0] if self.nearest and self.nearest[1] >= NEAR else None


_TERA = 100_000  # GFLOP/s: from here on rates are written in TFLOP/s


def sentence(kernel: MeasuredKernel) -> str | None:
    """Return a sentence on the limit of a kernel and a change that would move it; None: no limit is known.

    >>> rates = {"HBM": 5000.0, "VALU F32": 80000.0}
    >>> sentence(MeasuredKernel(1000.0, {"VALU F32": 1e6}, {"HBM": 4e6}, rates))
    'bound by HBM, at 80 % of its rate: 0.25 FLOP/byte, 1,000 of at most 1,250 GFLOP/s; fewer bytes would move it'
    """
    if kernel.nearest is None:
        return None
    name, percent = kernel.nearest
    level = name if name in kernel.traffic else min(kernel.traffic, key=LEVELS.index)
    place = f"{kernel.traffic[level] / kernel.time:,.0f} GB/s and no floating-point operations"
    if kernel.flops:
        roof, unit = kernel.roof(level), "OP" if kernel.type in INTEGERS else "FLOP"
        prefix, scale = ("T", 1e3) if (roof or kernel.rate) >= _TERA else ("G", 1.0)
        most = f" of at most {roof / scale:,.0f}" if roof else ""
        place = f"{kernel.intensity(level) or 0:.3g} {unit}/byte, {kernel.rate / scale:,.0f}{most} {prefix}{unit}/s"
    if not kernel.bound:
        return f"near no limit, {name} at {percent:.0f} %: {place}; {_MOVES['']}"
    return f"bound by {name}, at {percent:.0f} % of its rate: {place}; {_moves(name)}"


def sentence_of(kernels: Mapping[str, tuple[str, float]]) -> Iterator[str]:
    """Yield a sentence for each limit that kernels are near, and one for kernels near no limit.

    Args:
        kernels: kernel -> its nearest limit, and the use of that limit [%].

    >>> list(sentence_of({"a": ("HBM", 80.0), "b": ("HBM", 20.0), "c": ("L2", 30.0)}))  # doctest: +NORMALIZE_WHITESPACE
    ['bound by HBM: a (80 %); fewer bytes would move it', 'near no limit: b (HBM at 20 %), c (L2 at 30 %); more waves
    at once, or fewer waits in each, would move them']
    """
    groups = by_key(
        (name, f"{kernel} ({percent:.0f} %)") if percent >= NEAR else ("", f"{kernel} ({name} at {percent:.0f} %)")
        for kernel, (name, percent) in kernels.items()
    )
    for name, said in groups.items():
        moves = _moves(name) if len(said) == 1 else _moves(name).replace("move it", "move them")
        yield f"{f'bound by {name}' if name else 'near no limit'}: {', '.join(said)}; {moves}"


def _moves(name: str) -> str:
    """Return the change that would move a kernel bound by a limit."""
    return _MOVES.get(name) or _MOVES[name.split()[0]]


_MOVES = {
    "": "more waves at once, or fewer waits in each, would move it",
    "HBM": "fewer bytes would move it",
    "L2": "more reuse in L1 or LDS would move it",
    "L1": "more reuse in registers or LDS, or wider loads, would move it",
    "LDS": "fewer or wider accesses to LDS would move it",
    "VALU": "matrix instructions or smaller types would move it",
    "MFMA": "smaller types or fewer operations would move it",
}


def measured_rates(lines: Iterable[str], path: str) -> dict[str, float]:
    """Return the rates of a `roofline.csv`, which rocprof-compute's benchmark writes: means over its devices.

    Raises:
        UsageError: the file has no columns of rates.
    """
    rows: Sequence[Mapping[str, str]] = list(csv.DictReader(lines))
    rates = {
        name: fmean(float(row[column]) for row in rows)
        for name, column in _COLUMNS.items()
        if rows and rows[0].get(column)
    }
    if not rates:
        raise UsageError(f"{path}: no rates in it", "a roofline.csv has columns such as HBMBw and FP32Flops")
    return rates
