"""Workload folders of rocprof-compute against their own files, wide and long."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
from pathlib import Path

import pytest

import rocpd
from tests.conftest import private


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folders() -> dict[str, Path]:
    return {path.parents[1].name: path.parent for path in private("rocprof-compute/*/workload/pmc_perf.csv", 3)}


def values(folder: Path) -> dict[tuple[int, str], float]:
    with rocpd.connect(folder) as session:
        rows = session.sql("SELECT dispatch_id, counter_name, value FROM counters_collection").fetchall()
    assert len({row[:2] for row in rows}) == len(rows)
    return {(dispatch, counter): value for dispatch, counter, value in rows}


def test_long_files_keep_each_value_and_its_pass(folders: dict[str, Path]) -> None:
    folder = folders["vcopy_MI300X_A1_rocpd"]
    rows = rows_of(folder / "pmc_perf.csv")
    expected = {(int(row["Dispatch_ID"]), row["Counter_Name"]): float(row["Counter_Value"]) for row in rows}
    assert values(folder) == expected
    with rocpd.connect(folder) as session:
        passes = session.sql(
            "SELECT json_extract(extdata, '$.pass'), json_extract(extdata, '$.start'), count(*)"
            " FROM rocpd_pmc_event GROUP BY 1, 2 ORDER BY 1, 2"
        ).fetchall()
        dispatches = session.sql("SELECT dispatch_id, name, grid_x, vgpr_count FROM kernels ORDER BY 1").fetchall()
        (rank,) = session.ranks
    assert len({number for number, _, _ in passes}) == 12
    assert {start for _, start, _ in passes} == {int(row["Start_Timestamp"]) for row in rows}
    assert dispatches == [(n, "vecCopy(double*, double*, double*, int, int)", 1_048_576, 4) for n in (1, 2, 3)]
    assert (rank.hostname, rank.command) == ("7f6eaef84eaf", "sample/vcopy -n 1048576 -b 256 -i 3")


def test_files_of_each_pass_are_one_program(folders: dict[str, Path], tmp_path: Path) -> None:
    """The folder as versions of 2026 write it, with a counter that two passes measure."""
    folder = folders["vcopy_MI300X_A1_rocpd"]
    rows = rows_of(folder / "pmc_perf.csv")
    starts = {n: sorted({row["Start_Timestamp"] for row in rows if row["Dispatch_ID"] == n}) for n in "123"}
    by_pass: dict[int, list[dict[str, str]]] = {number: [] for number in range(12)}
    for row in rows:
        by_pass[starts[row["Dispatch_ID"]].index(row["Start_Timestamp"])].append(row)
    again = next(row for row in by_pass[1] if row["Dispatch_ID"] == by_pass[0][0]["Dispatch_ID"])
    by_pass[1].append({**again, "Counter_Name": by_pass[0][0]["Counter_Name"], "Counter_Value": "77.0"})
    for number, some in by_pass.items():
        with gzip.open(tmp_path / f"results_pass_{number:02}.csv.gz", "wt", newline="") as file:
            writer = csv.DictWriter(file, [*some[0], "GUID", "Correlation_Id"])
            writer.writeheader()
            writer.writerows({**row, "GUID": f"g{number}", "Correlation_Id": "5"} for row in some)
    (tmp_path / "sysinfo.csv").write_bytes((folder / "sysinfo.csv").read_bytes())
    whole, by_pass_file = values(folder), values(tmp_path)
    assert [by_pass_file.pop(name) for name in by_pass_file.keys() - whole.keys()] == [77.0]
    assert by_pass_file == whole


@pytest.mark.parametrize(("name", "passes"), [("path_MI200", 24), ("path_MI300X_A1", 23)])
def test_wide_files_keep_each_column_that_counts(folders: dict[str, Path], name: str, passes: int) -> None:
    folder = folders[name]
    (first, *_) = rows_of(folder / "pmc_perf.csv")
    found = values(folder)
    of_first = {counter: value for (dispatch, counter), value in found.items() if dispatch == 0}
    counted = re.compile(r"(SQ|SQC|TA|TD|TCP|TCC|SPI|CPC|CPF|GRBM)_\w+(\[\d+\])?")
    expected = {column: float(text) for column, text in first.items() if counted.fullmatch(column)}
    assert {column: of_first[column] for column in expected} == expected
    assert of_first["SQ_IFETCH_LEVEL_ACCUM"] == float(rows_of(folder / "SQ_IFETCH_LEVEL.csv")[0]["SQ_ACCUM_PREV_HIRES"])
    further = {column for path in folder.glob("SQ_*.csv") for column in rows_of(path)[0] if counted.fullmatch(column)}
    accumulated = {f"{path.stem}_ACCUM" for path in folder.glob("SQ_*.csv")}
    again = {name for name in of_first if (match := re.fullmatch(r"(\w+)_\d+", name)) and match[1] in of_first}
    assert set(of_first) - again == set(expected) | accumulated | further - {"SQ_ACCUM_PREV_HIRES"}
    (level,) = (rows_of(path)[0] for path in folder.glob("SQ_LEVEL_WAVES.csv"))
    assert of_first[f"GRBM_GUI_ACTIVE_{passes}"] == float(level["GRBM_GUI_ACTIVE"])
    with rocpd.connect(folder) as session:
        ((most,),) = session.sql("SELECT max(json_extract(extdata, '$.pass')) FROM rocpd_pmc_event").fetchall()
        assert most == passes
        assert len(session.ranks) == 1
        assert session.sql("SELECT count(*) FROM kernels").fetchall() == [(3,)]
        units = session.sql("SELECT cu_count, wave_size FROM agents WHERE type = 'GPU'").fetchall()
    system = rows_of(folder / "sysinfo.csv")[0]
    assert units == [(int(system["cu_per_gpu"]), int(system["wave_size"]))]


def test_compressed_results_are_read_as_the_one_file(folders: dict[str, Path], tmp_path: Path) -> None:
    """Since 2026 each pass has a file of its own, compressed."""
    folder = folders["vcopy_MI300X_A1_rocpd"]
    header, *lines = (folder / "pmc_perf.csv").read_text().splitlines(keepends=True)
    shutil.copy(folder / "sysinfo.csv", tmp_path)
    for number, some in enumerate((lines[:2000], lines[2000:])):
        (tmp_path / f"results_{number}.csv.gz").write_bytes(gzip.compress("".join([header, *some]).encode()))
    assert values(tmp_path) == values(folder)
