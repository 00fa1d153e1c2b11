"""Entries of the index: a changed file has none, and what goes wrong with them costs time, never an answer."""

from __future__ import annotations

import functools
import json
import os
import random
import resource
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import rocpd
from rocpd.base import OutputError, cache
from rocpd.cli import run
from rocpd.federate.limits import Limits
from rocpd.index import build as builder
from rocpd.index.build import build
from rocpd.index.entries import indexes, state_of
from tests.build import TraceBuilder, guid_of
from tests.soak import sized

SEQUENCES, STEPS = sized((6, 8), (1000, 12))  # a step is an attack, or a new index
STATE_SEQUENCES, STATE_STEPS = sized(50, 1000), 6
ASKED = "SELECT rank, count(*), sum(size), min(start), min(name) FROM memory_copies GROUP BY rank"
PLANNED = Limits(small_bytes=0)


def _rank(path: Path, number: int, copies: int = 3) -> Path:
    path.write_bytes(_bytes_of_rank(number, copies))
    return path


@functools.cache
def _bytes_of_rank(number: int, copies: int) -> bytes:
    trace = TraceBuilder(number)
    for row in range(copies):
        trace.copy(100 + row, 200 + row, name="copy", size=1000 * number + row, stack=row)
    with tempfile.TemporaryDirectory() as folder:
        return trace.write(Path(folder) / "rank.db", views=True).read_bytes()


def _suffix(path: Path) -> str:
    connection = sqlite3.connect(path)
    ((name,),) = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'rocpd_memory_copy_*'"
    ).fetchall()
    connection.close()
    return str(name).removeprefix("rocpd_memory_copy")


def _change(path: Path, *statements: str) -> None:
    """Run statements, which have {uuid} in the place of the suffix."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = off")
    with connection:
        for statement in statements:
            connection.execute(statement.format(uuid=_suffix(path)))
    connection.close()


def _truth(job: list[Path]) -> tuple[int, int]:
    """Number and size of the copies, as Python's own SQLite has them."""
    sums = []
    for path in job:
        connection = sqlite3.connect(path)
        sums += connection.execute("SELECT count(*), total(size) FROM rocpd_memory_copy").fetchall()
        connection.close()
    return sum(count for count, _ in sums), int(sum(size for _, size in sums))


def _analysed(session: rocpd.Session) -> tuple[int, int]:
    """Number and size of the copies, as an analysis has them, whose answers are kept."""
    copies = session.summary("copies")
    calls, size = copies.columns.index("calls"), copies.columns.index("bytes")
    rows = list(copies)
    return sum(row[calls] for row in rows), sum(row[size] or 0 for row in rows)


def _append(job: list[Path], backup: Path, chance: random.Random) -> None:
    columns = "guid, nid, pid, start, end, name_id, src_agent_id, dst_agent_id, event_id"
    copied = f'SELECT {columns}, {chance.randrange(99)} FROM "rocpd_memory_copy{{uuid}}" LIMIT 1'
    _change(job[0], f'INSERT INTO "rocpd_memory_copy{{uuid}}" ({columns}, size) {copied}')


def _update_as_old(job: list[Path], backup: Path, chance: random.Random) -> None:
    before = job[0].stat()
    _change(job[0], f'UPDATE "rocpd_memory_copy{{uuid}}" SET size = {chance.randrange(256)} WHERE id = 1')
    os.utime(job[0], ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(job: list[Path], backup: Path, chance: random.Random) -> None:
    before, new = job[0].stat(), job[0].with_suffix(".new")
    _rank(new, 0, chance.choice((2, 3, 4)))
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(job[0])


def _swap(job: list[Path], backup: Path, chance: random.Random) -> None:
    aside = job[0].with_suffix(".aside")
    job[0].rename(aside)
    job[1].rename(job[0])
    aside.rename(job[1])


def _restore(job: list[Path], backup: Path, chance: random.Random) -> None:
    shutil.copy2(backup, job[0])


def _checkpoint(job: list[Path], backup: Path, chance: random.Random) -> None:
    connection = sqlite3.connect(job[0])
    connection.execute("PRAGMA synchronous = off")
    connection.execute("PRAGMA journal_mode = wal")
    _update_as_old(job, backup, chance)
    connection.execute("PRAGMA wal_checkpoint(truncate)")
    connection.close()


def _set_clock_back(job: list[Path], backup: Path, chance: random.Random) -> None:
    _append(job, backup, chance)
    os.utime(job[0], (1, 1))


def _index(job: list[Path], backup: Path, chance: random.Random) -> None:
    with rocpd.connect(job, index="off") as session:
        build(session, backup.parent / "index")


ATTACKS: tuple[Callable[[list[Path], Path, random.Random], None], ...] = (
    _append, _update_as_old, _replace, _swap, _restore, _checkpoint, _set_clock_back, _index, _index,
)  # fmt: skip


@pytest.fixture
def only_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index holds one view: hundreds are built."""
    monkeypatch.setattr(builder, "VIEWS", ("memory_copies",))


@pytest.mark.soak(250)
@pytest.mark.usefixtures("only_copies")
def test_no_answer_is_stale(tmp_path: Path) -> None:
    answered = 0
    for number in range(SEQUENCES):
        chance, folder = random.Random(number), tmp_path / str(number)
        folder.mkdir()
        job = [_rank(folder / f"{rank}.db", rank) for rank in range(2)]
        backup = Path(shutil.copy2(job[0], folder / "backup"))
        _index(job, backup, chance)
        for _ in range(STEPS):
            attack = chance.choice(ATTACKS)
            attack(job, backup, chance)
            if _suffix(job[0]) == _suffix(job[1]):  # both are the same rank now
                break
            with rocpd.connect(job, limits=PLANNED, index_folder=folder / "index") as session:
                (answer,) = session.execute("SELECT count(*), sum(size) FROM memory_copies")
                assert answer == _truth(job), f"{number}: {attack.__name__}"
                assert _analysed(session) == answer, f"{number}: {attack.__name__}"
                index = session.job.files.index
                answered += index is not None and not index.why_not
        shutil.rmtree(folder)
    assert answered > SEQUENCES


@pytest.mark.soak(20)
def test_no_state_of_a_file_comes_back_with_other_content(tmp_path: Path) -> None:
    """As if a file had been indexed after every step: what is looked up by its state is what was indexed in it."""
    met_again, job = 0, [_rank(tmp_path / f"{rank}.db", rank) for rank in range(2)]
    backup = Path(shutil.copy2(job[0], tmp_path / "backup"))
    with rocpd.connect(job) as session:
        ranks = session.ranks
    for number in range(STATE_SEQUENCES):
        chance, known = random.Random(number), dict[str, bytes]()
        for path in job:
            _rank(path, job.index(path))
        for _ in range(STATE_STEPS):
            attack = chance.choice(ATTACKS)
            if attack is not _index:
                attack(job, backup, chance)
            for rank in ranks:
                state, content = state_of(rank), rank.opening.path.read_bytes()
                met_again += state in known
                assert known.setdefault(state, content) == content, f"{number}: {attack.__name__}"
    assert met_again > STATE_SEQUENCES


@pytest.mark.usefixtures("only_copies")
def test_an_open_session_sees_what_is_written(tmp_path: Path) -> None:
    job = [_rank(tmp_path / f"{rank}.db", rank) for rank in range(2)]
    with rocpd.connect(job) as session:
        build(session, tmp_path / "index")
    with rocpd.connect(job, limits=PLANNED, index="require", index_folder=tmp_path / "index") as session:
        before = session.execute(ASKED, strategy="columnar").fetchall()
        _change(job[0], 'DELETE FROM "rocpd_memory_copy{uuid}" WHERE id = 1')
        after = session.execute(ASKED).fetchall()
    assert (before[0][1], after[0][1]) == (3, 2)


def _indexed(folder: Path) -> tuple[list[Path], Path]:
    job = [_rank(folder / f"{rank}.db", rank) for rank in range(2)]
    with rocpd.connect(job) as session:
        built = build(session, folder / "index")
    assert [each.is_new for each in built] == [True, True]
    return job, folder / "index"


def _why_not(job: list[Path], root: Path) -> str:
    with rocpd.connect(job, limits=PLANNED, index_folder=root) as session, rocpd.connect(job, index="off") as plain:
        assert session.execute(ASKED).fetchall() == plain.execute(ASKED).fetchall()
        assert session.job.files.index is not None
        return session.job.files.index.why_not


@pytest.mark.usefixtures("only_copies")
def test_a_rank_that_comes_later_costs_that_rank(tmp_path: Path) -> None:
    job, root = _indexed(tmp_path)
    job.append(_rank(tmp_path / "2.db", 2))
    assert _why_not(job, root) == "2.db: no index of it as it is now"
    with rocpd.connect(job) as session:
        assert [each.is_new for each in build(session, root)] == [False, False, True]
    assert _why_not(job, root) == ""


def _claim(folder: Path, greatest: object) -> None:
    manifest = folder / "entry.json"
    facts = json.loads(manifest.read_text())
    for view in facts["views"].values():
        view["greatest"] = dict.fromkeys(view["greatest"], greatest)
    manifest.write_text(json.dumps(facts))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "memory_copies.parquet").unlink(),
        lambda folder: (folder / "memory_copies.parquet").write_bytes(b"PAR1 and nothing"),
        lambda folder: os.truncate(folder / "memory_copies.parquet", 700),
        lambda folder: (folder / "entry.json").write_text("{"),
        lambda folder: (folder / "entry.json").write_text('{"views": {"kernels": {"rows": 1}}, "source": 1}'),
        lambda folder: (folder / "entry.json").unlink(),
        lambda folder: folder.chmod(0),
    ],
    ids=[
        "missing",
        "no Parquet",
        "cut",
        "no JSON",
        "other JSON",
        "no manifest",
        "no rights",
    ],
)
@pytest.mark.usefixtures("only_copies")
def test_a_damaged_entry_gives_no_wrong_answer(damage: Callable[[Path], object], tmp_path: Path) -> None:
    job, root = _indexed(tmp_path)
    for entry in indexes(root).entries():
        damage(entry.folder)
    _why_not(job, root)
    for folder in root.iterdir():
        folder.chmod(0o700)


@pytest.mark.parametrize("greatest", [-1, "1", True, 1.5, None])
@pytest.mark.usefixtures("only_copies")
def test_what_cannot_be_the_greatest_number_is_no_entry(greatest: object, tmp_path: Path) -> None:
    job, root = _indexed(tmp_path)
    for entry in indexes(root).entries():
        _claim(entry.folder, greatest)
    assert "no index of it" in _why_not(job, root)


@pytest.mark.usefixtures("only_copies")
def test_a_killed_builder_leaves_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = [_rank(tmp_path / "0.db", 0)]

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with rocpd.connect(job, jobs=1) as session, monkeypatch.context() as dying:
        dying.setattr(builder, "facts_of", die)
        with pytest.raises(KeyboardInterrupt):
            build(session, tmp_path / "index")
    assert not (tmp_path / "index").exists()


@pytest.mark.usefixtures("only_copies")
def test_two_builders_leave_one_entry(tmp_path: Path) -> None:
    job = [_rank(tmp_path / "0.db", 0, 2000)]

    def index() -> None:
        with rocpd.connect(job, jobs=1) as session:
            build(session, tmp_path / "index")

    builders = [threading.Thread(target=index) for _ in range(4)]
    for thread in builders:
        thread.start()
    for thread in builders:
        thread.join()
    assert len(indexes(tmp_path / "index").entries()) == 1
    assert len(list((tmp_path / "index").iterdir())) == 1


def test_a_file_with_a_writer_is_not_indexed(tmp_path: Path) -> None:
    path = _rank(tmp_path / "0.db", 0)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("CREATE TABLE extra (x)")
    writer.commit()
    with rocpd.connect(path) as session:
        (built,) = build(session, tmp_path / "index")
    writer.close()
    assert "written" in built.why_not


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not of the processes that were at other ranks."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # of the processes that are started, which would be cut off
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    job = [_rank(tmp_path / f"{rank}.db", rank, 3000) for rank in range(4)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with rocpd.connect(job, jobs=2) as session:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            with pytest.raises(OutputError, match="cannot be written"):
                build(session, tmp_path / "index")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not (tmp_path / "index").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with rocpd.connect(_rank(tmp_path / "0.db", 0)) as session, pytest.raises(OutputError, match="file"):
        build(session, tmp_path / "file" / "index")


@pytest.mark.usefixtures("only_copies")
def test_a_shared_folder_keeps_the_entries_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_INDEX_FOLDER", str(tmp_path / "shared"))
    monkeypatch.setenv("ROCPD_CACHE_SIZE", "0")  # of the user's own
    monkeypatch.setattr(cache, "_DAY_S", -1)
    for number in range(2):
        with rocpd.connect(_rank(tmp_path / f"{number}.db", number)) as session:
            build(session)
    assert len(indexes(None).entries()) == 2


def test_raw_files_and_their_folder_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    path = _rank(tmp_path / "job" / "0.db", 0)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with rocpd.connect(path) as session:
        build(session, tmp_path / "index")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [each.name for each in path.parent.iterdir()] == ["0.db"]


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    job = [str(_rank(tmp_path / f"{rank}.db", rank)) for rank in range(2)]
    assert run(["query", ASKED, *job, "--index", "require"]) == 3
    assert "no index: nothing is indexed yet" in capsys.readouterr().err
    assert run(["index", *job]) == 0
    assert "indexed 2 ranks (" in capsys.readouterr().err
    assert run(["index", *job]) == 0
    assert "indexed 0 ranks, 2 ranks had one" in capsys.readouterr().err
    answers = []
    for options in (["--index", "require", "--strategy", "columnar"], ["--index", "off"]):
        assert run(["query", ASKED, *job, "-f", "csv", *options]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert run(["query", ASKED, *job, "--index", "off", "--strategy", "columnar"]) == 2
    assert "there is no index" in capsys.readouterr().err
    assert run(["cache", "list", "-f", "csv"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert {line.split(",")[1] for line in listed[1:]} == {"facts", "index"}
    assert run(["cache", "clear"]) == 0
    capsys.readouterr()
    assert run(["query", ASKED, *job, "--index", "require"]) == 3


def test_the_cache_commands_leave_a_shared_index_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ROCPD_INDEX_FOLDER", str(tmp_path / "shared"))
    job = str(_rank(tmp_path / "a.db", 0))
    assert run(["index", job]) == 0
    assert run(["cache", "clear"]) == 0
    assert run(["query", ASKED, job, "--index", "require"]) == 0
    capsys.readouterr()
    assert run(["cache", "list", "-f", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.usefixtures("only_copies")
def test_entries_of_another_version_can_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    job = str(_rank(tmp_path / "a.db", 0))
    for command in ("clear", "evict"):
        assert run(["index", job, "--no-summary"]) == 0
        (folder,) = (each.folder for each in indexes(None).folders())
        _claim(folder, None)
        capsys.readouterr()
        assert run(["cache", "list", "-f", "csv"]) == 0
        assert f"{folder},unreadable,0," in capsys.readouterr().out
        if command == "clear":
            assert run(["cache", "clear"]) == 0
        else:
            monkeypatch.setenv("ROCPD_CACHE_SIZE", "1")
            os.utime(folder / "entry.json", (0, 0))
            indexes(None).evict()
        assert not folder.exists()


def test_ranks_are_those_of_the_job(tmp_path: Path) -> None:
    """Number, GUID and host come from the job, whatever the file of the entry said."""
    job, root = _indexed(tmp_path)
    with rocpd.connect(job[1], limits=PLANNED, index="require", index_folder=root) as session:
        rows = session.execute("SELECT DISTINCT rank, guid FROM memory_copies", strategy="columnar").fetchall()
    assert rows == [(0, guid_of(1))]
