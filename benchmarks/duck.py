"""The same questions, asked of DuckDB's SQLite scanner: joins inside each rank, UNION ALL outside.

Needs PyPI's duckdb and duckdb-extension-sqlite-scanner of one version (1.5.5).
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from rocpd.session import Session

VERSION = "1.5.5"


def open_duck(session: Session, threads: int) -> Duck | None:
    """Attach the files of a session, None when DuckDB of the right version is not installed."""
    if not importlib.util.find_spec("duckdb") or not importlib.util.find_spec("duckdb_extension_sqlite_scanner"):
        return None
    duckdb: Any = importlib.import_module("duckdb")
    return Duck(duckdb, session, threads) if duckdb.__version__ == VERSION else None


class Duck:
    """One DuckDB connection with all files attached."""

    def __init__(self, duckdb: Any, session: Session, threads: int) -> None:
        package = importlib.import_module("duckdb_extension_sqlite_scanner")
        extension = next(Path(package.__path__[0]).rglob("*.duckdb_extension*"))
        self._connection = duckdb.connect(config={"threads": threads})
        self._connection.execute(f"LOAD '{extension}'")
        self._session = session
        names = {}
        for index, opening in enumerate(dict.fromkeys(rank.opening for rank in session.ranks)):
            self._connection.execute(f"ATTACH '{opening.path}' AS d{index} (TYPE sqlite, READ_ONLY)")
            names[opening] = f"d{index}"
        self._schemas = [(names[rank.opening], rank.suffix) for rank in session.ranks]

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement to its end; {kernels} and the like stand for name, start, end, duration of all ranks.

        {regions} have their category too, and markers their message as name.
        """
        return list(self._connection.execute(self._filled(sql)).fetchall())

    def _filled(self, sql: str) -> str:
        for name, text in (
            (
                "kernels",
                'SELECT S.display_name AS name, K.start, K."end", K."end" - K.start AS duration'
                " FROM {d}.rocpd_kernel_dispatch{u} K"
                " LEFT JOIN {d}.rocpd_info_kernel_symbol{u} S ON S.id = K.kernel_id",
            ),
            (
                "regions",
                "SELECT CASE WHEN C.string LIKE 'MARKER_%' THEN json_extract_string(E.extdata, '$.message')"
                " ELSE S.string END AS name, C.string AS category,"
                ' K.start, K."end", K."end" - K.start AS duration'
                " FROM {d}.rocpd_region{u} K LEFT JOIN {d}.rocpd_string{u} S ON S.id = K.name_id"
                " LEFT JOIN {d}.rocpd_event{u} E ON E.id = K.event_id"
                " LEFT JOIN {d}.rocpd_string{u} C ON C.id = E.category_id",
            ),
            (
                "allocations",
                'SELECT K.type || coalesce(K.level, \'\') AS name, K.start, K."end", K."end" - K.start AS duration'
                " FROM {d}.rocpd_memory_allocate{u} K",
            ),
            (
                "copies",
                'SELECT S.string AS name, K.start, K."end", K."end" - K.start AS duration'
                " FROM {d}.rocpd_memory_copy{u} K LEFT JOIN {d}.rocpd_string{u} S ON S.id = K.name_id",
            ),
        ):
            if "{" + name + "}" in sql:
                parts = " UNION ALL ".join(text.format(d=d, u=u) for d, u in self._schemas)
                sql = sql.replace("{" + name + "}", f"({parts})")
        return sql
