"""A report with a base says what `rocpd diff` says, from the pass in which everything else is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbclient
import nbformat
import openpyxl
import pypdfium2
import pytest

import rocpd
from rocpd.base import UsageError, entries
from rocpd.chart.model import Bars
from rocpd.compare.tables import document_of
from rocpd.facts.rank import Options
from rocpd.federate.federation import Federation
from rocpd.report.build import ReportOptions, base_of, build
from rocpd.report.model import Figure, Findings, Report, Section, Table
from rocpd.report.writers import REPORT_FORMATS
from tests.conftest import Cli
from tests.report.test_html import check


@pytest.fixture(scope="module")
def compared(files: tuple[Path, ...], base_files: tuple[Path, ...]) -> Report:
    with rocpd.connect(base_files) as base, rocpd.connect(files) as session:
        return build(session, ReportOptions(("verdict", "comparison"), base=base_of(base, Options())))


@pytest.fixture(scope="module")
def section(compared: Report) -> Section:
    return compared.sections[1]


@pytest.fixture(scope="module")
def document(files: tuple[Path, ...], base_files: tuple[Path, ...]) -> dict[str, object]:
    with rocpd.connect(base_files) as base, rocpd.connect(files) as session:
        return document_of(session.diff(base))


def test_it_says_what_diff_says(section: Section, compared: Report, document: dict[str, object]) -> None:
    every = document["findings"]
    assert isinstance(every, list)
    texts = [each["text"] for each in every if each["rule"] != "diff.problems"]  # which a report has anyway
    found = section.blocks[0]
    assert isinstance(found, Findings)
    assert [each.finding.text for each in found.conclusions] == texts
    verdict = compared.sections[0].blocks[0]
    assert isinstance(verdict, Findings)
    assert verdict.conclusions[1].finding.text == texts[0]
    assert texts[0].startswith("median step ")  # unclear: so few steps of one run a side


def test_changes_lead_from_the_base_to_the_job(section: Section, document: dict[str, object]) -> None:
    figure = section.blocks[1]
    assert isinstance(figure, Figure)
    assert isinstance(figure.chart, Bars)
    longer, shorter = (part.values for part in figure.chart.parts)
    starts = [begin + less for begin, less in zip(figure.chart.starts, shorter, strict=True)]
    ends = [begin + more for begin, more in zip(figure.chart.starts, longer, strict=True)]
    unit = document["unit_ns"]
    assert isinstance(unit, dict)
    assert (starts[0], ends[-1]) == (unit["base"], unit["new"])
    assert ends[:-1] == starts[1:]


def test_tables_hold_the_rows_that_explain_most(section: Section, document: dict[str, object]) -> None:
    tables = {block.name: block for block in section.blocks if isinstance(block, Table)}
    kernels = document["kernels"]
    assert isinstance(kernels, list)
    table = tables["diff-kernels"]
    change = [column.name for column in table.columns].index("change")
    shown = [row[change] for row in table.rows]
    assert shown == [row["change_ns"] for row in kernels][: len(shown)]
    assert sum(map(abs, shown)) >= 0.99 * sum(abs(row["change_ns"]) for row in kernels)
    assert table.total == len(kernels)
    assert tables.keys() >= {"diff-kernels", "diff-markers", "diff-ranks"}


def test_each_rank_of_the_job_is_read_once(
    files: tuple[Path, ...], base_files: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with rocpd.connect(base_files) as session:
        base = base_of(session, Options())
    passes: list[object] = []
    map_ranks = Federation.map_ranks

    def counted(self: Federation, work: Callable[..., object]) -> object:
        passes.append(work)
        return map_ranks(self, work)

    with rocpd.connect(files) as session:
        _ = session.alignment
        monkeypatch.setattr(Federation, "map_ranks", counted)
        build(session, ReportOptions(("budget", "kernels", "comparison"), base=base))
    assert len(passes) == 1


@pytest.mark.parametrize("ending", REPORT_FORMATS)
def test_every_format_has_it(compared: Report, section: Section, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    entries.load(REPORT_FORMATS[ending].home, ending)(compared, path)
    found = section.blocks[0]
    assert isinstance(found, Findings)
    text = found.conclusions[0].finding.text.partition(",")[0]
    if ending == ".xlsx":
        book = openpyxl.load_workbook(path)
        assert any(text in str(row[1].value) for row in book["Verdict"].iter_rows())
        assert len(book[section.title]._images) == 1
    elif ending == ".pdf":
        document = pypdfium2.PdfDocument(path)
        pages = [page.get_textpage().get_text_range() for page in document]
        assert any(text[:20] in page for page in pages)
        document.close()
    else:
        written = path.read_text()
        assert text.replace("->", "-&gt;" if ending == ".html" else "->") in written.replace("\\>", ">")
        check(written) if ending == ".html" else None


def test_the_command_compares_with_jobs_and_baselines(
    files: tuple[Path, ...], base_files: tuple[Path, ...], tmp_path: Path, cli: Cli
) -> None:
    job, before, baseline = str(files[0].parent), str(base_files[0].parent), str(tmp_path / "base.json")
    assert cli("diff", "--save-baseline", baseline, before).code == 0
    commands = []
    for number, base in enumerate((before, baseline)):
        path = tmp_path / f"{number}.md"
        assert cli("report", job, "--base", base, "-o", str(path), "--sections", "comparison").code == 0
        lines = [line for line in path.read_text().splitlines() if "rocpd diff" in line]
        assert all(line.endswith(f"rocpd diff --base {base} --new {job}`") for line in lines)
        commands.append([line.replace(base, "BASE") for line in lines])
    assert commands[0] == commands[1] != []
    refused = cli("report", job, "--sections", "comparison", "-o", str(tmp_path / "x.md"))
    assert refused.code
    assert "--base" in refused.err


def test_without_a_base_there_is_no_such_section(files: tuple[Path, ...]) -> None:
    with rocpd.connect(files) as session, pytest.raises(UsageError, match="there is no base"):
        build(session, ReportOptions(("comparison",)))


def test_the_notebook_compares_again(
    files: tuple[Path, ...], base_files: tuple[Path, ...], tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "x.ipynb"
    words = ("--base", str(base_files[0].parent), "--sections", "comparison", "-o", str(path))
    assert cli("report", str(files[0].parent), *words, "--rank", "1-2").code == 0
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    kernel = next(cell for cell in notebook.cells if cell.source == 'differences["diff-kernels"]')
    first = kernel.outputs[0].data["text/plain"].splitlines()[1].split("\t")[0]
    nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in codes[1:])
    assert first in kernel.outputs[0].data["text/plain"]


def test_python_compares_too(files: tuple[Path, ...], base_files: tuple[Path, ...], tmp_path: Path) -> None:
    with rocpd.connect(base_files) as base, rocpd.connect(files) as session:
        path = session.report(tmp_path / "x.md", sections=["comparison"], base=base)
    assert "Unclear whether other runs differ" in path.read_text()
