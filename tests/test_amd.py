"""The Python interface that AMD's documents describe, on top of our own."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

import rocpd
from rocpd import output_config
from rocpd.amd import execute, version_info, write_csv, write_perfetto
from rocpd.base import OutputError, UsageError
from rocpd.importer import RocpdImportData
from rocpd.query import export_sqlite_query
from tests.build import TraceBuilder


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return [str(TraceBuilder(n).kernel("gemm", 1, 3 + n).write(tmp_path / f"{n}.db")) for n in range(2)]


def test_data(files: list[str]) -> None:
    with RocpdImportData(files) as data:
        assert execute(data, "SELECT COUNT(*) FROM kernels").fetchone() == (2,)
        cursor = data.cursor()
        cursor.execute("SELECT name FROM top_kernels")
        assert cursor.fetchall() == [("gemm",)]
        assert data.where(rocpd.Filters(ranks="0")).execute("SELECT COUNT(*) FROM kernels").fetchone() == (1,)


def test_data_of_a_session_leaves_it_open(files: list[str]) -> None:
    with rocpd.connect(files[0]) as session:
        with RocpdImportData(session) as data:
            assert data.execute("SELECT COUNT(*) FROM kernels").fetchone() == (1,)
        assert session.execute("SELECT COUNT(*) FROM kernels").fetchone() == (1,)


def test_outputs(files: list[str], tmp_path: Path) -> None:
    config = output_config.output_config(output_path=str(tmp_path / "o"), output_file="mine")
    with rocpd.connect(files) as data:
        assert write_perfetto(data, config)
        assert write_csv(data, config, agent_index_value="type-relative")
        with pytest.raises(OutputError, match="exists"):
            write_csv(data, config)
        assert write_csv(data, config, force=True)
    names = sorted(path.name for path in (tmp_path / "o").iterdir())
    assert names == ["mine_agent_info.csv", "mine_kernel_trace.csv", "mine_results.pftrace"]
    with (tmp_path / "o" / "mine_kernel_trace.csv").open(newline="") as file:
        assert {row["Agent_Id"] for row in csv.DictReader(file)} == {"GPU 0"}


def test_a_config_knows_its_attributes() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        output_config.output_config(nonsense=1)
    assert not hasattr(output_config.output_config(nonsense=1, strict=False), "nonsense")


def test_exports(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT name, duration FROM kernels WHERE duration > ? ORDER BY duration"
    with rocpd.connect(files) as data:
        assert export_sqlite_query(data, sql, (2,)) is None
        assert capsys.readouterr().out.split()[-2:] == ["gemm", "3"]
        path = export_sqlite_query(data, sql, (0,), "JSON", tmp_path / "x.json")
        assert path == str(tmp_path / "x.json")
        assert json.loads(Path(path).read_text()) == [{"name": "gemm", "duration": n} for n in (2, 3)]
        assert export_sqlite_query(data, sql, (0,), "csv") == str(Path("rocpd-output-data/out.csv"))
        refusals = (
            ("pdf", None, "export_format pdf: unknown"),
            ("parquet", None, "export_format parquet: is for tables of"),
            ("html", "t.html", "dashboards are not supported"),
        )
        for form, template, why in refusals:
            with pytest.raises(UsageError, match=why):
                export_sqlite_query(data, sql, (0,), form, tmp_path / "y", template)
    assert not (tmp_path / "y").exists()


def test_the_version() -> None:
    version = version_info
    assert version["version"] == rocpd.__version__
    assert f"{version['major']}.{version['minor']}.{version['patch']}" == rocpd.__version__


def test_names_of_amds_are_not_ours() -> None:
    assert not {"write_csv", "RocpdImportData", "version_info"} & set(rocpd.__all__)
    assert getattr(rocpd, "write_csv") is write_csv  # noqa: B009 (type checkers don't know the name)
    assert getattr(rocpd, "RocpdImportData") is RocpdImportData  # noqa: B009


@pytest.mark.parametrize(
    "names", ["importer.RocpdImportData", "output_config.output_config", "query.export_sqlite_query"]
)
def test_modules_of_amds_are_there_without_importing_them(names: str) -> None:
    """As in its documents: `import rocpd`, then `rocpd.output_config.output_config(…)`."""
    program = f"import rocpd; assert callable(rocpd.{names}); assert not hasattr(rocpd, 'nonsense')"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[1])
