"""Files to give away: the same numbers in every analysis, and none of what was replaced, on any page."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import rocpd
from rocpd.base import OutputError, RocpdError, UsageError
from rocpd.redact.options import Clue, Level, RedactOptions
from rocpd.redact.run import find_texts, redact
from rocpd.schema.quote import quote_name
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.reading import Reading, planned, run_planned
from rocpd.summary.result import Summary
from tests.build import TraceBuilder, guid_of
from tests.conftest import Cli, private, state_of
from tests.soak import paired, sized

pytestmark = pytest.mark.soak(2)  # on a job that is larger there

SECRET = "hunter2-planted-secret"


Numbers: TypeAlias = "Counter[tuple[Any, ...]] | str"


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated job."""
    folder = tmp_path_factory.mktemp("raw")
    simulate(JobOptions(out=folder, ranks=3, nodes=2, events_per_rank=sized(700, 2500), seed=20260731))
    return folder


@pytest.fixture(scope="module", params=[Level.SHARE, Level.STRICT])
def pair(request: pytest.FixtureRequest, raw: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The job, and what is given away of it."""
    shared = tmp_path_factory.mktemp("redacted") / "shared"
    before = state_of(raw)
    with rocpd.connect(raw) as session:
        redact(session, shared, RedactOptions(request.param))
    assert state_of(raw) == before
    return raw, shared


def test_every_analysis_gives_the_same_numbers(pair: tuple[Path, Path]) -> None:
    names = [str(row[0]) for row in rocpd.analyses()]
    given, shared = (numbers_of(folder, *names) for folder in pair)
    for name in names:
        assert given[name] == shared[name], name
        assert given[name], name


def numbers_of(job: Path | list[Path], *names: str) -> dict[str, Numbers]:
    """Return analysis -> the rows of all its tables without texts, or the kind of its error."""
    with rocpd.connect(job) as session:
        analyses = run_planned(Reading(session), planned(names))
        return {name: _numbers(tables) for name, tables in analyses}


def _numbers(tables: Iterable[Summary]) -> Numbers:
    try:
        rows = [(table.name, *row) for table in tables for row in table]
    except RocpdError as error:
        return type(error).__name__
    return Counter((table, *(cell for cell in row if not isinstance(cell, str))) for table, *row in rows)


@pytest.mark.parametrize("level", sized([Level.STRICT], [*Level]))
def test_files_of_real_profilers(level: Level, tmp_path: Path) -> None:
    """They hold one name in several forms, paths of users whom no variable names, and accounts of containers."""
    raw = [
        *private("rocprofiler-systems/*.db", 2),
        *private("rocprofv3-other/*.db", 1),
        *private("rocprofv3/*.db", 12)[:1],
    ]
    with rocpd.connect(raw) as session:
        redact(session, tmp_path / "out", RedactOptions(level))
    names = ("kernels", "api", "domains", "gpu-time", "launch", "categories", "memory")
    assert numbers_of(raw, *names) == numbers_of(tmp_path / "out", *names)


@pytest.mark.parametrize("level", Level)
def test_texts_that_differ_still_differ(level: Level, tmp_path: Path) -> None:
    """Strings are unique in a file; a strict one has one name for all forms of a kernel's name."""
    names = ("void gemm<float>(float*)", "void gemm<float>(float*) [clone .kd]", "gemm", "gemm.kd", "/home/a1/x", "x")
    trace = TraceBuilder().kernel(names[0], 1, 2).kernel(names[1], 3, 4).kernel("gemm", 5, 6)
    for number, name in enumerate(names):
        trace.region(name, 10 * number + 10, 10 * number + 15)
    path = trace.write(tmp_path / "job.db", views=True)
    with rocpd.connect(path) as session:
        redact(session, tmp_path / "out", RedactOptions(level))
    with rocpd.connect(tmp_path / "out") as session:
        (row,) = session.execute("SELECT COUNT(DISTINCT name), COUNT(*) FROM regions").fetchall()
        assert row == (len(names), len(names))


@pytest.mark.parametrize(("user", "stays"), [("alice17", False), ("rocm", True)])
def test_users_whom_only_a_path_names(user: str, stays: bool, tmp_path: Path) -> None:
    """They go from other texts too; those of containers, which stand in names of public software, stay."""
    trace = TraceBuilder().region(f"{user}_call", 1, 2).region("load", 3, 4, message=f"/home/{user}/model.bin")
    path = trace.write(tmp_path / "job.db", views=True)
    with rocpd.connect(path) as session:
        counted = redact(session, tmp_path / "out", RedactOptions(dry_run=True))
        assert counted == redact(session, tmp_path / "out", RedactOptions())
    assert bool(find_texts(tmp_path / "out" / "rank0.db", [user])) == stays
    with rocpd.connect(tmp_path / "out") as session:
        (name,) = session.execute("SELECT name FROM regions ORDER BY start LIMIT 1").fetchall()[0]
        assert name == (f"{user}_call" if stays else "user-01_call")


def test_rows_ids_and_ranks_stay(pair: tuple[Path, Path]) -> None:
    sql = (
        "SELECT K.rank, K.id, K.duration, K.stack_id FROM kernels K ORDER BY 1, 2",
        "SELECT rank, id, duration FROM regions ORDER BY 1, 2",
        "SELECT rank, COUNT(*), SUM(size) FROM memory_copies GROUP BY rank ORDER BY 1",
    )
    for statement in sql:
        raw, shared = (rocpd.connect(folder) for folder in pair)
        with raw, shared:
            assert raw.execute(statement).fetchall() == shared.execute(statement).fetchall()
            assert {rank.guid for rank in raw.ranks}.isdisjoint({rank.guid for rank in shared.ranks})
            assert [rank.pid for rank in raw.ranks] == [rank.pid for rank in shared.ranks]
            hosts = [(a.hostname, b.hostname) for a, b in zip(raw.ranks, shared.ranks, strict=True)]
            assert len(set(hosts)) == len({host for host, _ in hosts}) == 2


def test_what_was_redacted_can_be_redacted_again(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """The names in it, such as host-01, tell nothing, and no search for them stops it."""
    with rocpd.connect(pair[1]) as session:
        redact(session, tmp_path / "out", RedactOptions(Level.STRICT))
    assert numbers_of(pair[0], "gpu-time") == numbers_of(tmp_path / "out", "gpu-time")


def test_files_are_whole(pair: tuple[Path, Path]) -> None:
    for path in pair[1].glob("*.db"):
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA freelist_count").fetchall() == [(0,)]
        assert connection.execute("SELECT COUNT(*) FROM kernels").fetchall()[0][0] > 0
        connection.close()


@pytest.mark.parametrize(("level", "indexes"), [(Level.SHARE, ["regions_by_start"]), (Level.STRICT, [])])
def test_indexes_stay_unless_their_texts_tell(level: Level, indexes: list[str], tmp_path: Path) -> None:
    path = TraceBuilder(host="node17").kernel("gemm", 5, 9).write(tmp_path / "a.db")
    connection = sqlite3.connect(path)
    (table,) = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_region_%'").fetchone()
    for name in ("regions_by_start", "of node17"):
        connection.execute(f'CREATE INDEX "{name}" ON {quote_name(table)} (start)')
    connection.close()
    with rocpd.connect(path) as session:
        redact(session, tmp_path / "out", RedactOptions(level))
    connection = sqlite3.connect(tmp_path / "out" / "rank0.db")
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    connection.close()
    assert [name for (name,) in rows] == indexes


def plant(path: Path) -> int:
    """Put the secret into every text of one row of every table, and into the environment; return how many texts."""
    connection = sqlite3.connect(path)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    planted = 0
    for table in (name for name in tables if name.startswith("rocpd_")):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quote_name(table)})")]
        first = connection.execute(f"SELECT MIN(id) FROM {quote_name(table)}").fetchone()[0]
        for column in columns:
            name = quote_name(column)
            what = f"typeof({name}) = 'text' AND id = ?"
            if column in ("guid", "environment") or table.startswith("rocpd_metadata"):
                continue
            try:
                cursor = connection.execute(
                    f"UPDATE {quote_name(table)} SET {name} = {name} || ' {SECRET} ' WHERE {what}", (first,)
                )
                planted += cursor.rowcount
            except sqlite3.IntegrityError:  # a CHECK: no text of the user's can stand there
                continue
        if table.startswith("rocpd_info_process"):
            connection.execute(f"UPDATE {quote_name(table)} SET environment = ?", (f'{{"API_KEY": "{SECRET}"}}',))
    connection.commit()
    connection.close()
    return planted


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (path,) = simulate(JobOptions(out=tmp_path / "job", ranks=1, events_per_rank=500))
    return path


def test_a_secret_in_any_column_goes(job: Path, tmp_path: Path) -> None:
    assert plant(job) >= 50
    assert find_texts(job, [SECRET]) == [SECRET]
    with rocpd.connect(job) as session:
        redact(session, tmp_path / "out", RedactOptions())
    (path,) = (tmp_path / "out").glob("*.db")
    assert SECRET.encode() not in path.read_bytes()


def test_when_a_machine_was_started_names_it_too(tmp_path: Path) -> None:
    """`rocpd record` says it: containers of one machine have no other name in common."""
    boots = [digit * 32 for digit in "aab"]
    job = [
        TraceBuilder(n, machine="image", extdata={"boot_id": boot}).kernel("k", 5, 9) for n, boot in enumerate(boots)
    ]
    with rocpd.connect([trace.write(tmp_path / f"{n}.db") for n, trace in enumerate(job)]) as session:
        redact(session, tmp_path / "out", RedactOptions())
    assert not [path for path in (tmp_path / "out").glob("*.db") if find_texts(path, boots)]
    with rocpd.connect(tmp_path / "out") as shared:
        first, second, third = (rank.machine_id for rank in shared.ranks)
    assert first == second != third


def test_what_is_found_afterwards_is_refused(job: Path, tmp_path: Path) -> None:
    plant(job)
    connection = sqlite3.connect(job)
    (table,) = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_sample_%'").fetchone()
    connection.execute(f'ALTER TABLE {quote_name(table)} ADD COLUMN "{SECRET}" TEXT')
    connection.commit()
    connection.close()
    with (
        rocpd.connect(job) as session,
        pytest.raises(OutputError, match=r"rank0\.db: a text of the schema would hold a secret"),
    ):
        redact(session, tmp_path / "out", RedactOptions())
    assert not (tmp_path / "out").exists()


def test_only_counting(job: Path, tmp_path: Path, cli: Cli) -> None:
    with rocpd.connect(job) as session:
        counted = redact(session, tmp_path / "out", RedactOptions(dry_run=True))
        assert not (tmp_path / "out").exists()
        assert counted == redact(session, tmp_path / "out", RedactOptions())
    assert counted["rocpd_info_node", "hostname"] == 1


def test_the_command(job: Path, tmp_path: Path, cli: Cli) -> None:
    said = cli("redact", job, "-d", tmp_path / "out")
    assert said.code == 0
    assert said.out.splitlines()[0].split() == ["table", "column", "replaced"]
    assert "wrote" in said.err
    assert cli("redact", job, "-d", tmp_path / "out").code == 1
    assert cli("redact", job, "-d", tmp_path / "out", "--force").code == 0
    assert cli("redact", job, "-d", job.parent, "--force").code == 1
    assert cli("redact", job, "-d", tmp_path / "new", "--rules", job).code == 2
    rules = tmp_path / "rules.toml"
    rules.write_text('[replace]\n"hip[A-Z]\\\\w+" = "api"\n')
    assert cli("redact", job, "-d", tmp_path / "new", "--rules", rules).code == 0
    said = cli("query", "select count(*) from regions where name like 'hip%'", tmp_path / "new", "--format", "csv")
    assert said.out.split() == ["count(*)", "0"]


def test_a_window_is_given_away_alone(job: Path, tmp_path: Path) -> None:
    with rocpd.connect(job, window=rocpd.Window("10%", "90%")) as session:
        redact(session, tmp_path / "out", RedactOptions())
        expected = session.execute("SELECT COUNT(*) FROM kernels").fetchall()
    with rocpd.connect(tmp_path / "out") as session:
        assert session.execute("SELECT COUNT(*) FROM kernels").fetchall() == expected


def test_kinds_that_do_not_exist(job: Path, tmp_path: Path) -> None:
    with rocpd.connect(job) as session, pytest.raises(UsageError):
        redact(session, tmp_path / "out", RedactOptions(rules=tmp_path / "missing.toml"))


KEPT = {
    Clue.HOST: "node-alpha17",
    Clue.MACHINE: "machine-beta17",
    Clue.USER: "gamma17",
    Clue.PATH: "/srv/delta17/model.bin",
    Clue.ARGUMENT: "epsilon17",
    Clue.VARIABLE: "zeta17",
    Clue.ADDRESS: "10.17.3.117",
    Clue.POINTER: "0x7f2a40001230",
    Clue.MAIL: "eta17@theta.example",
    Clue.URL: "https://iota17.example/x",
    Clue.SECRET: "hf_kappa17Kappa17Kappa17Kappa17Kappa17",
    Clue.GUID: "17171717-aaaa-4bbb-8ccc-171717171717",
    Clue.KERNEL: "lambda17_kernel",
    Clue.MARKER: "mu17 phase",
    Clue.TEXT: "nu17_call",
}
"""Kind -> a text that is of the kind alone."""


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Level, set[Clue]]]:
    """A file with a text of every kind, and the kinds that stay at a level unless more is kept."""
    folder = tmp_path_factory.mktemp("telling")
    trace = TraceBuilder(
        host=KEPT[Clue.HOST],
        machine=KEPT[Clue.MACHINE],
        command=f"./run {KEPT[Clue.ARGUMENT]}",
        environment={"USER": KEPT[Clue.USER], "MINE": KEPT[Clue.VARIABLE]},
    )
    trace.kernel(KEPT[Clue.KERNEL], 10, 20).region("roctxRangePushA", 1, 9, message=KEPT[Clue.MARKER])
    trace.region(KEPT[Clue.TEXT], 30, 40)
    for kind in (Clue.USER, Clue.PATH, Clue.ADDRESS, Clue.POINTER, Clue.MAIL, Clue.URL, Clue.SECRET, Clue.GUID):
        trace.arg(kind, KEPT[kind])
    path = trace.write(folder / "job.db")
    with rocpd.connect(path) as session:
        for level in Level:
            redact(session, folder / level, RedactOptions(level))
    return path, {level: _kinds_in(folder / level) for level in Level}


def _kinds_in(folder: Path) -> set[Clue]:
    content = (folder / "rank0.db").read_bytes()
    return {kind for kind, text in KEPT.items() if text.encode() in content}


def test_what_stays_unless_more_is_kept(telling: tuple[Path, dict[Level, set[Clue]]]) -> None:
    assert telling[1] == {Level.SHARE: {Clue.KERNEL, Clue.MARKER, Clue.TEXT, Clue.POINTER}, Level.STRICT: set()}


@pytest.mark.parametrize(("kind", "level"), paired(KEPT, Level))
def test_a_kind_that_is_kept_stays(
    level: Level, kind: Clue, telling: tuple[Path, dict[Level, set[Clue]]], tmp_path: Path
) -> None:
    """Alone, or else an error says with what."""
    path, usual = telling
    with rocpd.connect(path) as session:
        keep: tuple[str, ...] = (kind,)
        try:
            redact(session, tmp_path / "out", RedactOptions(level, keep))
        except UsageError:
            assert level is Level.STRICT
            keep = (kind, Clue.TEXT)
            redact(session, tmp_path / "out", RedactOptions(level, keep))
    assert _kinds_in(tmp_path / "out") in (usual[level] | {*keep}, {*keep, Clue.POINTER})  # one in a text that stays


@pytest.mark.parametrize(("word", "hint"), [("kernels", "did you mean kernel?"), ("rule", "leave out --rules")])
def test_what_cannot_be_kept(word: str, hint: str, job: Path, tmp_path: Path, cli: Cli) -> None:
    said = cli("redact", job, "-d", tmp_path / "out", "--level", "strict", "--keep", word)
    assert (said.code, hint in said.err) == (2, True), said


def test_two_files_with_one_suffix_get_two(tmp_path: Path, cli: Cli) -> None:
    """Their GUIDs differ by `#2` in SQL only: what the files hold is the same, and goes."""
    (tmp_path / "job").mkdir()
    for number, name in enumerate("ab"):
        TraceBuilder(1, host=name).kernel("gemm", 1, 2 + number).write(tmp_path / "job" / f"{name}.db")
    assert cli("redact", tmp_path / "job", "-d", tmp_path / "out").code == 0
    with rocpd.connect(tmp_path / "out") as session:
        rows = session.execute(
            "SELECT rank, guid, SUM(duration) FROM kernels GROUP BY rank, guid ORDER BY 1"
        ).fetchall()
    assert [(rank, duration) for rank, _, duration in rows] == [(0, 1), (1, 2)]
    assert len({guid for _, guid, _ in rows}) == 2
    assert not any(guid_of(1) in path.read_bytes().decode("latin-1") for path in (tmp_path / "out").iterdir())
