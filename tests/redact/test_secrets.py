"""No secret is left: of 40 kinds, in every column that takes text, in pages and journals, written in six ways."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.redact.options import Level, RedactOptions
from rocpd.redact.run import redact
from rocpd.schema.quote import quote_name
from rocpd.simulator import JobOptions, simulate
from tests.redact.corpus import ENCODINGS, KINDS, WORDS, Secret, forms, secret
from tests.soak import sized

pytestmark = pytest.mark.soak(20)


def plant(connection: sqlite3.Connection, count: int) -> list[tuple[Secret, str]]:
    """Put secrets into a file, and return them with the way in which each is written: in turn into every column of
    every table, a table and a column that no schema has, and rows that are deleted, in the file and its journal.
    """
    connection.executescript("PRAGMA ignore_check_constraints = 1; PRAGMA secure_delete = 0; PRAGMA journal_mode = WAL")
    (table,) = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'rocpd_arg_*'").fetchone()
    foreign = table.replace("rocpd_arg", "rocpd_foreign")
    connection.execute(f"CREATE TABLE {quote_name(foreign)} (id INTEGER PRIMARY KEY, note TEXT, data BLOB)")
    connection.executemany(f"INSERT INTO {quote_name(foreign)} VALUES (?, '', x'00')", [(n,) for n in range(1, 13)])
    connection.execute(f"ALTER TABLE {quote_name(table)} ADD COLUMN foreign_note TEXT")
    made = (secret(kind, number) for number in itertools.count() for kind in KINDS)
    ways = itertools.cycle(itertools.chain(*([way] * 7 for way in ENCODINGS)))  # 7 and 43 have no common factor
    planted: list[tuple[Secret, str]] = []
    places = _places(connection)
    for row in range(-(-count // len(places))):
        for place in places:
            each, way = next(made), next(ways)
            if _put(connection, *place, row, ENCODINGS[way](each.text)):
                planted.append((each, way))
    connection.execute(f"INSERT INTO {quote_name(foreign)} (note) VALUES (?)", (planted[0][0].text * 3000,))
    connection.execute(f"DELETE FROM {quote_name(foreign)} WHERE id = 13")
    connection.commit()
    return planted


def _places(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        (table, str(column))
        for table in tables
        if table.startswith("rocpd_") and connection.execute(f"SELECT 1 FROM {quote_name(table)}").fetchone()
        for _, column, declared, *_ in connection.execute(f"PRAGMA table_info({quote_name(table)})")
        if declared in ("TEXT", "JSONB", "BLOB") and column != "guid"
    ]


def _put(connection: sqlite3.Connection, table: str, column: str, number: int, raw: bytes) -> bool:
    """Put bytes into a cell of a row, as a text or a BLOB, and return whether it took them."""
    name = quote_name(table)
    ids = [row[0] for row in connection.execute(f"SELECT id FROM {name} LIMIT 99")]
    if column in ("tag", "value") and "metadata" in table:
        sql = f"INSERT INTO {name} (tag, value) SELECT text, text FROM (SELECT CAST(? AS TEXT) AS text)"
    elif "rocpd_info_process" in table and column == "environment":
        sql = f"UPDATE {name} SET environment = json_set(environment, '$.MY_NOTE_{number}', CAST(? AS TEXT))"
    else:
        as_text = "?" if number % 3 == 0 else "CAST(? AS TEXT)"
        sql = f"UPDATE {name} SET {quote_name(column)} = {as_text} WHERE id = {ids[number % len(ids)]}"
    return connection.execute(sql, (raw,)).rowcount > 0


def left(folder: Path, planted: list[tuple[Secret, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, way and text of the secrets that any file of a folder holds in any way."""
    content = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    pieces = {content[at : at + 4] for at in range(len(content) - 3)}  # of most forms it lacks some

    def holds(form: bytes) -> bool:
        return all(form[at : at + 4] in pieces for at in range(0, len(form) - 3, 4)) and form in content

    for each, way in planted:
        if any(map(holds, forms(each.secret))):
            yield each.kind, way, each.text


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[tuple[Secret, str]]]]:
    """A file with secrets, and these; its writer stays connected, or SQLite would remove the journal."""
    (path,) = simulate(JobOptions(out=tmp_path_factory.mktemp("job"), ranks=1, events_per_rank=300))
    with contextlib.closing(sqlite3.connect(path)) as writer:
        planted = plant(writer, sized(800, 2500))
        assert path.with_name(f"{path.name}-wal").stat().st_size > 0
        held = list(left(path.parent, planted))
        assert len(held) >= 500  # others were planted where others are now
        assert len({kind for kind, _, _ in held}) >= 40
        assert {way for _, way, _ in held} == ENCODINGS.keys()
        yield path, planted


@pytest.mark.parametrize("level", Level)
def test_no_secret_is_left(level: Level, job: tuple[Path, list[tuple[Secret, str]]], tmp_path: Path) -> None:
    path, planted = job
    with rocpd.connect(path) as session:
        redact(session, tmp_path / "out", RedactOptions(level))
    found = left(tmp_path / "out", planted)
    assert not [each for each in found if level is Level.STRICT or each[0] not in WORDS]
