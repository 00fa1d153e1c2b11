"""Owns how a finished file lies on disk: in WAL mode, or with what a killed writer leaves beside it.

Works on copies in a folder of its own and puts the outcome into place; touches no other files.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from rocpd.evidence import JOURNALS
from rocpd.output import complete_or_nothing
from rocpd.schema.quote import quote_name
from rocpd.schema.versions import suffix_of
from rocpd.simulator.job_plan import RankPlan
from rocpd.sqlite import apsw

LATE_TEXT = "written through the write-ahead log"
"""Name of the regions that only a reader of the leftover log sees."""

LATE_REGIONS = 25


def clear_beside(path: Path) -> None:
    """Remove what an earlier file of the same name left; SQLite would play it into the new one."""
    for ending in JOURNALS:
        Path(f"{path}{ending}").unlink(missing_ok=True)


def leave_as(path: Path, rank: RankPlan) -> None:
    """Bring the finished file `path` into the state that the plan gives it."""
    if rank.disk_state == "wal_header":
        _rewrite(path, _switch_to_wal, None)
    elif rank.disk_state == "leftover_wal":
        _rewrite(path, lambda connection: _append_to_wal(connection, rank), "-wal")
    elif rank.disk_state == "hot_journal":
        _rewrite(path, lambda connection: _spill(connection, rank), "-journal")


def _rewrite(path: Path, change: Callable[[apsw.Connection], None], ending: str | None) -> None:
    """Apply `change` to a copy; take the copy, and the file with `ending` beside it, while the change is under way."""
    with tempfile.TemporaryDirectory(prefix=".rocpd-", dir=path.parent) as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        connection = apsw.Connection(str(copy))
        try:
            change(connection)
            if ending is None:
                connection.close()
            else:
                # The companion first: alone beside the old, equal file it does no harm.
                _put(Path(f"{copy}{ending}"), Path(f"{path}{ending}"))
            _put(copy, path)
        finally:
            connection.close(True)


def _put(source: Path, target: Path) -> None:
    with complete_or_nothing(target, force=True) as temporary:
        shutil.copyfile(source, temporary)


def _switch_to_wal(connection: apsw.Connection) -> None:
    connection.pragma("journal_mode", "wal")


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
