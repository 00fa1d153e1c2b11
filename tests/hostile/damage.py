"""Families of damage: functions (path, random) that damage a small rocpd file in place.

Equal seeds, equal damage. Nothing of rocpd is used: what it refuses to write is what is wanted here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import apsw

Damage: TypeAlias = Callable[[Path, Random], None]

PAGE = 4096

FAMILIES: dict[str, Damage] = {}
"""Name -> function, in order of definition."""

HUGE = (1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 62) - 1, 1 << 53, -1, 0)
TEXTS = (
    "",
    "x",
    "12",
    "1e400",
    "0x10",
    "nan",
    "\x1b[31mred",
    "\u202egnp",
    "a\nb\r\tc",
    "a\0b",
    "\x9b2J",
    "{}",
    "[",
    "é" * 300,
)
REALS = (float("inf"), float("-inf"), 0.5, -1.5, 1e300, 9.3e18, 5e-324)
BLOBS = (b"", b"\xff\xfe", b"\0" * 40, bytes(range(256)))
DOCUMENTS = (
    "[" * 5000,
    "[" * 5000 + "]" * 5000,
    '{"a":' * 3000 + "1" + "}" * 3000,
    '{"mpi_rank":"' + "9" * 5000 + '"}',
    '{"mpi_rank":99999999999999999999}',
    '{"message":[1,{"a":"\\ud800"}]}',
    '{"message":null,"message":3}',
    '{"a":NaN,"b":Infinity,"c":' + "9" * 4400 + "}",
    "[1,2,3]",
    '"text"',
    "null",
    "{",
    "\ufeff{}",
    '{"OMPI_COMM_WORLD_RANK":"-3","RANK":1.5,"SLURM_PROCID":[1]}',
    '{"name":{"x":1},"cu_count":"many","grid_max_dim":[1],"workgroup_max_dim":{"x":"\\u001b[31m"}}',
)


def family(damage: Damage) -> Damage:
    """Add a function to FAMILIES, by its name."""
    FAMILIES[damage.__name__] = damage
    return damage


# Bytes: what a disk, a copy or a killed writer does.


@family
def flipped_bits(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 3, 30, 300))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


@family
def flipped_bits_in_the_schema(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 2, 8))):
        data[random.randrange(100, PAGE)] ^= 1 << random.randrange(8)
    path.write_bytes(data)


@family
def another_header(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 1, 2))):
        data[random.randrange(100)] = random.choice((0, 1, 2, 255, random.randrange(256)))
    path.write_bytes(data)


@family
def cut_off(path: Path, random: Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: random.choice((random.randrange(len(data)), PAGE * random.randrange(len(data) // PAGE)))])


@family
def lost_pages(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 4))):
        start = PAGE * random.randrange(1, len(data) // PAGE)
        data[start : start + PAGE] = random.choice((bytes(PAGE), random.randbytes(PAGE), b"\xff" * PAGE))
    path.write_bytes(data)


@family
def swapped_pages(path: Path, random: Random) -> None:
    data = bytearray(path.read_bytes())
    a, b = (PAGE * random.randrange(1, len(data) // PAGE) for _ in range(2))
    data[a : a + PAGE], data[b : b + PAGE] = data[b : b + PAGE], data[a : a + PAGE]
    path.write_bytes(data)


@family
def looped_pages(path: Path, random: Random) -> None:
    """A page stands in place of another: rows come twice, in wrong tables, or a tree never ends."""
    data = bytearray(path.read_bytes())
    a, b = (PAGE * random.randrange(1, len(data) // PAGE) for _ in range(2))
    data[a : a + PAGE] = data[b : b + PAGE]
    path.write_bytes(data)


@family
def swapped_roots(path: Path, random: Random) -> None:
    """Two tables have each other's rows."""
    with _schema(path) as connection:
        rows = list(
            connection.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 1")
        )
        (one, first), (two, second) = random.sample(rows, 2)
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (second, one))
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (first, two))


@family
def noise_at_the_end(path: Path, random: Random) -> None:
    with path.open("ab") as file:
        file.write(random.randbytes(random.choice((1, 100, PAGE))))


@family
def files_beside(path: Path, random: Random) -> None:
    """A journal or WAL of who knows what lies beside the file."""
    ending = random.choice(("-journal", "-wal", "-shm"))
    magic = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" if ending == "-journal" else b"\x37\x7f\x06\x82"
    noise = random.choice((b"", magic + random.randbytes(600), random.randbytes(PAGE)))
    path.with_name(path.name + ending).write_bytes(noise)
    if ending != "-journal" and random.random() < 0.5:
        data = bytearray(path.read_bytes())
        data[18:20] = b"\2\2"
        path.write_bytes(data)


# Values: what a writer with a bug, another version or an attacker stores.


@family
def text_in_numbers(path: Path, random: Random) -> None:
    _spoil(path, random, _is_number, TEXTS)


@family
def odd_times(path: Path, random: Random) -> None:
    _spoil(path, random, lambda _, column: column in ("start", "end", "timestamp", "init", "fini"),
           (*HUGE, *REALS, *TEXTS, *BLOBS, None))  # fmt: skip


@family
def reals_in_numbers(path: Path, random: Random) -> None:
    _spoil(path, random, _is_number, REALS)


@family
def huge_numbers(path: Path, random: Random) -> None:
    _spoil(path, random, _is_number, HUGE)


@family
def nulls(path: Path, random: Random) -> None:
    _spoil(path, random, lambda _, column: column != "id", (None,))


@family
def blobs(path: Path, random: Random) -> None:
    _spoil(path, random, lambda _, column: column != "id", BLOBS)


@family
def numbers_in_texts(path: Path, random: Random) -> None:
    _spoil(path, random, lambda kind, _: "TEXT" in kind or "JSON" in kind, (*HUGE, *REALS))


@family
def texts_that_are_no_utf8(path: Path, random: Random) -> None:
    _spoil(path, random, lambda kind, _: "TEXT" in kind or "JSON" in kind,
           (b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"), "CAST(? AS TEXT)")  # fmt: skip


@family
def texts_for_terminals(path: Path, random: Random) -> None:
    texts = ("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "\u202egnp.exe", "a\rb", "\x08" * 9, "\u2066x\u2069")
    _spoil(path, random, lambda kind, _: "TEXT" in kind, texts)


@family
def long_texts(path: Path, random: Random) -> None:
    _spoil(path, random, lambda kind, _: "TEXT" in kind or "JSON" in kind, ("x" * 300_000, "é\n" * 50_000), few=True)


@family
def odd_documents(path: Path, random: Random) -> None:
    _spoil(path, random, lambda kind, column: "JSON" in kind or column == "environment", DOCUMENTS)


@family
def dangling_references(path: Path, random: Random) -> None:
    _spoil(path, random, lambda _, column: column.endswith("id") and column not in ("id", "guid"), (987654321, -5, 0))


@family
def odd_metadata(path: Path, random: Random) -> None:
    with _opened(path) as connection:
        table = next(name for name in _tables(connection) if name.startswith("rocpd_metadata"))
        value = random.choice((*TEXTS, *DOCUMENTS[:5], *HUGE, *BLOBS, None, "3.0.4", "9" * 5000, "3." + "9" * 5000))
        which = random.choice(("1", "tag = 'schema_version'", "tag LIKE '%uuid%'", "tag = 'guid'", "id = 1"))
        statement = random.choice(
            ("UPDATE {} SET value = ? WHERE {}", "UPDATE {} SET tag = ? WHERE {}", "DELETE FROM {} WHERE ? IS ? AND {}")
        )
        loosen(connection, table)
        connection.execute(statement.format(quoted(table), which), (value, value)[: statement.count("?")])


# Shape: other schemas.


@family
def ids_twice(path: Path, random: Random) -> None:
    with _opened(path) as connection:
        for table in random.sample(_tables(connection), random.choice((1, 3))):
            connection.execute(f"CREATE TABLE copy AS SELECT * FROM {quoted(table)}")
            connection.execute(f"DROP TABLE {quoted(table)}")
            connection.execute(f"ALTER TABLE copy RENAME TO {quoted(table)}")
            connection.execute(f"INSERT INTO {quoted(table)} SELECT * FROM {quoted(table)} ORDER BY random() LIMIT 50")


@family
def lost_columns(path: Path, random: Random) -> None:
    with _opened(path) as connection:
        table = random.choice(_tables(connection))
        column = random.choice([name for name, _ in _columns(connection, table)])
        if random.random() < 0.5:
            connection.execute(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(column)} TO zz")
            return
        others = ", ".join(quoted(name) for name, _ in _columns(connection, table) if name != column)
        connection.execute(f"CREATE TABLE copy AS SELECT {others} FROM {quoted(table)}")
        connection.execute(f"DROP TABLE {quoted(table)}")
        connection.execute(f"ALTER TABLE copy RENAME TO {quoted(table)}")


@family
def lost_tables(path: Path, random: Random) -> None:
    with _opened(path) as connection:
        for table in random.sample(_tables(connection), random.choice((1, 2))):
            action = random.choice(("DROP TABLE {}", "ALTER TABLE {} RENAME TO other", "DELETE FROM {}"))
            connection.execute(action.format(quoted(table)))


@family
def another_kind_of_table(path: Path, random: Random) -> None:
    """A view that never ends, fails or names nothing stands in place of a table."""
    with _opened(path) as connection:
        table = random.choice(_tables(connection))
        columns = [name for name, _ in _columns(connection, table)]
        listed = ", ".join(quoted(name) for name in columns)
        connection.execute(f"DROP TABLE {quoted(table)}")
        nulls = ", ".join(["NULL"] * len(columns))
        failing = ", ".join(["abs(-9223372036854775808)"] * len(columns))
        sources = (
            f"SELECT {nulls}",
            f"SELECT {failing}",
            f"SELECT {listed} FROM nowhere",
            f"SELECT * FROM {quoted(table)}",
        )
        connection.execute(f"CREATE VIEW {quoted(table)} ({listed}) AS {random.choice(sources)}")


@family
def odd_suffixes(path: Path, random: Random) -> None:
    with _opened(path) as connection:
        tables = _tables(connection)
        suffix = tables[0].removeprefix("rocpd_metadata") if tables[0].startswith("rocpd_metadata") else tables[0][-37:]
        new = random.choice((suffix.upper(), suffix[:-3], suffix + "_é", "_x", "_1' OR 1", '_"', "_\x1b[31m"))
        for table in tables if random.random() < 0.7 else tables[:3]:
            connection.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(table[: -len(suffix)] + new)}")


@family
def odd_schema_text(path: Path, random: Random) -> None:
    """Statements of the schema that SQLite can't parse, or that say something else."""
    with _schema(path) as connection:
        rows = list(connection.execute("SELECT rowid, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        number, sql = random.choice(rows)
        changed = random.choice((
            "", sql[: len(sql) // 2], sql.replace("INTEGER", "ANY STRICT"), sql.replace("TEXT", "BLOB"),
            sql.replace(",", ", \x1b[31m", 1), sql + " WITHOUT ROWID", re.sub(r"PRIMARY KEY( AUTOINCREMENT)?", "", sql),
            "CREATE TABLE x(y)", sql.replace("NOT NULL", "GENERATED ALWAYS AS (1)", 2),
        ))  # fmt: skip
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE rowid = ?", (changed, number))


@family
def too_many_rows_of_one(path: Path, random: Random) -> None:
    """Thousands of rows on one moment, one name, one stack id."""
    with _opened(path) as connection:
        tables = [name for name in _tables(connection) if _count(connection, name)]
        table = random.choice([name for name in tables if "metadata" not in name])
        others = ", ".join(quoted(name) for name, _ in _columns(connection, table) if name != "id")
        connection.execute(
            f"INSERT OR IGNORE INTO {quoted(table)} ({others}) SELECT {others} FROM {quoted(table)}, "
            "(WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i FROM n) LIMIT 1000"
        )


def loosen(connection: apsw.Connection, table: str) -> None:
    """Take NOT NULL and CHECK out of a table."""
    sql = str(connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).get)
    sql = re.sub(r"CHECK \((?:[^()]|\([^()]*\))*\)", "", sql)
    sql = re.sub(r"NOT NULL(?! PRIMARY)", "", sql)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, table))
    connection.execute("PRAGMA writable_schema = RESET")


def quoted(name: str) -> str:
    """Return a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _spoil(
    path: Path,
    random: Random,
    is_meant: Callable[[str, str], bool],
    values: tuple[Any, ...],
    expression: str = "?",
    few: bool = False,
) -> None:
    """Put values into cells of columns that are meant, by type and name."""
    with _opened(path) as connection:
        targets = [
            (table, column)
            for table in _tables(connection)
            if _count(connection, table)
            for column, kind in _columns(connection, table)
            if is_meant(kind, column) and not table.startswith("rocpd_metadata")
        ]
        for table, column in random.sample(targets, min(len(targets), random.choice((1, 1, 2, 6)))):
            loosen(connection, table)
            value = random.choice(values)
            first, rows = random.randrange(_count(connection, table)), 1 if few else random.choice((1, 3, 1000))
            change = f"UPDATE {quoted(table)} SET {quoted(column)} = {expression} WHERE rowid IN "
            some = f"(SELECT rowid FROM {quoted(table)} ORDER BY rowid LIMIT {rows} OFFSET {first})"
            with contextlib.suppress(apsw.ConstraintError, apsw.MismatchError):
                connection.execute(change + some, (value,))


def _is_number(kind: str, column: str) -> bool:
    return ("INT" in kind or "REAL" in kind) and column != "id"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        for pragma in ("synchronous = OFF", "journal_mode = MEMORY", "foreign_keys = OFF", "legacy_alter_table = ON",
                       "ignore_check_constraints = ON"):  # fmt: skip
            connection.execute(f"PRAGMA {pragma}")
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()


@contextlib.contextmanager
def _schema(path: Path) -> Iterator[apsw.Connection]:
    with _opened(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        yield connection


def _tables(connection: apsw.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%' ORDER BY name"
    return [str(name) for (name,) in connection.execute(sql)]


def _columns(connection: apsw.Connection, table: str) -> list[tuple[str, str]]:
    return [(str(row[1]), str(row[2])) for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]


def _count(connection: apsw.Connection, table: str) -> int:
    return int(str(connection.execute(f"SELECT COUNT(*) FROM {quoted(table)}").get))
