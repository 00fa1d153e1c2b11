"""RPD traces (rocmProfileData): SQLite files that hold all processes of a machine.

The tables of schemas 1 to 3, and the meaning of their columns, are those of rocmProfileData's `tableSchema.cmd`. RPD's
"schema_version 3" has nothing to do with rocpd's: files are identified by their tables.
"""

from __future__ import annotations

from rocpd.importers.files import TraceSource, TraceTarget
from rocpd.importers.rpd.operations import LACKING, Operations, write_calls, write_monitors
from rocpd.importers.rpd.tables import RpdProcess, RpdTables, count_losses
from rocpd.schema.trace.infos import NodeInfo, ProcessInfo


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of an RPD trace.

    Raises:
        InputError: a table or a column is missing, or the file is damaged.
    """
    tables = RpdTables(source.database)
    tables.complete(LACKING)
    processes = tables.processes()
    owners = tables.owners(processes)
    total, done = sum(process.calls for process in processes) + tables.count("rocpd_api_ops"), 0

    def step(rows: int) -> None:
        nonlocal done
        done += rows
        source.step(done, total)

    for process in processes:
        info = ProcessInfo(process.pid, start=process.start, end=process.end)
        with target.rank(process.key, _node(source, process), info) as trace:
            launches = write_calls(trace, tables, process, step)
            Operations(trace, tables, process, launches).write(step, is_alone=len(processes) == 1)
            write_monitors(trace, tables, owners.get(process.key, ()), target.lose)
            trace.note("clock", "CLOCK_MONOTONIC")
            trace.note("rpd::tables", str(tables.schema))
            for tag, value in tables.metadata():
                trace.note(f"rpd::{tag}", value)
    count_losses(tables, len(processes), target.lose)


def _node(source: TraceSource, process: RpdProcess) -> NodeInfo:
    """Return the machine. RPD names none: each file and node counts as a machine, with the file's name."""
    name = f"{source.path.name} node {process.node}" if process.node else source.path.name
    return NodeInfo(machine_id=f"of RPD trace {source.digest} node {process.node}", hostname=name)
