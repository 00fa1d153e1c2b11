"""The time of each point: the loop of all replays, in plain Python for small jobs, and compiled for large ones.

The compiled loop is written in LLVM's language: llvmlite turns it into machine code in a hundredth of a second. Numba
takes half a second for the loop in Python, and a fifth of a second to be imported.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base import Ints, process
from rocpd.replay.points import OrderedEdges

_WORTH = 45_000  # points, 0.6 us each: as long as it takes to import the compiler, and to compile the loop


class _Plain:
    """The number of points that the plain loop has passed in this process: a job is replayed more than once."""

    passed = 0


def times_of(edges: OrderedEdges, order: Ints, takes: Ints) -> Ints:
    """Return the time of each point [ns]: that of its latest source, plus the time that it takes itself.

    Args:
        edges: the edges of the points.
        order: numbers of the points; each comes after all of its sources.
        takes: time that each point takes after its latest source, or after 0 without one [ns]; may be overwritten.

    Raises:
        OverflowError: the times do not fit into the type of `takes`.
    """
    if _Plain.passed + len(takes) < _WORTH:
        _Plain.passed += len(takes)
        return np.array(_plain(*edges.lists, order.tolist(), takes.tolist()), np.int64)
    held = [np.ascontiguousarray(column) for column in (order, edges.first, edges.source, edges.lag, takes)]
    if not compiled(edges, order, takes.dtype)(len(takes), *(column.ctypes.data for column in held)):
        raise OverflowError
    return held[-1]


def compiled(edges: OrderedEdges, order: Ints, kind: Any) -> Callable[..., bool]:
    """Return the loop for some columns and a type of times, compiled once: the compiler takes 60 MB meanwhile."""
    kinds = order.dtype, edges.first.dtype, edges.source.dtype, edges.lag.dtype, kind
    return _compiled(*(each.itemsize * 8 for each in kinds))


def _plain(first: list[int], source: list[int], lag: list[int], order: list[int], takes: list[int]) -> list[int]:
    """Return the time of each point; its edges are those from its `first` to that of the next point."""
    times = takes.copy()
    for point in order:
        edge, end = first[point], first[point + 1]
        latest = 0
        if edge < end:
            latest = times[source[edge]] + lag[edge]
            edge += 1
        while edge < end:
            after = times[source[edge]] + lag[edge]
            if after > latest:
                latest = after
            edge += 1
        times[point] += latest
    return times


@functools.cache
def _compiled(*bits: int) -> Callable[..., bool]:
    """Return the loop, compiled once per process; its arguments are the count, then the addresses of the columns.

    Args:
        bits: sizes of the numbers in the columns of order, first edges, sources, lags and times.
    """
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
    for name, size in zip(("order", "first", "source", "lag", "times"), bits, strict=True):
        widen, narrow = ("sext", "trunc") if size < 64 else ("bitcast", "bitcast")
        for mark, word in ((name, f"i{size}"), (f"widen {name}", widen), (f"narrow {name}", narrow)):
            text = text.replace(f"{{{mark}}}", word)
    module: Any = llvm.parse_assembly(text)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    pointers = [ctypes.c_void_p] * 5
    loop = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int64, *pointers)(engine.get_function_address("times"))
    loop.engine = engine  # type: ignore[attr-defined]  # holds the machine code
    process.let_go_of("libllvmlite.so")
    return loop
