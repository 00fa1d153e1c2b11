"""When points come: the loop of all replays, in plain Python for small jobs, and compiled for large ones.

The compiled one is written as LLVM has it: llvmlite makes machine code of that in a hundredth of a second, where numba
takes half a second for the loop in Python, and a fifth to be imported.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base import Ints
from rocpd.replay.points import Edges

_MANY = 100_000  # points, 0.6 us each, that take as long as it takes to import what compiles the loop


def times_of(edges: Edges, work: Ints) -> Ints:
    """Return when each point comes [ns], given what passes from the latest of its sources on.

    Args:
        edges: in order of their targets; each source is before its target.
        work: what passes [ns].
    """
    first = np.append(0, np.cumsum(np.bincount(edges.target, minlength=len(work))))
    if len(work) < _MANY:
        return np.array(_plain(first.tolist(), *edges.lists, work.tolist()), np.int64)
    times = np.zeros(len(work), np.int64)
    columns = first, edges.source, edges.lag, work, times
    held = [np.ascontiguousarray(column) for column in columns]
    _compiled()(len(work), *(column.ctypes.data for column in held))
    return times


def _plain(first: list[int], source: list[int], lag: list[int], work: list[int]) -> list[int]:
    """Return when each point comes, where its edges are those from its `first` to the next one's."""
    times: list[int] = []
    edge = 0
    for takes, end in zip(work, first[1:], strict=True):
        latest = 0
        if edge < end:
            latest = times[source[edge]] + lag[edge]
            edge += 1
        while edge < end:
            after = times[source[edge]] + lag[edge]
            if after > latest:
                latest = after
            edge += 1
        times.append(latest + takes)
    return times


@functools.cache
def _compiled() -> Callable[..., None]:
    """Return the loop, compiled once a process: the number of points and the addresses of the columns go in."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module: Any = llvm.parse_assembly(Path(__file__).with_suffix(".ll").read_text(encoding="utf-8"))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    loop = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 5)(engine.get_function_address("times"))
    loop.engine = engine  # type: ignore[attr-defined]  # holds the machine code
    return loop
