"""Owns merging: one SQLite file with every rank's own tables, indexes and the federated views stored in it.

Copies rows as they are, verifies the copy before it gets its name, never touches an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from rocpd.errors import InputError, OutputError
from rocpd.federate.attach import let_signals_in
from rocpd.federate.identify import Rank
from rocpd.federate.open import told_as_input_error
from rocpd.federate.session import Session
from rocpd.output import complete_or_nothing
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.render import Part, relations, select_text
from rocpd.schema.versions import split_suffix
from rocpd.schema.write import create_view_text

Progress: TypeAlias = Callable[[int, int], None]

_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
_BATCH = 65536  # row ids copied per step: progress moves, memory stays flat


def merge(session: Session, path: Path, force: bool = False, progress: Progress | None = None) -> None:
    """Write all ranks of a session into one file.

    Args:
        session: what to merge; its inputs may be merged files themselves.
        path: file to make; it appears when it is complete and verified.
        force: replace an existing file.
        progress: called with (rows copied, rows in all).

    Raises:
        OutputError: the file exists, cannot be written, or fails verification.
        InputError: an input is damaged, or two ranks use one suffix.
    """
    _check_suffixes(session)
    with complete_or_nothing(path, force) as temporary:
        connection = apsw.Connection(str(temporary), flags=_FLAGS)
        let_signals_in(connection)
        try:
            _merge_into(connection, session, progress)
        except apsw.FullError as error:
            raise OutputError(
                f"{path}: cannot be written: {error}", "free some space or choose another folder"
            ) from error
        except apsw.Error as error:
            raise OutputError(f"{path}: merging failed: {error}") from error
        finally:
            connection.close(True)


def _merge_into(connection: apsw.Connection, session: Session, progress: Progress | None) -> None:
    # The temporary name is all the safety that is needed: a torn file is never renamed.
    for name, value in (
        ("journal_mode", "off"),
        ("synchronous", 0),
        ("locking_mode", "exclusive"),
        ("cache_size", -65536),
    ):
        connection.pragma(name, value)
    done, total = 0, sum(_count(session, part, base) for part in session.parts for base in part.tables)
    sources: dict[str, int] = {}
    for rank, part in zip(session.ranks, session.parts, strict=True):
        with told_as_input_error(rank.opening.path):
            connection.execute("ATTACH ? AS source", (rank.opening.uri,))
            connection.execute("BEGIN")
            for base in part.tables:
                name = base + part.suffix
                # Counted inside the transaction that copies: a file may still be growing.
                sources[name] = connection.execute(f"SELECT COUNT(*) FROM source.{quote_name(name)}").get
                for copied in _copy_table(connection, name, sources[name]):
                    done += copied
                    if progress:
                        progress(done, total)
            _tell_left_out(session, connection, rank)
            connection.execute("COMMIT")
            connection.execute("DETACH source")
    _store_views(connection, session)
    _verify(connection, sources)


def _check_suffixes(session: Session) -> None:
    seen: dict[str, Rank] = {}
    for rank in session.ranks:
        other = seen.setdefault(rank.suffix, rank)
        if other is not rank:
            raise InputError(
                f"{rank.opening.path}: its table suffix is also used in {other.opening.path}, by another GUID"
            )


def _count(session: Session, part: Part, base: str) -> int:
    return int(session.execute(f"SELECT COUNT(*) FROM {part.name(base)}").fetchall()[0][0])


def _copy_table(connection: apsw.Connection, name: str, count: int) -> Iterator[int]:
    """Create one table with its own text, copy its rows in steps, then its indexes; give the rows of each step."""
    _run_stored(connection, "SELECT sql FROM source.sqlite_master WHERE type = 'table' AND name = ?", name)
    table = quote_name(name)
    items = ", ".join(quote_name(row[1]) for row in connection.execute(f"PRAGMA source.table_info({table})"))
    copy = f"INSERT INTO main.{table} ({items}) SELECT {items} FROM source.{table}"
    has_rowid = connection.execute(
        "SELECT NOT wr FROM pragma_table_list WHERE schema = 'source' AND name = ?", (name,)
    ).get
    if count > _BATCH and has_rowid:
        for first, last in _row_ranges(connection, f"source.{table}"):
            connection.execute(f"{copy} WHERE rowid BETWEEN ? AND ?", (first, last))
            yield connection.changes()
    elif count:
        connection.execute(copy)
        yield connection.changes()
    wanted = "SELECT sql FROM source.sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
    _run_stored(connection, wanted, name)


def _run_stored(connection: apsw.Connection, select: str, name: str) -> None:
    """Run the statements that `select` finds for the table `name`."""
    for (text,) in connection.execute(select, (name,)).fetchall():
        connection.execute(str(text))


def _row_ranges(connection: apsw.Connection, table: str) -> Iterator[tuple[int, int]]:
    """Cut a table into ranges of rowids with `_BATCH` rows each; ids may be far apart."""
    bounds: Any = connection.execute(f"SELECT MIN(rowid), MAX(rowid) FROM {table}").fetchall()[0]
    first, top = bounds
    while first is not None:
        sql = f"SELECT rowid FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 2 OFFSET ?"
        found: list[Any] = [row[0] for row in connection.execute(sql, (first, _BATCH - 1))]
        yield first, found[0] if found else top
        first = found[1] if len(found) == 2 else None


def _tell_left_out(session: Session, connection: apsw.Connection, rank: Rank) -> None:
    names = connection.execute(
        "SELECT name FROM source.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    suffixes = {other.suffix for other in session.ranks if other.opening == rank.opening}
    left = sorted(name for (name,) in names if not split_suffix(name, suffixes))
    if left:
        session.note(f"{rank.opening.path}: not merged, no table of a rank: {', '.join(left)}")


def _store_views(connection: apsw.Connection, session: Session) -> None:
    parts = tuple(Part(r.suffix, r.tables, None, r.number, r.hostname) for r in session.ranks)
    connection.execute("BEGIN")
    for relation in relations(parts):
        connection.execute(create_view_text(relation, select_text(relation, parts)))
    connection.execute("COMMIT")


def _verify(connection: apsw.Connection, sources: dict[str, int]) -> None:
    for name, count in sources.items():
        found = connection.execute(f"SELECT COUNT(*) FROM main.{quote_name(name)}").get
        if found != count:
            raise OutputError(f"verification failed: {name} has {found} rows, its source {count}")
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        raise OutputError(f"verification failed: quick_check says {quote_text(str(verdict))}")
