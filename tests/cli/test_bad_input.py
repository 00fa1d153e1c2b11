"""Bad inputs and outputs: one line that names the file, nothing partial, an exit code; and `--skip-bad`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypeAlias

import apsw
import pytest

import rocpd
from rocpd.base import InputError
from rocpd.federate import limits
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.cli.conftest import assert_one_error
from tests.conftest import Cli, Said, state_of
from tests.federate.writers import EXCLUSIVE, writer
from tests.places import fill, small_disk
from tests.soak import paired, sample

SUFFIX = suffix_of(guid_of(1))
COMMANDS = {
    "query": ("query", "select count(*), sum(duration) from regions"),
    "summary": ("summary", "--format", "csv", "-d", "out"),
    "merge": ("merge", "-d", "out"),
    "info": ("info",),
    "csv": ("convert", "-f", "csv", "-d", "out"),
    "pftrace": ("convert", "-f", "pftrace", "-d", "out"),
}


def good(path: Path, number: int = 1, rows: int = 400) -> Path:
    trace = TraceBuilder(number).kernel("gemm", 1000, 1010).region("hipLaunchKernel", 900, 950)
    fill_in = (
        f"WITH n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n LIMIT {rows}) INSERT INTO "
        '"rocpd_region{uuid}" (id, nid, pid, tid, start, "end", name_id, event_id, extdata) '
        'SELECT i, nid, pid, tid, start + i, "end" + i, name_id, event_id, \'{{"k": "some text of a region"}}\' '
        'FROM n, "rocpd_region{uuid}" WHERE id = 1'
    )
    return trace.sql(fill_in.replace("{{", "{").replace("}}", "}")).write(path, views=True)


def sqlite(path: Path, *statements: str) -> Path:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


def emptied(path: Path) -> Path:
    path.touch()
    return path


def noise(path: Path) -> Path:
    path.write_bytes(Random(1).randbytes(9000))
    return path


def cut(size: Callable[[int], int]) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        length = good(path).stat().st_size
        os.truncate(path, size(length))
        return path

    return make


def damaged_inside(path: Path) -> Path:
    """A page in the middle of a table is lost: the file opens well, reading it does not."""
    connection = apsw.Connection(str(good(path)), flags=apsw.SQLITE_OPEN_READONLY)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (f"rocpd_region{SUFFIX}",)).get
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(bytes(4096))
    return path


def without_databases(path: Path) -> Path:
    path.mkdir()
    (path / "notes.txt").write_text("nothing here")
    return path


def without_suffix(path: Path) -> Path:
    return sqlite(path, "CREATE TABLE rocpd_metadata (id, tag, value)", "CREATE TABLE rocpd_region (id, start)")


def lost_table(path: Path) -> Path:
    return sqlite(good(path), f"DROP TABLE rocpd_arg{SUFFIX}")


def rpd(path: Path) -> Path:
    tables = ("rocpd_api", "rocpd_kernelapi", "rocpd_op", "rocpd_string", "rocpd_ustring", "rocpd_metadata")
    return sqlite(path, *(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, tag, value)" for name in tables))


def schema_4(path: Path) -> Path:
    return sqlite(good(path), f"UPDATE rocpd_metadata{SUFFIX} SET value = '4.0.0' WHERE tag = 'schema_version'",
                  f"UPDATE rocpd_metadata{SUFFIX} SET value = '4' WHERE tag = 'schema_version_major'")  # fmt: skip


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "empty": (emptied, "empty"),
    "noise": (noise, "not a SQLite database"),
    "cut in the header": (cut(lambda _: 60), "not a SQLite database"),
    "cut in the first page": (cut(lambda _: 3000), "damaged"),
    "cut after a page": (cut(lambda _: 8192), "damaged"),
    "cut in mid-page": (cut(lambda size: size // 2 + 17), "damaged"),
    "one byte short": (cut(lambda size: size - 1), "damaged"),
    "one page short": (cut(lambda size: size - 4096), "damaged"),
    "damaged inside": (damaged_inside, "damaged"),
    "folder": (without_databases, "without *.db files"),
    "missing": (lambda path: path, "no such file"),
    "no rocpd": (lambda path: sqlite(path, "CREATE TABLE t (a)"), "not a rocpd database"),
    "no suffix": (without_suffix, "table rocpd_region has no UUID suffix"),
    "lost table": (lost_table, f"names a missing table, rocpd_arg{SUFFIX}"),
    "RPD": (rpd, "cannot be imported"),
    "schema 4": (schema_4, "rocpd schema 4.0.3 is not supported"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.soak
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (command, kind)
        for number, command in enumerate(COMMANDS)
        for kind in sample([*BAD], 2, number % 2)  # each kind with half of the commands
    ],
)
def test_bad_input(command: str, kind: str, cli: Cli, folder: Path) -> None:
    make, words = BAD[kind]
    bad, fine = make(Path("bad.db")), good(Path("fine.db"), 2)
    before = state_of(folder)
    said = cli(*COMMANDS[command], "-i", fine, bad)
    assert_one_error(said, 3, f"{bad}: ", words)
    assert said.out == ""
    assert state_of(folder) == before
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        {"fine.db"} | ({"bad.db"} if bad.exists() else set())
    )


Alone: TypeAlias = dict[str, tuple[str, list[str]]]


@pytest.fixture(scope="module")
def alone() -> Alone:
    """What each command says of the good file alone, and the names of what it writes; filled by the first that asks."""
    return {}


@pytest.mark.soak
@pytest.mark.parametrize(("command", "kind"), paired(COMMANDS, BAD))
def test_skip_bad(command: str, kind: str, cli: Cli, folder: Path, alone: Alone) -> None:
    make, words = BAD[kind]
    bad, fine = make(Path("bad.db")), good(Path("fine.db"), 2)
    before = state_of(folder)
    said = cli(*COMMANDS[command], "--skip-bad", "-i", fine, bad)
    assert said.code == 0, said
    left_out = [line for line in said.err.splitlines() if line.startswith("rocpd: left out: ")]
    assert len(left_out) == 1
    assert f"{bad}: " in left_out[0]
    assert words in left_out[0]
    assert {name: state_of(folder)[name] for name in before} == before
    if command not in alone:
        out = cli(*COMMANDS[command], "-i", fine, *(["-d", "alone"] if "-d" in COMMANDS[command] else [])).out
        alone[command] = out, [path.name for path in sorted(Path("alone").glob("*"))]
    assert (said.out, [path.name for path in sorted(Path("out").glob("*"))]) == alone[command]


@pytest.mark.parametrize("command", COMMANDS)
def test_only_bad_inputs(command: str, cli: Cli, folder: Path) -> None:
    emptied(Path("a.db"))
    noise(Path("b.db"))
    said = cli(*COMMANDS[command], "--skip-bad", "-i", "a.db", "b.db", "c.db")
    assert_one_error(said, 3, "every input was left out", "a.db: empty", "b.db: not a SQLite database", "c.db: no such")
    assert sorted(state_of(folder)) == ["a.db", "b.db"]


def test_verbose_shows_where(cli: Cli) -> None:
    emptied(Path("a.db"))
    for flag in ("-v", "--verbose"):
        said = cli("info", "a.db", flag)
        assert "Traceback" in said.err
        assert said.err.splitlines()[-2].startswith("rocpd: error: a.db: empty")


@pytest.mark.parametrize("command", COMMANDS)
def test_locked_by_a_writer(command: str, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEFAULT", limits.Limits(busy_ms=30))
    path = good(folder / "a.db")
    with writer(path, EXCLUSIVE, f"rocpd_string{SUFFIX}"):
        before = state_of(folder)
        assert_one_error(cli(*COMMANDS[command], "-i", path), 3, f"{path}: locked by a writer")
        assert state_of(folder) == before
    assert cli(*COMMANDS[command], "-i", path).code == 0


def test_locked_in_the_middle(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profiler takes its lock after the files were opened."""
    monkeypatch.setattr(limits, "DEFAULT", limits.Limits(busy_ms=30))
    first, second = good(folder / "1.db", 1), good(folder / "2.db", 2)
    with rocpd.connect([first, second]) as session:
        assert session.sql("SELECT count(*) FROM regions").fetchall() == [(802,)]
        with writer(second, EXCLUSIVE, "x"), pytest.raises(InputError, match=rf"^{second}: locked by a writer"):
            session.sql("SELECT count(*) FROM regions")
        assert session.sql("SELECT count(*) FROM regions").fetchall() == [(802,)]


def without_rights(*words: str) -> Said:
    """Run a command line as a user who may not do everything: root gives that right away."""
    command = [sys.executable, "-m", "rocpd", *words]
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("as root, this needs setpriv")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_permission_to_read(command: str, folder: Path) -> None:
    good(Path("a.db")).chmod(0)
    assert_one_error(without_rights(*COMMANDS[command], "-i", "a.db"), 3, "a.db: no permission to read it")
    assert [path.name for path in folder.rglob("*")] == ["a.db"]


WRITERS = {
    "query": ("query", "select * from regions", "-o", "out/x.csv"),
    "summary": ("summary", "--format", "csv", "-d", "out"),
    "merge": ("merge", "-d", "out"),
    "csv": ("convert", "-f", "csv", "-d", "out"),
    "pftrace": ("convert", "-f", "pftrace", "-d", "out"),
}


@pytest.mark.parametrize("command", WRITERS)
def test_no_permission_to_write(command: str, folder: Path) -> None:
    good(Path("a.db"))
    Path("out").mkdir(mode=0o555)
    said = without_rights(*WRITERS[command], "-i", "a.db")
    assert_one_error(said, 1, "out", "cannot be written: Permission denied")
    assert sorted(path.name for path in folder.rglob("*")) == ["a.db", "out"]


@pytest.mark.parametrize("command", WRITERS)
def test_full_disk(command: str, cli: Cli, folder: Path) -> None:
    path = good(folder / "a.db")
    with small_disk(folder / "out") as disk:
        fill(disk)
        said = cli(*WRITERS[command], "-i", path)
        assert_one_error(said, 1, "out", "cannot be written")
        assert [file.name for file in disk.iterdir()] == ["filler"]


@pytest.mark.parametrize("command", WRITERS)
def test_existing_output_needs_force(command: str, cli: Cli, folder: Path) -> None:
    path = good(folder / "a.db")
    assert cli(*WRITERS[command], "-i", path).code == 0
    outputs = sorted(Path("out").iterdir())
    for output in outputs:
        output.write_text("mine")
    said = cli(*WRITERS[command], "-i", path)
    assert_one_error(said, 1, "out/", ": exists")
    assert {output.read_text() for output in Path("out").iterdir()} == {"mine"}
    assert cli(*WRITERS[command], "-i", path, "--force").code == 0
    assert sorted(Path("out").iterdir()) == outputs
    assert all(output.read_bytes() != b"mine" for output in outputs)


@pytest.mark.parametrize("command", ["redact", "import"])
def test_what_has_no_o_is_not_told_to_use_it(command: str, cli: Cli, folder: Path) -> None:
    (folder / "out").mkdir()
    said = cli(command, good(folder / "a.db"), "-d", folder / "out")
    assert_one_error(said, 1, ": exists")
    assert said.err.endswith("  hint: give --force to replace it, or another name\n")


def test_locked_output(cli: Cli, folder: Path) -> None:
    """Another program works on the old file: it keeps what it has, the new file takes the name."""
    path = good(folder / "a.db")
    out = sqlite(folder / "merged.db", "CREATE TABLE t (a)")
    with writer(out, EXCLUSIVE, "t"):
        assert_one_error(cli("merge", path, "-o", out), 1, "merged.db: exists")
        assert cli("merge", path, "-o", out, "--force").code == 0
    assert apsw.Connection(str(out)).execute("SELECT count(*) FROM kernels").get == 1
    assert sorted(state_of(folder)) == ["a.db", "merged.db"]


def test_a_folder_in_the_way(cli: Cli, folder: Path) -> None:
    path = good(folder / "a.db")
    (folder / "merged.db").mkdir()
    assert_one_error(cli("merge", path, "-d", ".", "--force"), 1, "merged.db: is a folder")


def test_a_file_where_a_folder_should_be(cli: Cli, folder: Path) -> None:
    path = good(folder / "a.db")
    (folder / "out").write_text("mine")
    for command in WRITERS.values():
        assert_one_error(cli(*command, "-i", path), 1, "out")
    assert (folder / "out").read_text() == "mine"
