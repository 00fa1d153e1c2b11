"""What notebooks show: charts and tables of answers, and the example runs."""

from __future__ import annotations

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.chart.model import Bars
from tests.docs.console import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert [cell for cell in notebook.cells if cell.get("outputs")] == []  # those of a run are not committed
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, kernel_name="python3", resources=resources).execute()
    shown = [kind for cell in notebook.cells for output in cell.get("outputs", ()) for kind in output.get("data", ())]
    assert shown.count("image/svg+xml") >= 3
    assert shown.count("text/html") >= 4
    assert (tmp_path / "report.html").stat().st_size > 50_000


def test_a_table_shows_its_chart_and_human_units(files: tuple[Path, ...]) -> None:
    with rocpd.connect(files) as session:
        shown = session.summary("kernels")._repr_html_()
        plain = session.summary("api")._repr_html_()
    assert shown.startswith("<svg ")
    assert re.search(r"<td[^>]*>[\d.]+ ms</td>", shown)
    assert not plain.startswith("<svg ")


def test_answers_to_sql_have_a_chart(files: tuple[Path, ...]) -> None:
    with rocpd.connect(files) as session:
        bars = session.sql("SELECT name, sum(duration) AS duration FROM kernels GROUP BY 1").plot()
        line = session.sql("SELECT start, duration FROM kernels WHERE rank = 0").plot()
        assert (type(bars.chart).__name__, type(line.chart).__name__) == ("Bars", "Lines")
        assert " ms</text>" in bars.svg
        assert session.sql("SELECT 'a' AS name, 9e999 AS x UNION ALL SELECT 'b', 1.5").plot().svg.count("<rect") >= 2
        with pytest.raises(UsageError, match="no column holds numbers"):
            session.sql("SELECT name FROM kernels").plot()


@pytest.mark.parametrize(
    ("table", "first", "value", "unit"),
    [
        ("gpu-time", "rank 0 · agent 2", "busy_ns", "ns"),
        ("stragglers", "rank ", "caused_wait_ns", "ns"),
        ("copy-pairs", "CPU 0 · GPU ", "total_ns", "ns"),
        ("memory", "rank 0 · agent 2 · REAL", "peak_bytes", "bytes"),
        ("api", "HIP · hip", "total_ns", "ns"),
    ],
)
def test_every_table_has_a_chart(files: tuple[Path, ...], table: str, first: str, value: str, unit: str) -> None:
    with rocpd.connect(files) as session:
        chart = session.summary(table).plot().chart
    assert isinstance(chart, Bars)
    assert chart.labels[0].startswith(first)
    assert (chart.parts[0].name, chart.unit) == (value, unit)


def test_charts_can_be_saved(files: tuple[Path, ...], tmp_path: Path) -> None:
    with rocpd.connect(files) as session:
        path = session.summary("waits").plot().save(tmp_path / "waits.svg")
    assert path.read_text().startswith("<svg ")
