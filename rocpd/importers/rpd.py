"""RPD traces (rocmProfileData): SQLite files that hold the processes of a machine together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget


def knows(head: InputHead) -> bool:
    """Whether it is an RPD trace: the table `rocpd_api`, without a suffix, is RPD's alone."""
    return "rocpd_api" in head.tables


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of an RPD trace."""
    from rocpd.schema.trace.events import Events, Regions
    from rocpd.schema.trace.infos import NodeInfo, ProcessInfo

    rows: Any = source.database.execute(
        "SELECT A.pid, A.tid, A.start, A.end, S.string FROM rocpd_api A JOIN rocpd_string S ON S.id = A.apiName_id"
    ).fetchall()
    for pid in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == pid]
        node = NodeInfo(machine_id=f"rpd-{source.digest}", hostname=source.path.name)
        with target.rank(pid, node, ProcessInfo(pid)) as trace:
            _, tids, starts, ends, names = zip(*mine, strict=True)
            trace.write(Regions(start=starts, end=ends, tid=tids, name=names, event=Events("HIP_RUNTIME_API")))
