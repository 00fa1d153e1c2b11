"""SQLite exports of Nsight Systems (`nsys export --type sqlite`): a rank for each process that used a GPU.

Tables are absent where nothing was traced, and columns come and go with versions: each is looked for. The schema is
that of NVIDIA's exporter documentation. What the tables of events become is in `nsight_rows`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.nsight_tables import NsightTables
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_PID = "{} >> 24 & 0xFFFFFF"
"""Process in a `globalPid` or `globalTid`; the lowest 24 bits are the thread."""
_WITH_PROCESS = (
    (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "globalPid"),
        ("CUPTI_ACTIVITY_KIND_MEMSET", "globalPid"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"),
    ),
    (("NVTX_EVENTS", "globalTid"), ("OSRT_API", "globalTid"), ("MPI_COLLECTIVES_EVENTS", "globalTid")),
)
"""What tells processes: those with calls of CUDA or work of GPUs, and only where there are none, any others."""


def knows(head: InputHead) -> bool:
    """Whether it is an export of Nsight Systems: it has its table of texts, and one that only it has."""
    return "StringIds" in head.tables and any(
        name.startswith(("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_", "META_DATA_EXPORT"))
        for name in head.tables
    )


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of an export."""
    from rocpd.importers.nsight_rows import NsightRows
    from rocpd.importers.nsight_tables import NsightTables
    from rocpd.schema.trace.infos import NodeInfo

    tables = NsightTables(source.database)
    system = dict(tables.rows("TARGET_INFO_SYSTEM_ENV", ("name", "value")))
    node = NodeInfo(
        machine_id=f"nsys-{source.digest}",
        hostname=system.get("Hostname") or source.path.name,
        system_name=system.get("OsDescription"),
        version=system.get("KernelVersion"),
        hardware_name=system.get("CpuArchitecture"),
    )
    processes = _processes(tables)
    steps = len(processes) * len(NsightRows.TABLES)
    for number, pid in enumerate(processes):
        with target.rank(pid, node, _process(tables, pid)) as trace:
            rows = NsightRows(trace, tables, pid, holds_metrics=number == 0)
            for done, _ in enumerate(rows.write(), number * len(NsightRows.TABLES) + 1):
                source.step(done, steps)
            for name, value in tables.rows("META_DATA_EXPORT", ("name", "value")):
                if name.startswith(("EXPORT_PRODUCT_", "EXPORT_SCHEMA_VERSION")):
                    trace.note(f"nsys::{name}", str(value))
            if tables.has_utc:
                trace.note("clock", "CLOCK_REALTIME")
    for name, count in tables.left_out(NsightRows.TABLES, processes).items():
        target.lose(f"rows of the table {name}", count)


def _processes(tables: NsightTables) -> list[int]:
    for sources in _WITH_PROCESS:
        pids: set[int] = set()
        for name, column in sources:
            if tables.has(name, column):
                pids |= {pid for (pid,) in tables.query(f"SELECT DISTINCT {_PID.format(column)} FROM {name}")}
        if pids:
            return sorted(pids)
    return []


def _process(tables: NsightTables, pid: int) -> Any:
    from rocpd.schema.trace.infos import ProcessInfo

    names = {number: name for number, name in tables.rows("PROCESSES", ("pid", "name")) if name}
    ranks = {pid_of(number): rank for number, rank in tables.rows("MPI_RANKS", ("globalPid", "rank"))}
    extdata = {"mpi_rank": ranks[pid], "mpi_size": len(ranks)} if pid in ranks else {}
    start, end = tables.session
    return ProcessInfo(pid, start=start, end=end, command=names.get(pid), extdata=json.dumps(extdata))


def pid_of(number: int) -> int:
    """Return the process of a `globalPid` or `globalTid`."""
    return number >> 24 & 0xFFFFFF
