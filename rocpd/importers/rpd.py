"""RPD traces (rocmProfileData): SQLite files that hold the processes of a machine together.

The tables of schemas 1 to 3, and what their columns mean, are those of rocmProfileData's `tableSchema.cmd`. Its own
"schema_version 3" has nothing to do with rocpd's: files are known by their tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.rpd_tables import RpdProcess, RpdTables
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget
    from rocpd.schema.trace.infos import NodeInfo
    from rocpd.schema.trace.writer import TraceWriter


def knows(head: InputHead) -> bool:
    """Whether it is an RPD trace: the table `rocpd_api`, without a suffix, is RPD's alone."""
    return "rocpd_api" in head.tables


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of an RPD trace.

    Raises:
        InputError: a table or a column is missing, or the file is damaged.
    """
    from rocpd.importers.rpd_calls import write_calls
    from rocpd.importers.rpd_losses import count_losses
    from rocpd.importers.rpd_operations import Operations
    from rocpd.importers.rpd_samples import write_monitors
    from rocpd.importers.rpd_tables import RpdTables
    from rocpd.schema.trace.infos import ProcessInfo

    tables = RpdTables(source.database)
    processes = tables.processes()
    owners = tables.owners(processes)
    steps = _Steps(source, sum(process.calls for process in processes) + tables.count("rocpd_api_ops"))
    for process in processes:
        info = ProcessInfo(process.pid, start=process.start, end=process.end)
        with target.rank(process.key, _node(source, process), info) as trace:
            launches = write_calls(trace, tables, process, steps.add)
            Operations(trace, tables, process, launches).write(steps.add, is_alone=len(processes) == 1)
            write_monitors(trace, tables, owners.get(process.key, ()), target.lose)
            _note_facts(trace, tables)
    count_losses(tables, len(processes), target.lose)


class _Steps:
    """Progress in rows."""

    def __init__(self, source: TraceSource, total: int) -> None:
        self._source, self._total, self._done = source, total, 0

    def add(self, rows: int) -> None:
        self._done += rows
        self._source.step(self._done, self._total)


def _node(source: TraceSource, process: RpdProcess) -> NodeInfo:
    """Return the machine. RPD names none: those of two files count as two, called by the files."""
    from rocpd.schema.trace.infos import NodeInfo

    name = f"{source.path.name} node {process.node}" if process.node else source.path.name
    return NodeInfo(machine_id=f"of RPD trace {source.digest} node {process.node}", hostname=name)


def _note_facts(trace: TraceWriter, tables: RpdTables) -> None:
    trace.note("clock", "CLOCK_MONOTONIC")
    trace.note("rpd::tables", str(tables.schema))
    for tag, value in tables.metadata():
        trace.note(f"rpd::{tag}", value)
