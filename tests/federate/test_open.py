"""Opening leaves no trace: each state that a file can be in, with real writers in other processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import InputError
from rocpd.federate.open.opening import opening_of, uri_of
from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.conftest import state_of
from tests.federate.writers import EXCLUSIVE, HALF_DONE, LIVE_WAL, RESERVED, killed_writer, writer
from tests.soak import sized

STRINGS = f"rocpd_string{suffix_of(guid_of(0))}"
COUNT = "SELECT count(*) FROM rocpd_string"
PLAIN = 300


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 300 strings, in a folder of its own."""
    trace = TraceBuilder().kernel("gemm", 10, 20)
    while len(trace.rows["rocpd_string"]) < PLAIN:
        trace.string(f"text {len(trace.rows['rocpd_string'])}")
    (tmp_path / "data").mkdir()
    return trace.write(tmp_path / "data" / "a.db")


@pytest.fixture
def recovered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where recovered copies go."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run_sql(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def strings_in(path: Path) -> tuple[int, list[str]]:
    """Read a file as a user does; return the number of strings and the notes."""
    with rocpd.connect(path) as session:
        return session.sql(COUNT).fetchall()[0][0], session.notes


# Row 1: rollback journal, nothing beside it.


def test_plain_file(path: Path) -> None:
    before = state_of(path.parent)
    assert opening_of(path).uri.endswith("?mode=ro")
    assert strings_in(path) == (PLAIN, [])
    assert state_of(path.parent) == before


@pytest.mark.parametrize("left", [b"", b"\0" * 512])
def test_journals_of_modes_truncate_and_persist_are_nothing(left: bytes, path: Path) -> None:
    Path(f"{path}-journal").write_bytes(left)
    before = state_of(path.parent)
    assert strings_in(path) == (PLAIN, [])
    assert state_of(path.parent) == before


# Row 2: WAL without a log, or with an empty one.


@pytest.mark.parametrize("log", [None, b""])
def test_closed_wal_file(log: bytes | None, path: Path) -> None:
    run_sql(path, "PRAGMA journal_mode=wal", f"INSERT INTO {STRINGS} (string) VALUES ('x')")
    if log is not None:
        Path(f"{path}-wal").write_bytes(log)
    before = state_of(path.parent)
    assert len(before) == (1 if log is None else 2)
    assert opening_of(path).uri.endswith("?immutable=1")
    assert strings_in(path) == (PLAIN + 1, [])
    assert state_of(path.parent) == before


VERSIONS = (0, 1, 2, 3, 127, 128, 255)


@pytest.mark.soak(30)
@pytest.mark.parametrize("version_at", [18, 19])
@pytest.mark.parametrize("is_writable", [True, False], ids=["writable", "read-only"])
def test_any_version_in_the_header(version_at: int, is_writable: bool, path: Path) -> None:
    """SQLite goes by byte 19 alone (1: journal, 2: WAL); a file that it took for WAL would get a -shm and a -wal."""
    content = path.read_bytes()
    path.parent.chmod(0o755 if is_writable else 0o555)
    for version in sized(VERSIONS, range(256)) if is_writable else VERSIONS:
        path.write_bytes(content[:version_at] + bytes([version]) + content[version_at + 1 :])
        before = state_of(path.parent)
        with contextlib.suppress(InputError):
            strings_in(path)
        assert state_of(path.parent) == before, version
    path.parent.chmod(0o755)


# Row 3: WAL with a live writer.


def test_live_wal_writer(path: Path, recovered: Path) -> None:
    with writer(path, LIVE_WAL, STRINGS):
        before = state_of(path.parent)
        assert set(before) == {"a.db", "a.db-wal", "a.db-shm"}
        assert opening_of(path).uri.endswith("?mode=ro")
        assert strings_in(path) == (PLAIN + 2, [])
        after = state_of(path.parent)
    # The writer's shared memory holds the readers' marks; the data and the log are evidence.
    assert set(after) == set(before)
    assert {**after, "a.db-shm": ""} == {**before, "a.db-shm": ""}
    assert list(recovered.iterdir()) == []


def test_live_wal_writer_seen_through_a_symlink(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    with writer(path, LIVE_WAL, STRINGS):
        assert strings_in(tmp_path / "link.db") == (PLAIN + 2, [])


def test_this_process_may_be_the_writer(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(f"INSERT INTO {STRINGS} (string) VALUES ('mine')")
    assert strings_in(path) == (PLAIN + 1, [])
    connection.execute(f"INSERT INTO {STRINGS} (string) VALUES ('and more')")
    assert strings_in(path) == (PLAIN + 2, [])
    connection.close()


# Row 4: a killed writer.


@pytest.mark.parametrize("linked", [False, True])
def test_killed_wal_writer(linked: bool, path: Path, recovered: Path, tmp_path: Path) -> None:
    killed_writer(path, LIVE_WAL, STRINGS)
    path_given = tmp_path / "link.db" if linked else path
    if linked:
        path_given.symlink_to(path)
    before = state_of(path.parent)
    assert set(before) == {"a.db", "a.db-wal", "a.db-shm"}
    count, notes = strings_in(path_given)
    assert count == PLAIN + 2
    assert [note.split(": ", 1)[1] for note in notes] == [
        "its writer was killed (a.db-wal is left); reading a recovered copy"
    ]
    assert state_of(path.parent) == before
    assert list(recovered.iterdir()) == []


def test_killed_wal_writer_whose_shared_memory_is_gone(path: Path, recovered: Path) -> None:
    killed_writer(path, LIVE_WAL, STRINGS)
    Path(f"{path}-shm").unlink()
    before = state_of(path.parent)
    assert strings_in(path)[0] == PLAIN + 2
    assert state_of(path.parent) == before
    assert list(recovered.iterdir()) == []


@pytest.mark.parametrize("linked", [False, True])
def test_killed_rollback_writer(linked: bool, path: Path, recovered: Path, tmp_path: Path) -> None:
    clean = path.read_bytes()
    killed_writer(path, HALF_DONE, STRINGS)
    assert path.read_bytes() != clean, "the writer must have reached the file"
    path_given = tmp_path / "link.db" if linked else path
    if linked:
        path_given.symlink_to(path)
    before = state_of(path.parent)
    assert set(before) == {"a.db", "a.db-journal"}
    with rocpd.connect(path_given) as session:
        assert session.sql("SELECT count(*), max(length(string)) < 100 FROM rocpd_string").fetchall() == [(PLAIN, 1)]
        assert "reading a recovered copy" in session.notes[0]
        assert len(list(recovered.iterdir())) == 1
    assert state_of(path.parent) == before
    assert list(recovered.iterdir()) == []


def test_a_recovered_copy_goes_when_connecting_fails(path: Path, recovered: Path, tmp_path: Path) -> None:
    killed_writer(path, LIVE_WAL, STRINGS)
    (tmp_path / "bad.db").touch()
    with pytest.raises(InputError, match=r"bad\.db: empty"):
        rocpd.connect([path, tmp_path / "bad.db"])
    assert list(recovered.iterdir()) == []


def test_a_wal_that_belongs_to_nothing_in_a_rollback_file(path: Path, recovered: Path) -> None:
    Path(f"{path}-wal").write_bytes(b"left over")
    before = state_of(path.parent)
    assert strings_in(path)[0] == PLAIN
    assert state_of(path.parent) == before
    assert list(recovered.iterdir()) == []


# Writers of the rollback journal that are alive.


def test_live_writer_with_a_reserved_lock(path: Path, recovered: Path) -> None:
    with writer(path, RESERVED, STRINGS):
        before = state_of(path.parent)
        assert strings_in(path) == (PLAIN, [])
        assert state_of(path.parent) == before
    assert list(recovered.iterdir()) == []


@pytest.mark.parametrize("body", [EXCLUSIVE, HALF_DONE])
def test_an_exclusive_lock_is_reported(body: str, path: Path, recovered: Path) -> None:
    with writer(path, body, STRINGS):
        before = state_of(path.parent)
        with pytest.raises(InputError, match=r"a\.db: locked by a writer") as error:
            rocpd.connect(path)
        assert "wait" in (error.value.hint or "")
        assert state_of(path.parent) == before
    assert list(recovered.iterdir()) == []


def test_a_lock_that_is_released_in_time_is_waited_for(path: Path) -> None:
    body = EXCLUSIVE + 'import threading; threading.Timer(0.5, lambda: __import__("os")._exit(0)).start()'
    with writer(path, body, STRINGS):
        assert strings_in(path) == (PLAIN, [])


# Row 5: no locks.


class LocklessFile(apsw.VFSFile):
    """A file on a disk without locks."""

    def xLock(self, level: int) -> None:  # noqa: N802 (SQLite's name)
        raise apsw.IOError("locks do not work here")


class LocklessDisk(apsw.VFS):
    """A network disk without locks, as SQLite sees it."""

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return LocklessFile("unix", name, flags)


@pytest.fixture
def lockless(path: Path) -> Iterator[Path]:
    """`path`, on a disk without locks."""
    disk = LocklessDisk("lockless", "unix", makedefault=True)
    yield path
    disk.unregister()


def test_a_disk_without_locks_is_read_as_immutable_with_a_note(lockless: Path) -> None:
    before = state_of(lockless.parent)
    count, notes = strings_in(lockless)
    assert count == PLAIN
    assert len(notes) == 1
    assert "a.db: opened without locks (" in notes[0]
    assert state_of(lockless.parent) == before


def test_a_disk_without_locks_and_a_journal_is_refused(lockless: Path) -> None:
    Path(f"{lockless}-journal").write_bytes(b"\0" * 512)
    with pytest.raises(InputError, match=r"a\.db: cannot be locked, and a journal lies beside it"):
        rocpd.connect(lockless)


# Rights. Root may read anything, so these run as nobody.


def as_nobody(code: str, warm: Path, *arguments: Path) -> str:
    """Run `code` in another process without any permissions; return what it printed.

    Python's own files may be out of its reach then, so it opens `warm` before it drops its rights: that imports
    all it needs.
    """
    root = Path(__file__).parent.parent.parent
    prepare = """
import os, sys
sys.path.insert(0, sys.argv.pop(1))
import rocpd
with rocpd.connect(sys.argv.pop(1)) as session:
    session.sql("SELECT count(*) FROM kernels").fetchall()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
os.chdir("/")
"""
    command = [sys.executable, "-c", prepare + code, str(root), str(warm)]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


OPEN_AS_NOBODY = """
try:
    with rocpd.connect(sys.argv[1]) as session:
        print(session.sql("SELECT count(*) FROM rocpd_string").fetchall()[0][0], session.notes)
except rocpd.RocpdError as error:
    print(type(error).__name__, error)
"""


@pytest.fixture
def open_folder(path: Path) -> Iterator[Path]:
    """A folder that everyone may enter and only its owner may write, holding `a.db`."""
    with tempfile.TemporaryDirectory(prefix="rocpd-test-") as name:
        folder = Path(name)
        (folder / "a.db").write_bytes(path.read_bytes())
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_folder_without_write_permission(mode: str, open_folder: Path, path: Path) -> None:
    open_folder.chmod(0o755)
    run_sql(open_folder / "a.db", f"PRAGMA journal_mode={mode}")
    open_folder.chmod(0o555)
    (open_folder / "a.db").chmod(0o444)
    before = state_of(open_folder)
    assert as_nobody(OPEN_AS_NOBODY, path, open_folder / "a.db") == f"{PLAIN} []"
    assert state_of(open_folder) == before


def test_a_file_without_read_permission(open_folder: Path, path: Path) -> None:
    (open_folder / "a.db").chmod(0)
    said = as_nobody(OPEN_AS_NOBODY, path, open_folder / "a.db")
    assert said == f"InputError {open_folder}/a.db: no permission to read it"


# Any name.

NAMES = [
    "plain.db",
    "it's.db",
    'double"quote.db',
    "back`tick[1].db",
    "two words.db",
    "100%.db",
    "%41%00.db",
    "a#b.db",
    "what?mode=rwc.db",
    "a&b=c;d.db",
    "Größe-日本語-🚀.db",
    "new\nline.db",
    "tab\there.db",
    "back\\slash.db",
    "-leading-dash.db",
    "--force",
    "~home.db",
    "file:uri.db",
    ":memory:",
    "x" * 200,
    "é" * 100,
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_file_name(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.rename(path.with_name(name))
    monkeypatch.chdir(path.parent)
    before = state_of(path.parent)
    assert strings_in(path.with_name(name)) == (PLAIN, [])
    assert strings_in(Path(name)) == (PLAIN, [])
    with rocpd.connect(name) as session:
        assert session.sql("SELECT count(*) FROM kernels").fetchall() == [(1,)]
    assert state_of(path.parent) == before


def test_a_name_that_is_not_utf8_is_reported(path: Path) -> None:
    odd = path.rename(path.with_name(os.fsdecode(b"odd-\xff.db")))
    with pytest.raises(InputError, match=r"odd-\\xff\.db: the name is not UTF-8"):
        rocpd.connect(odd)


def test_symlinks_and_long_folders(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path.joinpath(*["d" * 100] * 3)
    deep.mkdir(parents=True)
    (deep / "link.db").symlink_to(path)
    monkeypatch.chdir(deep)
    for path_given in (deep / "link.db", Path("link.db"), Path("../../../data/a.db")):
        assert strings_in(path_given) == (PLAIN, [])


def test_uris_escape_every_byte() -> None:
    assert uri_of(Path("/a b/%?#&'\n\udcff.db"), "mode=ro") == "file:/a%20b/%25%3F%23%26%27%0A%FF.db?mode=ro"


# What is no database.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "bad.db: empty"),
        (b"short", "bad.db: not a SQLite database"),
        (bytes(range(256)) * 64, "bad.db: not a SQLite database"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "bad.db: "),
    ],
)
def test_what_is_no_database_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(content)
    with pytest.raises(InputError) as error:
        rocpd.connect(tmp_path / "bad.db")
    assert message in error.value.message
    assert "\n" not in error.value.message


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.95])
def test_a_cut_database_is_damaged_or_gives_all_its_rows(share: float, path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: max(512, int(len(content) * share))])
    with pytest.raises(InputError, match=r"a\.db: "):
        rocpd.connect(path)


def test_text_in_utf16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA encoding = 'UTF-16le'; CREATE TABLE rocpd_metadata_00000000 (id, tag)")
    connection.close()
    with pytest.raises(InputError, match="its text is UTF-16") as refused:
        rocpd.connect(path)
    assert refused.value.hint == "sqlite3 wide.db .dump | sqlite3 new.db"


def test_missing_and_special_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "dangling.db").symlink_to(tmp_path / "gone")
    for name, message in (
        ("pipe.db", "not a regular file"),
        ("dangling.db", "no such file"),
        ("no.db", "no such file"),
    ):
        with pytest.raises(InputError, match=f"{name}: {message}"):
            rocpd.connect(tmp_path / name)
