"""Damage to a finished file: to its rows, as other producers and broken traces have it, and to its state on disk: WAL
mode, or leftovers of a killed writer.

Every fault of rows has a name and strikes a few rows, chosen by their position in the table, so that tests know them.
Files are changed as copies in a separate folder, and the result is moved into place.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from rocpd.base import frozen
from rocpd.base.identity import BESIDE
from rocpd.base.output import complete_or_nothing
from rocpd.base.sqlite import apsw
from rocpd.schema.quote import quote_name
from rocpd.schema.versions import suffix_of
from rocpd.schema.write import Writer
from rocpd.simulator.job_plan import RankPlan

_LOOSE_TABLES = ("rocpd_region", "rocpd_kernel_dispatch", "rocpd_memory_copy", "rocpd_sample", "rocpd_memory_allocate")
_NOWHERE = 987654321  # an id that no table has


@frozen
class Fault:
    """One kind of damage.

    `change` strikes `rows` rows of `table` from position `first` on, counted among those that satisfy `among`.
    """

    name: str
    table: str
    change: str
    first: int
    rows: int = 3
    among: str = "1"


FAULTS: tuple[Fault, ...] = (
    Fault("NULL thread of a dispatch", "rocpd_kernel_dispatch", "tid = NULL", 1),
    Fault("NULL queue", "rocpd_kernel_dispatch", "queue_id = NULL", 2),
    Fault("NULL stream", "rocpd_kernel_dispatch", "stream_id = NULL", 3),
    Fault("NULL region name", "rocpd_kernel_dispatch", "region_name_id = NULL", 5),
    Fault("NULL event", "rocpd_kernel_dispatch", "event_id = NULL", 7, 2),
    Fault("dangling kernel", "rocpd_kernel_dispatch", f"kernel_id = {_NOWHERE}", 9, 2),
    Fault("dangling agent", "rocpd_kernel_dispatch", f"agent_id = {_NOWHERE}", 10, 2),
    Fault("dangling event", "rocpd_kernel_dispatch", f"event_id = {_NOWHERE}", 12, 2),
    Fault("dangling thread", "rocpd_kernel_dispatch", f"tid = {_NOWHERE}", 13, 2),
    Fault("end before start", "rocpd_kernel_dispatch", '"end" = start - 1500', 15, 2),
    Fault("zero start", "rocpd_kernel_dispatch", "start = 0", 17, 1),
    Fault("zero start and end", "rocpd_kernel_dispatch", 'start = 0, "end" = 0', 18, 1),
    Fault("equal start and end", "rocpd_kernel_dispatch", '"end" = start', 19, 2),
    Fault("NULL thread of a region", "rocpd_region", "tid = NULL", 20, 2),
    Fault("dangling name", "rocpd_region", f"name_id = {_NOWHERE}", 22, 2),
    Fault("region without event", "rocpd_region", "event_id = NULL", 24, 2),
    Fault("region ending before it starts", "rocpd_region", '"end" = start - 90', 26, 2),
    Fault("region never ended", "rocpd_region", '"end" = 0', 28, 1),
    Fault("region at time zero", "rocpd_region", 'start = 0, "end" = 0', 29, 1),
    Fault("regions at one time", "rocpd_region", 'start = (SELECT MAX(start) FROM {table}), "end" = start', 30, 3),
    # An outer range that ends inside an inner one: its own duration is cut to a third.
    Fault("badly nested ranges", "rocpd_region", '"end" = start + ("end" - start) / 3', 0, 4, '"end" - start > 200000'),
    Fault("dangling parent", "rocpd_event", f"parent_stack_id = {_NOWHERE}", 33, 2),
    Fault("dangling category", "rocpd_event", f"category_id = {_NOWHERE}", 35, 1),
    Fault("NULL category", "rocpd_event", "category_id = NULL", 36, 1),
    Fault("message cut off", "rocpd_event", 'extdata = \'{{"message": "cut\'', 0, 1, "extdata LIKE '%message%'"),
    Fault("NULL agents of a copy", "rocpd_memory_copy", "src_agent_id = NULL, dst_agent_id = NULL", 0, 1),
    Fault("NULL queue of a copy", "rocpd_memory_copy", "queue_id = NULL, tid = NULL", 1, 1),
    Fault("dangling agent of a copy", "rocpd_memory_copy", f"dst_agent_id = {_NOWHERE}", 2, 1),
    Fault("NULL agent of an allocation", "rocpd_memory_allocate", "agent_id = NULL, event_id = NULL", 1, 1),
    Fault("dangling queue of an allocation", "rocpd_memory_allocate", f"queue_id = {_NOWHERE}", 2, 1),
    Fault("dangling track", "rocpd_sample", f"track_id = {_NOWHERE}", 1, 1),
    Fault("sample without event", "rocpd_sample", "event_id = NULL", 2, 1),
    Fault("sample at time zero", "rocpd_sample", "timestamp = 0", 3, 1),
    Fault("dangling counter", "rocpd_pmc_event", f"pmc_id = {_NOWHERE}", 0, 1),
    Fault("value of no event", "rocpd_pmc_event", "event_id = NULL", 1, 1),
    Fault("NULL value", "rocpd_pmc_event", "value = NULL", 2, 1),
    Fault("argument of no event", "rocpd_arg", f"event_id = {_NOWHERE}", 4, 1),
    Fault("NULL argument", "rocpd_arg", "value = NULL", 5, 1),
)
"""All row faults, in the order in which they are applied."""

EMPTIED: dict[str, tuple[str, ...]] = {
    "3.0.0": ("rocpd_sample", "rocpd_track", "rocpd_info_pmc", "rocpd_pmc_event"),
    "3.0.1": ("rocpd_memory_copy", "rocpd_arg"),
    "3.0.2": ("rocpd_memory_allocate", "rocpd_graph_launch"),
}
"""Tables that a faulty file of a schema version leaves empty, as if its profiler had not collected them."""


def loosen(writer: Writer) -> None:
    """Replace tables of an empty file by tables of a producer that allows NULL in references and times."""
    for name in _LOOSE_TABLES:
        writer.loosen(name)


def damage(writer: Writer) -> None:
    """Apply all faults to a filled file."""
    for fault in FAULTS:
        table = quote_name(fault.table + writer.suffix)
        chosen = f"SELECT id FROM {table} WHERE {fault.among} ORDER BY id LIMIT {fault.rows} OFFSET {fault.first}"  # noqa: S608
        change = fault.change.format(table=table)
        writer.connection.execute(f"UPDATE {table} SET {change} WHERE id IN ({chosen})")  # noqa: S608
    for name in EMPTIED.get(writer.version, ()):
        if name in writer.tables:
            writer.connection.execute(f"DELETE FROM {quote_name(name + writer.suffix)}")  # noqa: S608


LATE_TEXT = "written through the write-ahead log"
"""Name of the regions that only a reader of the leftover log finds."""

LATE_REGIONS = 25


def clear_beside(path: Path) -> None:
    """Remove leftovers of an earlier file of the same name; SQLite would play them into the new one."""
    for ending in BESIDE:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def leave_as(path: Path, rank: RankPlan) -> None:
    """Bring the finished file `path` into the state in the plan."""
    if rank.disk_state == "wal_header":
        _rewrite(path, lambda connection: connection.pragma("journal_mode", "wal"), None)
    elif rank.disk_state == "leftover_wal":
        _rewrite(path, lambda connection: _append_to_wal(connection, rank), "-wal")
    elif rank.disk_state == "hot_journal":
        _rewrite(path, lambda connection: _spill(connection, rank), "-journal")


def _rewrite(path: Path, change: Callable[[apsw.Connection], object], ending: str | None) -> None:
    """Apply `change` to a copy; put the copy and the file with `ending` beside it into place during the change."""
    with tempfile.TemporaryDirectory(prefix=".rocpd-", dir=path.parent) as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        connection = apsw.Connection(str(copy))
        try:
            change(connection)
            if ending is None:
                connection.close()
            else:
                # The companion first: alone beside the old, equal file it is harmless.
                _put(Path(f"{copy}{ending}"), Path(f"{path}{ending}"))
            _put(copy, path)
        finally:
            connection.close(True)


def _put(source: Path, target: Path) -> None:
    with complete_or_nothing(target, force=True) as temporary:
        shutil.copyfile(source, temporary)


def _append_to_wal(connection: apsw.Connection, rank: RankPlan) -> None:
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 0)
    suffix = suffix_of(rank.guid)
    strings, regions, threads = (
        quote_name(base + suffix) for base in ("rocpd_string", "rocpd_region", "rocpd_info_thread")
    )
    with connection:
        connection.execute(f"INSERT INTO {strings} (string) VALUES (?)", (LATE_TEXT,))  # noqa: S608
        name_id = connection.last_insert_rowid()
        nid, pid, tid = next(connection.execute(f"SELECT nid, pid, id FROM {threads} ORDER BY id"))  # noqa: S608
        last = next(connection.execute(f'SELECT COALESCE(MAX("end"), 0) FROM {regions}'))[0]  # noqa: S608
        rows = ((nid, pid, tid, last + 1000 * i, last + 1000 * i + 700, name_id) for i in range(LATE_REGIONS))
        columns = 'nid, pid, tid, start, "end", name_id'
        connection.executemany(f"INSERT INTO {regions} ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows)  # noqa: S608


def _spill(connection: apsw.Connection, rank: RankPlan) -> None:
    """Change rows without committing and force the changed pages into the file, as a full cache does."""
    suffix = suffix_of(rank.guid)
    connection.execute("BEGIN")
    connection.execute(f'UPDATE {quote_name("rocpd_region" + suffix)} SET "end" = 0')  # noqa: S608
    connection.execute(f"UPDATE {quote_name('rocpd_info_process' + suffix)} SET command = 'half written'")  # noqa: S608
    connection.cache_flush()
