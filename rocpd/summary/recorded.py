"""Says how to record what an analysis lacks, by the profiler that recorded the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rocpd.errors import RocpdError
from rocpd.federate.facts import importers_of
from rocpd.federate.select.selection import Selection
from rocpd.summary.reading import Reading
from rocpd.summary.result import Summary
from rocpd.trace.recorders import Recordable, recorder_of


def with_hints(
    function: Callable[[Reading], Iterable[Summary]], reading: Reading, recordable: Recordable | None
) -> Iterator[Summary]:
    """Yield the tables of an analysis; where the whole job lacks its data, its error says how that is recorded.

    Args:
        function: the analysis.
        reading: what to read.
        recordable: what would have to be recorded; None: nothing in particular.
    """
    try:
        yield from function(reading)
    except RocpdError as error:
        is_lacking = type(error) is RocpdError and not error.hint and reading.session.selection == Selection()
        how = recorder_of(importers_of(reading.session)).how.get(recordable) if recordable and is_lacking else None
        if how is None:
            raise
        raise RocpdError(error.message, how) from error
