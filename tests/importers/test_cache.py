"""Commands on traces of other profilers: imported once, complete or not at all."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import InputError
from rocpd.base.identity import identity_of
from rocpd.importers.run import imports
from tests.build import TraceBuilder
from tests.conftest import Cli
from tests.places import small_disk

TABLES = """
CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string);
CREATE TABLE rocpd_metadata (id INTEGER PRIMARY KEY, tag, value);
CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);
CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId, queueId, sequenceId, start, end, description_id, opType_id);
CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id, op_id);
INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMalloc');
"""


def trace(path: Path, pid: int = 7) -> Path:
    connection = apsw.Connection(str(path))
    connection.execute(TABLES)
    connection.execute("INSERT INTO rocpd_api VALUES (1, ?, 8, 100, 200, 2, 1)", (pid,))
    connection.close()
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rocpd" / "import"


def test_a_trace_is_imported_once(tmp_path: Path, cli: Cli, cache: Path) -> None:
    path = trace(tmp_path / "any.name")
    before = path.read_bytes()
    words = ("query", "select rank, name, pid, tid, duration from regions", "-f", "csv", path)
    first, second = cli(*words), cli(*words)
    assert first.out.splitlines() == ["rank,name,pid,tid,duration", "0,hipMalloc,7,8,100"]
    assert (second.out, second.err) == (first.out, "")
    assert first.err.startswith(f"rocpd: any.name: imported into {cache} (1 rank, ")
    assert path.read_bytes() == before
    (entry,) = imports().entries()
    assert (entry.source, entry.importer, len(entry.files)) == (str(path), "rpd", 1)
    assert cli("cache", "list", "-f", "csv").out.splitlines()[1].startswith(f"{path},rpd,1,")
    assert cli("cache", "clear").code == 0
    assert list(cache.iterdir()) == []


def test_a_changed_trace_is_imported_again(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.rpd")
    with rocpd.connect(path) as session:
        assert session.ranks[0].pid == 7
    path.unlink()
    trace(path, pid=9)
    with rocpd.connect(path) as session:
        assert session.ranks[0].pid == 9
    assert len(imports().entries()) == 2


def test_the_same_trace_compressed_is_the_same_rank(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.rpd")
    packed = tmp_path / "b"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with rocpd.connect([path]) as one, rocpd.connect([packed]) as other:
        assert one.ranks[0].guid == other.ranks[0].guid


def test_importing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    path = trace(tmp_path / "a.rpd")
    (first,) = rocpd.import_traces(path, tmp_path / "one")
    (second,) = rocpd.import_traces(path, tmp_path / "two")
    assert first.read_bytes() == second.read_bytes()
    assert (first.name, second.name) == ("a-7.db", "a-7.db")


def test_two_imports_at_once_leave_one_entry(tmp_path: Path, cache: Path) -> None:
    path = trace(tmp_path / "a.rpd")
    command = [sys.executable, "-m", "rocpd", "query", "select count(*) from regions", str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    assert {process.communicate()[0].split()[-1] for process in running} == {b"1"}
    assert len(list(cache.iterdir())) == 1


def test_a_folder_stands_for_the_traces_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    trace(folder / "a", 1)
    trace(folder / "b", 2)
    (folder / "notes.txt").write_text("x" * 600)
    with rocpd.connect(folder) as session:
        assert [rank.pid for rank in session.ranks] == [1, 2]
    assert [path.name for path in rocpd.import_traces(folder, tmp_path / "job")] == ["a-1.db", "b-2.db"]


def test_a_folder_with_databases_says_what_it_leaves_out(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "job"
    rocpd.import_traces(trace(tmp_path / "a.rpd"), folder)
    assert cli("query", "SELECT 1", folder).err == ""
    for name in ("b.rpd", "c.pt.trace.json", "d.json.gz", "e.sqlite"):
        (folder / name).touch()
    said = cli("query", "SELECT 1", folder)
    assert said.code == 0
    left_out = "4 of other profilers left out: b.rpd, c.pt.trace.json, d.json.gz …"
    assert said.err.startswith(f"rocpd: {folder}: only its *.db files are read; {left_out}")


def test_without_a_cache_a_command_imports_for_itself(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    said = cli("query", "select count(*) from regions", trace(tmp_path / "a.rpd"))
    assert said.out.split()[-1] == "1"
    assert said.err.startswith("rocpd: cache not used, imported for this command alone: ")


def test_what_was_used_long_ago_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_CACHE_SIZE", "1K")
    for number in range(2):
        with rocpd.connect(trace(tmp_path / f"{number}.rpd", number + 1)):
            pass
        for entry in imports().entries():
            os.utime(entry.folder / "import.json", (1_000_000, 1_000_000))
    assert [Path(entry.source).name for entry in imports().entries()] == ["1.rpd"]


def test_damage_is_an_error_of_the_input(tmp_path: Path, cache: Path) -> None:
    path = trace(tmp_path / "a.rpd")
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE rocpd_string")
    connection.close()
    with pytest.raises(InputError, match=r"a\.rpd: cannot be imported: SQLError: no such table: rocpd_string"):
        rocpd.connect(path)
    assert list(cache.iterdir()) == []
    imports().clear()


def test_a_killed_import_leaves_no_entry(tmp_path: Path, cache: Path) -> None:
    """What it left under a temporary name goes with the next import."""
    path = trace(tmp_path / "a.rpd")
    program = """
import os, signal, sys
from rocpd.importers import rpd
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
rpd.write_calls = die
import rocpd
rocpd.connect(sys.argv[1])
"""
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9
    (left,) = cache.iterdir()
    assert left.name.startswith(".")
    assert imports().entries() == []
    with rocpd.connect(path):
        assert [entry.folder for entry in imports().entries()] == list(cache.iterdir())


def test_a_full_disk_is_said_and_done_without(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace(tmp_path / "a.rpd")
    with small_disk(tmp_path / "disk", "64k") as disk:
        monkeypatch.setenv("XDG_CACHE_HOME", str(disk))
        said = cli("query", "select count(*) from regions", path)
        assert said.out.split()[-1] == "1"
        assert "cache not used, imported for this command alone: " in said.err
        assert [file for file in disk.rglob("*") if file.is_file()] == []


def test_nothing_temporary_stays(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    packed = tmp_path / "a"
    packed.write_bytes(gzip.compress(trace(tmp_path / "b").read_bytes()))
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "rocpd", "query", "select count(*) from regions", str(packed)]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert done.stdout.split()[-1] == b"1"
    assert list(temporary.iterdir()) == []


def test_a_change_is_seen_though_the_time_of_the_last_write_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b"x" * (1 << 20))
    before, times = identity_of(path), path.stat()
    with path.open("r+b") as file:
        file.seek(100_000)
        file.write(b"y")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (times.st_size, times.st_mtime_ns)
    assert identity_of(path) != before


def test_looking_at_a_database_with_a_journal_leaves_nothing(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    path = TraceBuilder().kernel("k", 1, 2).write(tmp_path / "case.db")
    (tmp_path / "case.db-journal").write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    assert cli("import", path, "-d", tmp_path / "x").code == 3
    assert list(temporary.iterdir()) == []
