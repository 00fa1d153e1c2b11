"""parquet and arrow: cell for cell the readable views, and what readers make of the folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.formats.tables import VIEWS, known_views, record_batches, schema_of
from rocpd.convert.options import ConvertOptions
from rocpd.convert.view_reader import ReferenceTables
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "faults"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=3, nodes=2, steps=2, faults=request.param))
    with rocpd.connect(folder / "job", skip_bad=True, align="none") as opened:
        yield opened


@pytest.mark.parametrize("view", known_views())
def test_every_cell_is_that_of_the_view(session: rocpd.Session, view: str) -> None:
    _compare(session, view)


def test_every_cell_of_the_real_files(real_files: tuple[Path, ...]) -> None:
    with rocpd.connect(real_files) as session:
        for view in VIEWS:
            _compare(session, view)


def _compare(session: rocpd.Session, view: str) -> None:
    names = schema_of(view).names
    columns = ", ".join(f'"{name}"' for name in names)
    for rank in session.ranks:
        damaged = Counter[str]()
        batches = record_batches(ReferenceTables(session.reader(rank.number)), view, damaged, schema_of(view))
        written = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        wanted = session.execute(f"SELECT {columns} FROM {view} WHERE rank = {rank.number}").fetchall()
        assert sorted(map(repr, written)) == sorted(map(repr, wanted))
        assert damaged == Counter()


def test_the_folder_reads_with_one_line_each(session: rocpd.Session, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    (folder,) = FORMATS["parquet"].write(session, ConvertOptions(tmp_path))
    sql = 'SELECT COUNT(*), SUM("end" - start), COUNT(DISTINCT rank), MIN(name) FROM {}'
    (wanted,) = session.execute(sql.format("kernels")).fetchall()

    frame = pd.read_parquet(folder / "kernels")
    table = pq.read_table(folder / "kernels")
    lazy = polars.scan_parquet(folder / "kernels", hive_partitioning=True).collect()
    (duck,) = duckdb.execute(
        sql.format(f"read_parquet('{folder}/kernels/**/*.parquet', hive_partitioning = true)")
    ).fetchall()

    lasted = int((frame["end"] - frame["start"]).sum())
    assert (len(frame), lasted, frame["rank"].nunique(), min(frame["name"].dropna())) == wanted
    assert (table.num_rows, len(table["rank"].unique())) == (wanted[0], wanted[2])
    assert (len(lazy), lazy["rank"].n_unique(), lazy["name"].cast(polars.String).min()) == (
        wanted[0],
        wanted[2],
        wanted[3],
    )
    assert duck == wanted
    assert isinstance(frame["name"].dtype, pd.CategoricalDtype)


def test_rank_and_host_as_columns(session: rocpd.Session, tmp_path: Path) -> None:
    """Any reader has them, also of a single file; everything else is as without them."""
    (folder,) = FORMATS["parquet"].write(session, ConvertOptions(tmp_path, name="ranked", with_rank=True))
    (plain,) = FORMATS["parquet"].write(session, ConvertOptions(tmp_path))
    sql = "SELECT rank, hostname, COUNT(*) FROM {} GROUP BY ALL ORDER BY 1"
    wanted = session.execute(sql.format("kernels").replace("ALL", "1, 2")).fetchall()

    frame = pd.read_parquet(folder / "kernels")
    by_rank = frame.groupby(["rank", "hostname"], observed=True).size().reset_index()
    assert list(by_rank.itertuples(index=False, name=None)) == wanted
    assert duckdb.execute(sql.format(f"read_parquet('{folder}/kernels/*.parquet')")).fetchall() == wanted
    single = pd.read_parquet(folder / "kernels" / "rank1.parquet")
    assert (set(single["rank"]), set(single["hostname"])) == ({1}, {session.ranks[1].hostname})
    assert {path.name for path in folder.iterdir()} == {path.name for path in plain.iterdir()}
    for path in plain.rglob("*.parquet"):
        number = path.parent.name.removeprefix("rank=")
        table = pq.read_table(folder / path.parts[-3] / f"rank{number}.parquet")
        assert (table.schema.names[-1], "hostname" in table.schema.names) == ("rank", True), path
        assert table.drop_columns("rank").equals(pq.read_table(path, partitioning=None)), path
    assert len(list(folder.rglob("*.parquet"))) == len(list(plain.rglob("*.parquet")))


def test_layout_units_and_statistics(session: rocpd.Session, tmp_path: Path) -> None:
    (folder,) = FORMATS["parquet"].write(session, ConvertOptions(tmp_path, name="x"))

    assert folder == tmp_path / "x_parquet"
    assert [p.name for p in sorted((folder / "regions").iterdir())] == ["rank=0", "rank=1", "rank=2"]
    path = folder / "kernels" / "rank=1" / "part.parquet"
    schema = pq.read_schema(path)
    assert "rank" not in schema.names
    assert schema.field("start").metadata[b"unit"] == b"ns"
    assert schema.field("lds_size").metadata[b"unit"] == b"bytes"
    assert pa.types.is_dictionary(schema.field("name").type)
    group = pq.ParquetFile(path).metadata.row_group(0)
    starts = pq.read_table(path, columns=["start"], partitioning=None)["start"].to_pylist()
    statistics = group.column(schema.names.index("start")).statistics
    assert (statistics.min, statistics.max) == (min(starts), max(starts))
    assert sum(d.count_rows() for d in [ds.dataset(folder / "kernels", partitioning="hive")]) == sum(
        row[0] for row in session.execute("SELECT COUNT(*) FROM kernels")
    )


def test_text_where_numbers_belong_is_null_and_told(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(
        TraceBuilder()
        .kernel("k", 1, 2)
        .kernel("l", 3, 4)
        .sql("UPDATE \"rocpd_kernel_dispatch{uuid}\" SET grid_size_x = 'wide' WHERE id = 2")
    )

    (folder,) = FORMATS["parquet"].write(session, ConvertOptions(tmp_path, views=("kernels",)))

    assert pd.read_parquet(folder / "kernels")["grid_x"].tolist()[:1] == [1024]
    assert pd.read_parquet(folder / "kernels")["grid_x"].isna().tolist() == [False, True]
    assert session.notes == ["parquet: 1 values of kernels.grid_x are no numbers: written as NULL"]


def test_bytes_that_are_no_text(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(
        TraceBuilder()
        .region("r", 1, 2)
        .arg("a", "x")
        .arg("b", "y")
        .sql("UPDATE \"rocpd_arg{uuid}\" SET value = CAST(x'62ff' AS TEXT) WHERE id = 2")
    )

    (path,) = FORMATS["arrow"].write(session, ConvertOptions(tmp_path, views=("events_args",)))

    assert pa.ipc.open_file(path).read_all()["arg_value"].to_pylist() == ["x", "b\\xff"]


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_has_the_rows_of_all_ranks(session: rocpd.Session, tmp_path: Path, stream: bool) -> None:
    (path,) = FORMATS["arrow"].write(session, ConvertOptions(tmp_path, views=("memory_copies",), arrow_stream=stream))

    assert path.name == ("out_memory_copies.arrows" if stream else "out_memory_copies.arrow")
    table = (pa.ipc.open_stream if stream else pa.ipc.open_file)(path.read_bytes()).read_all()
    columns = ", ".join(f'"{name}"' for name in table.column_names)
    wanted = session.execute(f"SELECT {columns} FROM memory_copies ORDER BY rank, id").fetchall()
    assert [tuple(row.values()) for row in table.to_pylist()] == wanted
    assert table.schema.field("size").metadata[b"unit"] == b"bytes"


def test_views_that_cannot_be_written(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().kernel("k", 1, 2))
    for form, views in (("parquet", ("top_kernels",)), ("arrow", ("nope",)), ("arrow", ("kernels", "regions"))):
        with pytest.raises(rocpd.UsageError):
            FORMATS[form].write(session, ConvertOptions(tmp_path / "o", views=views))
    assert not (tmp_path / "o").exists()


def test_an_existing_folder_is_kept_without_force(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(TraceBuilder().kernel("k", 1, 2))
    (tmp_path / "out_parquet").mkdir()
    (tmp_path / "out_parquet" / "mine").write_text("mine")

    with pytest.raises(rocpd.OutputError, match="out_parquet: exists"):
        FORMATS["parquet"].write(session, ConvertOptions(tmp_path))
    with pytest.raises(rocpd.OutputError, match="holds mine, which rocpd did not write"):
        FORMATS["parquet"].write(session, ConvertOptions(tmp_path, force=True))
    assert [p.name for p in (tmp_path / "out_parquet").iterdir()] == ["mine"]

    (tmp_path / "out_parquet" / "mine").unlink()
    FORMATS["parquet"].write(session, ConvertOptions(tmp_path, force=True))
    assert "kernels" in [p.name for p in (tmp_path / "out_parquet").iterdir()]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["job0", "out_parquet"]
