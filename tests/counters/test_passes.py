"""Passes of one program in files of their own: the same answers as from one, and nothing counts twelve times."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.counters.panels import PANELS
from tests.conftest import Cli, private

PASSES = 12


@pytest.fixture(scope="module")
def folder() -> Path:
    (path,) = private("rocprof-compute/vcopy_MI300X_A1_rocpd/workload/pmc_perf.csv", 1)
    return path.parent


@pytest.fixture(scope="module")
def files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A file for each pass of the real workload, as rocprofv3 would have written it: one run after the other."""
    with rocpd.connect(folder) as session:
        (rank,) = session.ranks
    return [
        one_pass(rank.opening.path, tmp_path_factory.mktemp(f"pass_{number}") / "results.db", rank.suffix, number)
        for number in range(1, PASSES + 1)
    ]


def one_pass(source: Path, path: Path, suffix: str, number: int) -> Path:
    shutil.copy(source, path)
    path.chmod(0o600)
    connection = apsw.Connection(str(path))
    values, dispatches = f'"rocpd_pmc_event{suffix}"', f'"rocpd_kernel_dispatch{suffix}"'
    processes = f'"rocpd_info_process{suffix}"'
    connection.execute(f"DELETE FROM {values} WHERE json_extract(extdata, '$.pass') <> {number}")
    for edge in ("start", "end"):
        time = f"SELECT json_extract(V.extdata, '$.{edge}') FROM {values} V WHERE V.event_id = {dispatches}.event_id"
        connection.execute(f'UPDATE {dispatches} SET "{edge}" = ({time})')
    connection.execute(f"UPDATE {values} SET extdata = '{{}}'")
    connection.execute(
        f"UPDATE {processes} SET extdata = '{{}}', start = {number * 1000}, \"end\" = {number * 1000 + 1}"
    )
    connection.close()
    return path


def rows(session: rocpd.Session, is_amds: bool) -> dict[tuple[str, str], tuple[object, ...]]:
    return {row[1:3]: row[3:] for name in PANELS for row in session.summary(name, amd_compatible=is_amds)}


@pytest.mark.parametrize("is_amds", [False, True])
def test_files_of_passes_answer_as_the_folder_does(folder: Path, files: list[Path], is_amds: bool) -> None:
    with rocpd.connect(folder) as one, rocpd.connect(files) as many:
        assert many.runs == PASSES
        expected, joined = rows(one, is_amds), rows(many, is_amds)
    assert joined == expected
    assert sum(row[0] is not None for row in joined.values()) > 250


def test_each_counter_is_of_the_first_pass_that_counted_it(folder: Path, files: list[Path]) -> None:
    with rocpd.connect(folder) as one, rocpd.connect(files[::-1]) as many:
        expected = {row[1]: row[3:] for row in one.summary("counters")}
        joined = {row[1]: row[3:] for row in many.summary("counters")}
    assert joined == expected
    assert len(expected) > 100


def test_everything_else_counts_one_pass(files: list[Path]) -> None:
    with rocpd.connect(files[::-1]) as session:
        ((name, calls),) = [row[:2] for row in session.summary("kernels")]
        shapes = list(session.summary("kernel-shapes"))
        assert session.notes[-1].startswith(f"{PASSES} passes of one program")
    assert (name, calls) == ("vecCopy(double*, double*, double*, int, int)", 3)
    assert [shape[3] for shape in shapes] == [3]


def test_sql_and_converters_read_one_pass_and_metrics_join_all(files: list[Path], tmp_path: Path, cli: Cli) -> None:
    counted = "SELECT COUNT(*), SUM(calls) FROM top_kernels JOIN (SELECT COUNT(*) AS calls FROM kernels)"
    metrics = "SELECT * FROM metrics ORDER BY panel, section, metric, kernel"
    with rocpd.connect(files) as session, rocpd.connect(files, all_passes=True) as every:
        for strategy in ("attached", "rows", "auto"):
            rows = session.execute("SELECT rank, dispatch_id FROM kernels", strategy=strategy).fetchall()
            assert rows == [(0, 1), (0, 2), (0, 3)]
        assert session.notes[-1] == (
            f"{PASSES} passes of one program, for different counters: the first is read; --all-passes reads all"
        )
        assert session.sql(counted).fetchall() == [(1, 3)]
        assert every.sql(counted).fetchall() == [(1, 3 * PASSES)]
        assert len(session.ranks) == PASSES
        assert len(session.attached_tables) == 1
        joined = session.sql(metrics).fetchall()
        assert sum(row[2] is not None for row in joined) > 250
        (path,) = session.convert("json", tmp_path / "one")
        (all_passes,) = every.convert("json", tmp_path / "all")
        assert all_passes.read_text().count("vecCopy") == PASSES * path.read_text().count("vecCopy") > 0
        merged = session.merge(tmp_path / "merged.db")
    with rocpd.connect(merged) as session:
        assert session.sql(counted).fetchall() == [(1, 3)]
        assert session.sql(metrics).fetchall() == joined
    assert cli("query", "select count(*) from kernels", *files, "--format", "csv").out == "count(*)\n3\n"
    every_row = cli("query", "select count(*) from kernels", *files, "--format", "csv", "--all-passes")
    assert every_row.out == f"count(*)\n{3 * PASSES}\n"


def test_info_says_which_rank_is_which_pass(files: list[Path], cli: Cli) -> None:
    said = cli("info", *files[1::-1], "--only", "job")
    assert "2 of one program, for different counters: rank 1 is pass 1, 0 is pass 2" in said.out


def test_runs_that_count_the_same_are_no_passes(files: list[Path], tmp_path: Path) -> None:
    again = tmp_path / "again.db"
    shutil.copy(files[0], again)
    connection = apsw.Connection(str(again))
    with rocpd.connect(again) as session:
        suffix = session.ranks[0].suffix
    connection.execute(f'UPDATE "rocpd_info_process{suffix}" SET start = 1000000, "end" = 1000001')
    connection.execute(f'UPDATE "rocpd_kernel_dispatch{suffix}" SET start = start + 7, "end" = "end" + 9')
    connection.close()
    with rocpd.connect([files[0], again]) as session:
        assert session.runs == 2
        assert [row[1] for row in session.summary("kernels")] == [6]
