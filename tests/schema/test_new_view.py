"""A view is added by its text and its row in VIEWS: done in a copy of the package, and read through everything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rocpd
from tests.build import TraceBuilder
from tests.conftest import Shell

Run: TypeAlias = Callable[..., str]

MARKS = """\
-- What markers carry, one row per region.
CREATE VIEW "marks_of_a_test" AS
SELECT
    R.id AS "id",                                     -- region id
    json_extract(E.extdata, '$.message') AS "said",   -- text of the marker {text}
    json_extract(E.extdata, '$.weight') AS "weight",  -- how much it counts {real}
    json_extract(E.extdata, '$.tags') AS "tags",      -- its tags {json}
    json_extract(E.extdata, '$.depth') AS "depth"     -- depth {integer}
FROM
    "rocpd_region{{uuid}}" R
    LEFT JOIN "rocpd_event{{uuid}}" E ON E.id = R.event_id;
"""

QUEUES = """\
-- Time on each queue of each rank.
CREATE VIEW "time_on_queues_of_a_test" AS
SELECT
    V.rank AS "rank",                 -- rank number
    V.hostname AS "hostname",         -- host of the rank
    V.queue AS "queue",               -- HSA queue name
    SUM(V.duration) AS "total_ns"     -- total time [ns] {integer}
FROM
    "kernels" V
GROUP BY
    V.rank,
    V.hostname,
    V.queue;
"""

WRITE = """
from pathlib import Path
from tests.build import TraceBuilder
TraceBuilder(host="node7").kernel("gemm", 10, 30).kernel("relu", 30, 37).write(Path("alone.db"), views=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has two more views, and a job of two ranks."""
    folder = tmp_path_factory.mktemp("view")
    shutil.copytree(Path(rocpd.__file__).parent, folder / "rocpd", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (("marks_of_a_test", MARKS), ("time_on_queues_of_a_test", QUEUES)):
        (folder / "rocpd" / "schema" / "sql" / "views" / f"{name}.sql").write_text(text)
    load = folder / "rocpd" / "schema" / "load.py"
    load.write_text(
        load.read_text().replace(
            '    "kernel_summary", ',
            '    "marks_of_a_test", "time_on_queues_of_a_test",\n    "kernel_summary", ',
        )
    )
    for number in range(2):
        trace = TraceBuilder(number, pid=16 + number).region("roctxRangePushA", 10, 20, message=f"step {number}")
        trace.sql("""UPDATE "rocpd_event{uuid}" SET extdata = json_set(extdata, '$.weight', 0.5, '$.depth', 3,
            '$.tags', json('["a"]')) WHERE extdata != '{}'""")
        trace.kernel("gemm", 10, 30 + number).region("hipMalloc", 1, 2).write(folder / "job" / f"{number}.db")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    """Runs Python in the folder, with the copy of the package."""

    def run_it(*words: str) -> str:
        paths = {"PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[2])])}
        command = [sys.executable, *words]
        return subprocess.run(
            command, cwd=folder, env={**os.environ, **paths}, check=True, capture_output=True, text=True
        ).stdout

    return run_it


ROWS = [(1, "step 0", 0.5, '["a"]', 3), (2, None, None, None, None), (1, "step 1", 0.5, '["a"]', 3)]
ROWS.append(ROWS[1])
COLUMNS = ("id", "said", "weight", "tags", "depth")


def test_kinds_are_those_of_the_columns_in_parquet(folder: Path, run: Run) -> None:
    run("-m", "rocpd", "convert", "-f", "parquet", "--view", "marks_of_a_test", "-d", "columns", "job")
    (path,) = (folder / "columns").rglob("marks_of_a_test")
    table = pq.read_table(path)
    assert [str(table.schema.field(name).type) for name in COLUMNS] == ["int64", "string", "double", "string", "int64"]
    assert sorted(map(repr, zip(*(table[name].to_pylist() for name in COLUMNS), strict=True))) == sorted(
        map(repr, ROWS)
    )
    duck = duckdb.read_parquet(f"{path}/**/*.parquet").select(*COLUMNS)
    assert [str(each) for each in duck.types] == ["BIGINT", "VARCHAR", "DOUBLE", "VARCHAR", "BIGINT"]
    assert sorted(map(repr, duck.fetchall())) == sorted(map(repr, ROWS))


def test_kinds_are_those_of_the_columns_in_arrow(folder: Path, run: Run) -> None:
    run("-m", "rocpd", "convert", "-f", "arrow", "--view", "marks_of_a_test", "-d", "stream", "job")
    rows = []
    for path in sorted(path for path in (folder / "stream").rglob("*") if path.is_file()):
        rows += duckdb.from_arrow(pa.ipc.open_file(path).read_all()).select(*COLUMNS).fetchall()
    assert sorted(map(repr, rows)) == sorted(map(repr, ROWS))


def test_a_view_over_views_names_rank_everywhere(folder: Path, run: Run, sqlite3_shell: Shell) -> None:
    query = (
        "-m",
        "rocpd",
        "query",
        "-f",
        "csv",
        "SELECT rank, hostname, queue, total_ns FROM time_on_queues_of_a_test ORDER BY rank",
    )
    wanted = "rank,hostname,queue,total_ns\n0,node0,Queue 1,20\n1,node0,Queue 1,21\n"
    assert run(*query, "job") == wanted
    run("-m", "rocpd", "merge", "-o", "merged.db", "-d", ".", "job")
    assert run(*query, "merged.db") == wanted
    stored = "SELECT rank, hostname, queue, total_ns FROM time_on_queues_of_a_test ORDER BY rank"
    assert sqlite3_shell(folder / "merged.db", stored) == "0|node0|Queue 1|20\n1|node0|Queue 1|21"
    run("-c", WRITE)
    assert sqlite3_shell(folder / "alone.db", stored) == "0|node7|Queue 1|27"
