"""Damaged RPD traces: each gives its ranks or one line that names the file, and leaves nothing."""

from __future__ import annotations

import contextlib
from pathlib import Path
from random import Random

import apsw
import pytest

import rocpd
from rocpd.base import InputError
from tests.importers.rpd import server
from tests.soak import sized

CELLS = (None, "", "text", b"\xff", -1, 1 << 62, -(1 << 63), 0.5, "9" * 400, "\ud7ff", "{", "[[")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return server(tmp_path_factory.mktemp("whole") / "a.rpd").read_bytes()


def cells(path: Path, chance: Random) -> None:
    """Replace values of a column."""
    connection = apsw.Connection(str(path))
    tables = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for _ in range(3):
        table = chance.choice(tables)
        columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        with contextlib.suppress(apsw.Error):
            connection.execute(
                f'UPDATE {table} SET "{chance.choice(columns)}" = ? WHERE rowid % 3 = ?',
                (chance.choice(CELLS), chance.randrange(3)),
            )
    connection.close()


def noise(path: Path, chance: Random) -> None:
    """Replace bytes behind the header."""
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 20, 400))):
        content[chance.randrange(100, len(content))] = chance.randrange(256)
    path.write_bytes(content)


def cut(path: Path, chance: Random) -> None:
    """Lose the end."""
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(3, 200)))
@pytest.mark.parametrize("damage", [cells, noise, cut])
def test_damage_is_one_line(damage: object, seed: int, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.rpd"
    path.write_bytes(content)
    damage(path, Random(seed))  # type: ignore[operator]
    damaged = path.read_bytes()
    try:
        rocpd.import_traces(path, tmp_path / "job")
        message = "a.rpd: "
    except InputError as error:
        message = error.message
    assert "a.rpd: " in message
    assert "\n" not in message
    assert path.read_bytes() == damaged
    assert {file.name for file in tmp_path.iterdir()} <= {"a.rpd", "job"}


def test_of_a_damaged_trace_nothing_is_delivered(content: bytes, tmp_path: Path) -> None:
    """Its first process can be read, its second cannot; the other trace is imported."""
    for name in ("a.rpd", "b.rpd"):
        (tmp_path / name).write_bytes(content)
    connection = apsw.Connection(str(tmp_path / "b.rpd"))
    connection.execute("UPDATE rocpd_api SET start = 'noon' WHERE pid = 9 AND id % 2")
    connection.close()
    notes: list[str] = []
    files = rocpd.import_traces(
        [tmp_path / "a.rpd", tmp_path / "b.rpd"], tmp_path / "job", skip_bad=True, on_note=notes.append
    )
    assert sorted(path.name for path in (tmp_path / "job").glob("*.db")) == ["a-7.db", "a-9.db"]
    assert [path.name for path in files] == ["a-7.db", "a-9.db"]
    assert any(note.startswith(f"left out: {tmp_path / 'b.rpd'}: cannot be imported: ") for note in notes)
