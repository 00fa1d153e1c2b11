"""The recorder's tables and views are those of `rocpd/schema/sql`, and its rows take the room they must."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw

from rocpd.schema.write import create
from tests.record.build import Build
from tests.record.runs import databases, environment, metadata, probe, rows

_SCHEMA = "SELECT type, name, tbl_name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"


def test_tables_and_views_are_those_of_the_writer(built: Build, tmp_path: Path) -> None:
    probe(built, tmp_path / "out", "threads", "1", "2")
    (file,) = databases(tmp_path / "out")
    with create(tmp_path / "same.db", metadata(file)["guid"], version="3.0.0"):
        pass
    same = tmp_path / "same.db"
    assert rows(file, _SCHEMA) == rows(same, _SCHEMA)
    for _, table, _ in rows(file, _SCHEMA):
        for pragma in ("table_info", "foreign_key_list", "index_list"):
            assert rows(file, f"PRAGMA {pragma}('{table}')") == rows(same, f"PRAGMA {pragma}('{table}')")
    views = "SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY 1"
    for ours, theirs in zip(rows(file, views), rows(same, views), strict=True):
        assert "".join(ours[1].split()) == "".join(theirs[1].split())


_REPLAY = """
import ctypes, sys, apsw
lib = ctypes.CDLL(sys.argv[1])
class Event(ctypes.Structure):
    _fields_ = [("category", ctypes.c_uint32), ("tid", ctypes.c_uint32), ("stack", ctypes.c_uint64),
                ("parent", ctypes.c_uint64), ("corr", ctypes.c_uint64), ("text", ctypes.c_char_p),
                ("size", ctypes.c_size_t), ("text_id", ctypes.c_uint32)]
class Region(ctypes.Structure):
    _fields_ = [("event", Event), ("name", ctypes.c_uint32), ("start", ctypes.c_uint64), ("end", ctypes.c_uint64),
                ("args", ctypes.c_void_p), ("count", ctypes.c_size_t)]
def text(s):
    b = s.encode()
    return lib.rocpd_text(b, len(b))
lib.rocpd_start()
for cat, stack, parent, corr, tid, name, start, end in apsw.Connection(sys.argv[2]).execute(
        "SELECT category, stack_id, parent_stack_id, corr_id, tid, name, start, end FROM regions"):
    event = Event(text(cat), tid, stack, parent, corr, None, 0, 0)
    assert lib.rocpd_region(ctypes.byref(Region(event, text(name), start, end, None, 0))) == 0
lib.rocpd_finalize()
"""


def _bytes_per_row(file: Path, table: str) -> float:
    """Return bytes in cells per row, record headers included; whole pages would compare round-off."""
    connection = apsw.Connection(f"file:{file}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        table += metadata(file)["uuid"]
        sql = f"SELECT SUM(pgsize - unused) FROM dbstat WHERE name = '{table}'"
        used = next(iter(connection.execute(sql)))[0]
        return float(used) / float(next(iter(connection.execute(f'SELECT COUNT(*) FROM "{table}"')))[0])
    finally:
        connection.close()


def test_bytes_per_region(built: Build, tmp_path: Path, real_files: tuple[Path, ...]) -> None:
    """A region with its event takes at most 1.1 times what it takes in AMD's file."""
    source = tmp_path / "amd.db"
    source.write_bytes(real_files[0].read_bytes())
    library = str(built.lib / "librocpd-recorder.so")
    done = subprocess.run(
        [sys.executable, "-c", _REPLAY, library, str(source)], env=environment(tmp_path / "out"), check=False
    )
    assert done.returncode == 0
    (file,) = databases(tmp_path / "out")
    regions = 'SELECT name, category, start, "end", tid, stack_id FROM regions ORDER BY id'
    assert rows(file, regions) == rows(source, regions)
    ours = _bytes_per_row(file, "rocpd_region") + _bytes_per_row(file, "rocpd_event")
    # AMD's events are those of regions, dispatches and copies alike: per row they compare all the same.
    theirs = _bytes_per_row(source, "rocpd_region") + _bytes_per_row(source, "rocpd_event")
    assert ours <= 1.1 * theirs
