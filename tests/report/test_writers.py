"""Each format is read by somebody else's reader, says what the report says, and has the same bytes twice."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from html import unescape
from os.path import relpath
from pathlib import Path
from typing import Any, TypeAlias

import nbclient
import nbformat
import openpyxl
import pypdfium2
import pytest

import rocpd
from rocpd.base import entries
from rocpd.chart.model import Bars, Timeline
from rocpd.report.build import ReportOptions, build, write_plots
from rocpd.report.model import Findings, Report, tables_in
from rocpd.report.writers import REPORT_FORMATS
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.report.test_html import HOSTILE
from tests.soak import sample

Outputs: TypeAlias = Callable[[str], Path]

FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "http://example.org/", "file:///etc/passwd", "123", "TRUE")


def written(report: Report, ending: str, folder: Path) -> Path:
    path = folder / f"report{ending}"
    entries.load(REPORT_FORMATS[ending].home, ending)(report, path)
    return path


@pytest.fixture(scope="module")
def outputs(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the path of the report in a format; it is written once."""
    folder = tmp_path_factory.mktemp("written")
    return cache(lambda ending: written(report, ending, folder))


def _sampled() -> TraceBuilder:
    """Two samples of a call stack of C and Python."""
    trace = TraceBuilder().sample("Call stack", 5, category="timer_sampling")
    trace.sample("Call stack", 9, category="timer_sampling")
    return trace.sql("""UPDATE "rocpd_event{uuid}" SET call_stack = '["sort", "app.py(7): f", "main"]' WHERE id < 3""")


def first_finding(report: Report) -> str:
    found, *_ = report.sections[0].blocks
    assert isinstance(found, Findings)
    return found.conclusions[1].finding.text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    builder = TraceBuilder()
    for number, name in enumerate((*HOSTILE, *FORMULAS, "漢字", "x" * 40_000)):
        builder.kernel(name, 1000 * number, 1000 * number + 500)
        builder.region("range", 1000 * number, 1000 * number + 900, message=f"step {number} {name}")
    with rocpd.connect(builder.write(tmp_path_factory.mktemp("hostile") / "a.db")) as session:
        return build(session)


@pytest.mark.parametrize("ending", REPORT_FORMATS)
def test_same_bytes_twice(report: Report, outputs: Outputs, tmp_path: Path, ending: str) -> None:
    assert written(report, ending, tmp_path).read_bytes() == outputs(ending).read_bytes()


@pytest.mark.parametrize("ending", REPORT_FORMATS)
def test_hostile_names_can_be_written(hostile: Report, tmp_path: Path, ending: str) -> None:
    assert written(hostile, ending, tmp_path).stat().st_size > 1000


@pytest.mark.soak(2)
@pytest.mark.parametrize(
    ("builder", "charts"),
    [
        (TraceBuilder(), []),
        (TraceBuilder().region("hipMalloc", 1, 2), ["calls"]),
        (_sampled(), ["stacks"]),
        (_sampled().region("hipMalloc", 1, 2), ["calls", "stacks"]),
        (TraceBuilder().region("x", 1, 5, message="step 1").region("x", 6, 9, message="step 2"), ["steps", "calls"]),
        (TraceBuilder().kernel("k", 5, 5), ["time-line", "kernels"]),
        (TraceBuilder().kernel("k", 9, 5).kernel(None, 10, 20), ["time-line", "budget", "kernels"]),
        (TraceBuilder().kernel("k", 1, 1 << 62), ["time-line", "budget", "kernels"]),
        (TraceBuilder().copy(1, 9), ["time-line", "budget", "copies"]),
        (TraceBuilder().alloc(1, 2), ["memory"]),
    ],
)
def test_any_recording_has_a_report(
    open_job: OpenJob, tmp_path: Path, builder: TraceBuilder, charts: list[str]
) -> None:
    report = build(open_job(builder))
    assert [figure.name for figure in report.figures()] == charts
    for ending in sample([*REPORT_FORMATS], 2, len(charts) % 2):
        assert written(report, ending, tmp_path).stat().st_size > 500


def test_markdown_has_the_verdict_and_no_link_of_a_trace(
    report: Report, hostile: Report, outputs: Outputs, tmp_path: Path
) -> None:
    text = outputs(".md").read_text()
    assert f"- **Problem:** {first_finding(report)}" in text
    assert [line.count("|") for line in text.splitlines() if line.startswith("| rank |")]
    assert not re.search(r"!?\[[^\]]*\]\(|<(?!br)", written(hostile, ".md", tmp_path).read_text())


def test_workbook_holds_exact_numbers(report: Report, outputs: Outputs) -> None:
    """Times are in ms: every ns of them is a digit there."""
    book = openpyxl.load_workbook(outputs(".xlsx"))
    assert book.sheetnames[:2] == ["Verdict", "Kernels"]
    assert "Collectives" in book.sheetnames  # "…, and who waits for whom" is too long
    assert len(book.sheetnames) <= 12
    assert first_finding(report) in [row[1].value for row in book["Verdict"].iter_rows()]
    (table,) = (table for table in tables_in(report.sections) if table.name == "kernels")
    sheet = book["Kernels"]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("B4", f"A3:K{3 + len(table.rows)}")
    _, units, heads, *rows = ([cell.value for cell in row] for row in sheet.iter_rows(max_col=len(table.columns)))
    assert [unit or "" for unit in units] == ["ms" if column.unit == "ns" else column.unit for column in table.columns]
    assert heads == [column.name for column in table.columns]
    total = heads.index("total")
    assert [round(row[total] * 1e6) for row in rows] == [row[total] for row in table.rows]
    assert sum(len(sheet._images) for sheet in book) == len(list(report.figures()))


def test_workbook_makes_no_formula_and_no_link(hostile: Report, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(written(hostile, ".xlsx", tmp_path))
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value is not None]
    assert [cell.value for cell in cells if cell.data_type == "f" or cell.hyperlink] == []
    texts = {cell.value for cell in cells}
    assert {"=1+1", "@SUM(1)", "123", "http://example.org/"} <= texts
    assert max(len(str(text)) for text in texts) < 32_767
    assert all(len(sheet.title) <= 31 and not set(sheet.title) & set("[]:*?/\\") for sheet in book)


def test_pdf_has_pages_with_the_verdict(report: Report, outputs: Outputs) -> None:
    document = pypdfium2.PdfDocument(outputs(".pdf"))
    texts = [page.get_textpage().get_text_range() for page in document]
    assert first_finding(report)[:40] in texts[0].replace("\r\n", " ")
    titles = [bookmark.get_title() for bookmark in document.get_toc()]
    assert titles == [section.title for section in report.sections]
    pages = [document[number].render(scale=0.5).to_pil() for number in (0, 1)]
    colours = {pixel for page in pages for _, pixel in page.getcolors(1 << 20)}
    assert (0, 114, 178) in colours  # compute is blue
    document.close()


def test_pdf_spells_what_its_font_lacks(hostile: Report, tmp_path: Path) -> None:
    document = pypdfium2.PdfDocument(written(hostile, ".pdf", tmp_path))
    text = "".join(page.get_textpage().get_text_range() for page in document)
    assert "\\u6f22\\u5b57" in text
    document.close()


def test_notebook_shows_all_unexecuted(report: Report, outputs: Outputs) -> None:
    notebook = nbformat.read(outputs(".ipynb"), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    shown = [data for cell in notebook.cells for output in cell.get("outputs", ()) for data in output["data"]]
    assert shown.count("image/svg+xml") == len(list(report.figures()))


def test_notebook_runs(files: tuple[Path, ...], tmp_path: Path) -> None:
    with rocpd.connect(files) as session:
        report = build(session, ReportOptions(("job", "kernels")))
    notebook = nbformat.read(written(report, ".ipynb", tmp_path), as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(notebook, kernel_name="python3").execute()
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(codes) > 4
    for cell in codes[1:]:
        kinds = {kind for output in cell.outputs for kind in output.get("data", ())}
        assert kinds & {"text/html", "image/svg+xml"}, cell.source


def test_notebook_connects_to_the_same_part(files: tuple[Path, ...], tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "x.ipynb"
    words = ("--rank", "2-3", "--end", "80%", "--bins", "20", "--sections", "appendix", "kernels")
    assert cli("report", str(files[0].parent), "-o", str(path), *words).code == 0
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    folder = files[0].parent
    selected = "window=rocpd.Window(end='80%'), filters=rocpd.Filters(ranks='2-3'))"
    assert (
        notebook.cells[1].source == f"import rocpd\n\nsession = rocpd.connect({[relpath(folder, tmp_path)]}, {selected}"
    )
    assert f"<td>rocpd summary kernels {folder} --rank 2-3 --end 80%</td>" in notebook.cells[-1].source


def test_tables_are_made_again_as_they_were_asked_for(
    files: tuple[Path, ...], tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command and each piece of Python runs, with the options that its analysis reads and no others."""
    path = tmp_path / "x.ipynb"
    (tmp_path / "bad.db").write_text("bad")
    with rocpd.connect(files) as session:
        offset = f"{session.ranks[-1].hostname}=1000"
    words = ("--bins", "20", "--step-marker", "step [0-9]+", "--clock-offset", offset, "--skip-bad")
    sections = ("--sections", "job", "steps", "launch", "memory", "appendix")
    assert cli("report", str(files[0].parent), str(tmp_path), "-o", str(path), *words, *sections).code == 0
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    commands = [unescape(command) for command in re.findall(r"<td>rocpd ([^<]*)", notebook.cells[-1].source)]
    assert "--bins 20" in next(command for command in commands if command.startswith("summary launch "))
    for command in commands:
        assert cli(*shlex.split(command)).code == 0, command
    monkeypatch.chdir(tmp_path)  # where the notebook is
    names: dict[str, Any] = {}
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    for source in sources:
        exec(source, names)
    names["session"].close()
    assert "session.summary(\"steps\", step_marker='step [0-9]+', bins=20).plot()" in sources


def test_plots_are_pictures(report: Report, tmp_path: Path) -> None:
    assert write_plots(report, tmp_path / "plots") == len(list(report.figures()))
    for figure in report.figures():
        tree = ET.fromstring((tmp_path / "plots" / f"{figure.name}.svg").read_text())
        assert tree.findtext("{http://www.w3.org/2000/svg}title") == figure.chart.title
        assert (tmp_path / "plots" / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "plots" / f"{figure.name}.jpg").read_bytes().startswith(b"\xff\xd8\xff")


def test_charts_hold_what_tables_say(report: Report) -> None:
    figures = {figure.name: figure for figure in report.figures()}
    kernels = figures["kernels"]
    assert isinstance(kernels.chart, Bars)
    total = [column.name for column in kernels.table.columns].index("total")
    assert list(kernels.chart.parts[0].values) == [
        row[total] for row in kernels.table.rows[: len(kernels.chart.labels)]
    ]
    line = figures["time-line"].chart
    assert isinstance(line, Timeline)
    assert len({len(part) for row in line.shares for part in row}) == 1


def test_a_missing_package_is_named(files: tuple[Path, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = cli("report", str(files[0]), "-o", "x.pdf")
    assert said.code
    assert "pip install 'rocpd[report]'" in said.err
