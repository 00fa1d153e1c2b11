"""What analyses conclude reaches people: above the table, or on stderr where stdout is data."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocpd.base.output import destination
from rocpd.cli.tables import Delivery
from rocpd.summary.findings import Finding
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.table import TABLE_FORMATS

LATE = Finding("rank 3 < all: a straggler", "comm.straggler", rank=3, evidence={"times_last": 9})
ENDINGS = {"csv": ".csv", "json": ".json", "parquet": ".parquet", "md": ".md", "html": ".html"}


def tables() -> Iterator[Summary]:
    """Yield two tables with one finding, the second with one more."""
    more = Finding("step 4 is slow", "step.outlier", step="step 4")
    for name, findings in (("first", (LATE,)), ("second", (LATE, more))):
        yield Summary(TableDefinition(name, "", (Field("x"),)), (Field("x"),), [(1,)], findings=findings)


def test_findings_stand_above_tables_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    Delivery(None, None).write(tables(), ["first", "second"])
    blocks = capsys.readouterr().out.split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [LATE.text, "FIRST", "step 4 is slow", "SECOND"]


@pytest.mark.parametrize("form", ["md", "html"])
def test_findings_stand_on_pages(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    Delivery(TABLE_FORMATS[form], None).write(tables(), ["first", "second"])
    written = capsys.readouterr()
    page = written.out.partition("</head>")[2] or written.out
    at = [page.index(word) for word in ("rank 3 &lt; all", "first", "step 4 is slow", "second")]
    assert at == sorted(at)
    assert written.out.count("a straggler") == 1
    assert written.err == ""


@pytest.mark.parametrize("form", ["csv", "json"])
def test_data_on_stdout_has_findings_on_stderr(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    Delivery(TABLE_FORMATS[form], None).write(tables(), ["first", "second"])
    written = capsys.readouterr()
    assert "straggler" not in written.out
    assert written.err.splitlines() == [f"rocpd: {LATE.text}", "rocpd: step 4 is slow"]
    if form == "json":
        assert json.loads(written.out) == {"first": [{"x": 1}], "second": [{"x": 1}]}


@pytest.mark.parametrize("form", [None, "csv", "json", "parquet", "md"])
def test_files_have_findings_above_or_on_stderr(
    form: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = destination("out", tmp_path, list(ENDINGS.values()))
    Delivery(TABLE_FORMATS[form] if form else None, target).write(tables(), ["first", "second"])
    on_stderr = capsys.readouterr().err.count("a straggler")
    in_files = sum(path.read_bytes().count(b"a straggler") for path in tmp_path.iterdir())
    assert (in_files, on_stderr) == ((1, 0) if form in (None, "md") else (0, 1))


def test_a_notebook_shows_findings() -> None:
    out = io.StringIO()
    next(tables()).write_html(out, 10)
    assert out.getvalue().startswith("<p><strong>rank 3 &lt; all: a straggler</strong></p>")
