"""Says how to record what an analysis lacks, by the profiler that recorded the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rocpd.errors import RocpdError
from rocpd.federate.facts import importers_of
from rocpd.federate.select.selection import Selection
from rocpd.summary.reading import Reading
from rocpd.summary.result import Summary
from rocpd.trace.recorders import Recordable, recorder_of

_KERNELS = (
    "kernels",
    "kernel-shapes",
    "categories",
    "gpu-time",
    "budget",
    "idle",
    "op-trace",
    "marker-kernels",
    "ranks",
)
_NEEDS = {
    **dict.fromkeys((*_KERNELS, "variability"), Recordable.KERNELS),
    **dict.fromkeys(("api", "launch", "calls", "functions"), Recordable.CALLS),
    **dict.fromkeys(("copies", "copy-sizes", "copy-calls"), Recordable.COPIES),
    **dict.fromkeys(("allocations", "memory", "allocation-sites"), Recordable.ALLOCATIONS),
    "scratch": Recordable.SCRATCH,
    "markers": Recordable.STEPS,
    "samples": Recordable.CLOCKS,
}


def with_hints(function: Callable[[Reading], Iterable[Summary]], reading: Reading, name: str) -> Iterator[Summary]:
    """Yield the tables of an analysis; where the whole job lacks its data, its error says how that is recorded.

    Args:
        function: the analysis.
        reading: what to read.
        name: of the analysis.
    """
    try:
        yield from function(reading)
    except RocpdError as error:
        needed = _NEEDS.get(name)
        is_lacking = type(error) is RocpdError and not error.hint and reading.session.selection == Selection()
        how = recorder_of(importers_of(reading.session)).how.get(needed) if needed and is_lacking else None
        if how is None:
            raise
        raise RocpdError(error.message, how) from error
