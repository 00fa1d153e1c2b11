"""What AMD's own tests assert of converted traces, written anew: all formats say the same of one recording.

Expected numbers come from the database alone, by plain SQL.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.base import AmdVersion
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.summarize import SummaryOptions, summarize
from tests.perfetto_engine import Engine

CATEGORIES = {
    "hip_api": "SELECT COUNT(*) FROM regions WHERE category GLOB 'HIP_*'",
    "hsa_api": "SELECT COUNT(*) FROM regions WHERE category GLOB 'HSA_*'",
    "rccl_api": "SELECT COUNT(*) FROM regions WHERE category GLOB 'RCCL_*'",
    "kernel_dispatch": "SELECT COUNT(*) FROM kernels",
    "memory_copy": "SELECT COUNT(*) FROM memory_copies",
}
"""Category of the traces -> how many events the database has of it."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    files = simulate(JobOptions(out=folder / "job", ranks=2, steps=1))
    with rocpd.connect(files) as session:
        yield session


@pytest.fixture(scope="module")
def trace(job: rocpd.Session, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("trace")
    (path,) = FORMATS["pftrace"].write(job, ConvertOptions(folder, annotate_args=True))
    assert path.name == "out_results.pftrace"
    return Engine(path)


def rows_of(job: rocpd.Session, folder: Path, version: AmdVersion, name: str) -> list[dict[str, str]]:
    FORMATS["csv"].write(job, ConvertOptions(folder, amd_version=version))
    with (folder / f"out_{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("category", CATEGORIES)
def test_perfetto_has_as_many_slices_as_there_are_events(category: str, job: rocpd.Session, trace: Engine) -> None:
    ((count,),) = job.execute(CATEGORIES[category]).fetchall()
    assert trace.one(f"SELECT COUNT(*) FROM recorded WHERE category = '{category}'") == count > 0


def test_the_database_s_own_category_is_an_argument(job: rocpd.Session, trace: Engine) -> None:
    category = "EXTRACT_ARG(s.arg_set_id, 'debug.category')"
    own = f"SELECT {category}, COUNT(*) FROM recorded s WHERE s.category = 'hip_api' GROUP BY 1"
    wanted = "SELECT category, COUNT(*) FROM regions WHERE category GLOB 'HIP_*' GROUP BY 1"
    assert trace.rows(f"{own} ORDER BY 1") == job.execute(f"{wanted} ORDER BY 1").fetchall()


def test_annotations_name_the_arguments_of_calls(trace: Engine) -> None:
    """Every call has the annotations of its event."""
    calls = "FROM recorded s WHERE category = 'hip_api'"
    annotated = f"SELECT COUNT(*) {calls} AND EXTRACT_ARG(s.arg_set_id, 'debug.stack_id') IS NOT NULL"
    assert trace.one(annotated) == trace.one(f"SELECT COUNT(*) {calls}") > 0


def test_counters_agree_with_perfetto(job: rocpd.Session, trace: Engine, tmp_path: Path) -> None:
    rows = rows_of(job, tmp_path, AmdVersion.V2026, "counter_collection_trace")
    tracks = {f"{row['Agent_Id'].replace(' ', ' [')}] PMC {row['Counter_Name']}" for row in rows}
    shown = trace.rows("SELECT DISTINCT name FROM counter_track WHERE name GLOB '* PMC *'")
    assert tracks == {name for (name,) in shown} != set()


def test_counters_of_both_years(job: rocpd.Session, tmp_path: Path) -> None:
    old = rows_of(job, tmp_path / "old", AmdVersion.V2025, "counter_collection")
    new = rows_of(job, tmp_path / "new", AmdVersion.V2026, "counter_collection_trace")
    keys = ("Dispatch_Id", "Counter_Name", "Counter_Value", "Kernel_Name", "Start_Timestamp", "End_Timestamp")
    assert Counter(tuple(row[key] for key in keys) for row in old) == Counter(
        tuple(row[key] for key in keys) for row in new
    )


def test_rows_of_kernels_are_those_of_the_database(job: rocpd.Session, tmp_path: Path) -> None:
    rows = rows_of(job, tmp_path, AmdVersion.V2026, "kernel_trace")
    written = Counter((r["Guid"], int(r["Dispatch_Id"]), r["Kernel_Name"], int(r["Duration"])) for r in rows)
    assert written == Counter(job.execute("SELECT guid, dispatch_id, name, duration FROM kernels").fetchall())


def test_regions_of_2026_are_all_regions(job: rocpd.Session, tmp_path: Path) -> None:
    rows = rows_of(job, tmp_path, AmdVersion.V2026, "regions_trace")
    wanted = job.execute("SELECT category, COUNT(*) FROM regions GROUP BY category").fetchall()
    assert Counter(row["Domain"] for row in rows) == Counter(dict(wanted))
    assert all(int(row["Start_Timestamp"]) <= int(row["End_Timestamp"]) for row in rows)


@pytest.mark.parametrize(
    ("names", "is_right"),
    [
        (KernelNames.TRUNCATED, lambda name: not set("(<") & set(name)),
        (KernelNames.MANGLED, lambda name: " " not in name),
    ],
)
def test_names_of_kernels_in_summaries(names: KernelNames, is_right: Callable[[str], bool], job: rocpd.Session) -> None:
    (table, *_) = summarize(job, SummaryOptions(kernel_names=names, amd_version=AmdVersion.V2026))
    assert [name for name, *_ in table.fetchall() if not is_right(name)] == []
    assert "Duration (Nsec)" in table.columns
