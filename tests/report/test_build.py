"""A report says what the analyses say, in one pass over the ranks, and what is not recorded in one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.chart.model import Timeline
from rocpd.facts.recorders import ROCPROFV3
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import Works
from rocpd.report.build import ReportOptions, build
from rocpd.report.contents import SECTIONS, Entry, Inquiry
from rocpd.report.material import Material
from rocpd.report.model import Block, Figure, Findings, Folded, Name, Report, Table, Text, tables_in
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.summary.findings import Verdict
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.omniprobe import accesses, memory_analysis
from tests.pc_sampling import as_rows, made


def test_sections_stand_in_order(report: Report) -> None:
    assert [section.name for section in report.sections] == [
        entry.name for entry in SECTIONS.values() if not entry.has_base and entry.name != "inside"
    ]
    assert all(section.blocks for section in report.sections)


def test_the_first_lines_name_what_was_planted(options: JobOptions, report: Report) -> None:
    truth = plan(options)
    found, *_ = report.sections[0].blocks
    assert isinstance(found, Findings)
    job, straggler, *others = (each.finding.text for each in found.conclusions)
    assert job.startswith("4 ranks on 2 nodes")
    assert straggler.startswith(f"rank {truth.straggler_rank} costs ")
    assert any(text.startswith(f"step {truth.slow_step} is slow") for text in others)


def test_each_cause_is_said_once(report: Report) -> None:
    found, *_ = report.sections[0].blocks
    assert isinstance(found, Findings)
    problems = [each for each in found.conclusions if each.finding.verdict is Verdict.PROBLEM]
    assert len({each.finding.rule for each in problems}) == len(problems)
    straggler = next(each for each in problems if each.finding.rule == "comm.straggler")
    notes = dict(straggler.notes)
    assert re.search(r" % of GPU time is exposed communication: \d+ % of it waits for others", notes["hence"])
    assert notes["do"]
    start, end = straggler.finding.window or (0, 0)
    assert notes["trace"].endswith(f"--start {start / 1e6:.3f}ms --end {end / 1e6:.3f}ms")


def test_an_effect_that_a_rule_tells_is_not_told_again(tmp_path: Path) -> None:
    """Both a rule and an analysis see that communication is exposed, which slow collectives explain."""
    files = simulate(JobOptions(tmp_path / "job", 4, 2, 10, 11, plant="slow-collectives", counters="few"))
    with rocpd.connect(files) as session:
        found, *_ = build(session, ReportOptions()).sections[0].blocks
    assert isinstance(found, Findings)
    slow = next(each for each in found.conclusions if each.finding.rule == "comm.slow")
    (effect,) = (text for word, text in slow.notes if word == "hence")
    assert "exposed communication takes" in effect


def test_idle_time_is_no_effect_of_what_is_not_its_main_cause(real_files: tuple[Path, ...]) -> None:
    """GPUs idle most in hipMemcpy; that small kernels are launched costs some, too."""
    with rocpd.connect(list(real_files)) as session:
        found, *_ = build(session, ReportOptions(("verdict",))).sections[0].blocks
    assert isinstance(found, Findings)
    small = next(each for each in found.conclusions if each.finding.rule == "launch.small")
    (effect,) = (text for word, text in small.notes if word == "hence")
    assert effect.startswith("the GPU of rank 7 idles 12 % of the time while its host launches ")
    assert any(each.finding.text.startswith("GPUs are idle 87 % of the time, 83 % ") for each in found.conclusions)


def test_a_late_host_is_marked_as_one(tmp_path: Path) -> None:
    """Its rows are framed together, and whether it lasts is a note of what is said of it."""
    simulate(JobOptions(tmp_path / "job", ranks=8, nodes=2, steps=8, seed=3, plant="late-node"))
    with rocpd.connect(tmp_path / "job") as session:
        verdict, overview = build(session, ReportOptions(("verdict", "overview"))).sections
    found, figure = verdict.blocks[0], overview.blocks[0]
    assert isinstance(found, Findings)
    assert isinstance(figure, Figure)
    assert isinstance(figure.chart, Timeline)
    late = next(each for each in found.conclusions if each.finding.rule == "comm.straggler")
    assert "chance" in dict(late.notes)
    mark = next(mark for mark in figure.chart.marks if mark.link == late.id)
    assert set(figure.chart.groups[slice(*mark.rows or ())]) == {late.finding.evidence["hostname"]}


@pytest.mark.parametrize("name", ["kernels", "stragglers", "idle", "copies", "memory", "launch"])
def test_tables_are_those_of_the_analysis(files: tuple[Path, ...], report: Report, name: str) -> None:
    (table,) = (table for table in tables_in(report.sections) if table.name == name)
    with rocpd.connect(files) as session:
        summary = session.summary(name)
    assert table.total == len(summary.fetchall())
    shown = [column.name.replace(" ", "_") for column in table.columns]
    both = [
        (shown.index(field.name.removesuffix(f"_{field.unit}")), place)
        for place, field in enumerate(summary.fields)
        if field.name.removesuffix(f"_{field.unit}") in shown
    ]
    assert len(both) > 2
    for row, expected in zip(table.rows, summary, strict=True):
        cells = [cell.full if isinstance(cell, Name) else cell for cell in row]
        assert [cells[here] for here, _ in both] == [expected[there] for _, there in both]


def test_parts_of_each_rank_add_up(report: Report) -> None:
    (table,) = (table for table in tables_in(report.sections) if table.title == "Budget of each rank")
    percent = [column.name for column in table.columns].index("percent")
    for rank in range(4):
        assert sum(row[percent] for row in table.rows if row[0] == rank) == pytest.approx(100)


def test_distributions_hold_every_dispatch(report: Report) -> None:
    (table,) = (table for table in tables_in(report.sections) if table.name == "kernels")
    names = [column.name for column in table.columns]
    for row in table.rows:
        assert sum(row[names.index("distribution")].counts) == row[names.index("calls")]


def test_each_rank_is_read_once_for_all_analyses(files: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[object] = []
    map_ranks = Federation.map_ranks

    def counted(self: Federation, work: Callable[..., object]) -> object:
        passes.append(work)
        return map_ranks(self, work)

    monkeypatch.setattr(Federation, "map_ranks", counted)
    with rocpd.connect(files) as session:
        _ = session.alignment
        passes.clear()
        build(session)
    assert [isinstance(work, Works) for work in passes] == [True, False]


def test_what_is_not_recorded_is_one_line(open_job: OpenJob) -> None:
    session = open_job(TraceBuilder().kernel("gemm", 10, 20).kernel("gemm", 30, 40))
    missing = {section.name: section.blocks for section in build(session).sections if len(section.blocks) == 1}
    for name in ("copies", "memory", "steps"):
        (line,) = missing[name]
        assert isinstance(line, Text)
        assert line.text.startswith("Not recorded")
        recordable = SECTIONS[name].recordable
        assert recordable
        assert ROCPROFV3.how[recordable] in line.text


@pytest.mark.parametrize(("importer", "said"), [("nsys", "`nsys profile --trace=cuda`"), ("rpd", "")])
def test_what_records_it_is_the_profiler_of_the_trace(open_job: OpenJob, importer: str, said: str) -> None:
    trace = TraceBuilder().kernel("gemm", 10, 20).row("rocpd_metadata", id=900, tag="import::importer", value=importer)
    (section,) = build(open_job(trace), ReportOptions(("copies",))).sections
    (line,) = section.blocks
    assert isinstance(line, Text)
    assert said in line.text
    assert "rocprofv3" not in line.text


def test_rules_that_could_not_look_are_folded_away_by_reason(report: Report, files: tuple[Path, ...]) -> None:
    *_, looked, unable = report.sections[0].blocks
    assert isinstance(looked, Text)
    assert isinstance(unable, Folded)
    named = [rule for line in unable.lines for rule in line.partition(": ")[0].split(", ")]
    reasons = [line.partition(": ")[2] for line in unable.lines]
    with rocpd.connect(files) as session:
        assert sorted(named) == sorted(finding.rule for finding in session.advise().unable)
    assert len(set(reasons)) == len(reasons)


def test_unknown_section(files: tuple[Path, ...]) -> None:
    with rocpd.connect(files) as session, pytest.raises(UsageError, match="no section is called kernls"):
        build(session, ReportOptions(("kernls",)))


def greeting(material: Material) -> Iterator[Block]:
    """A section of another package."""
    yield Text(f"hello {len(material.session.ranks)}")


@pytest.mark.parametrize("home", ["greeting", "ENTRY"])
def test_a_section_of_another_package(files: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    point = EntryPoint("greeting", f"{__name__}:{home}", "rocpd.report_sections")
    monkeypatch.setattr("rocpd.base.entries.points", lambda group: [point] if group == point.group else [])
    with rocpd.connect(files) as session:
        report = build(session, ReportOptions(("appendix", "greeting")))
    assert [section.name for section in report.sections] == ["greeting", "appendix"]
    assert report.sections[0].blocks == (Text("hello 4"),)


ENTRY = Entry("greeting", "Hello", f"{__name__}:greeting", (Inquiry("copies"),))


def test_separate_runs_are_no_job(real_files: tuple[Path, ...]) -> None:
    with rocpd.connect(real_files) as session:
        report = build(session)
    assert report.title == "12 separate runs"
    texts = {
        section.name: [block.text for block in section.blocks if isinstance(block, Text)] for section in report.sections
    }
    assert "These are 12 separate runs, not one job: nothing compares their ranks." in texts["job"]
    tables = {table.name for table in tables_in(report.sections)}
    assert not {"waits", "stragglers", "heat"} & tables
    assert "bottleneck" in tables
    assert "queue-depth" not in {figure.name for figure in report.figures()}  # over days in which nothing runs
    found, *_ = report.sections[0].blocks
    assert isinstance(found, Findings)
    assert found.conclusions[0].finding.text.startswith("12 separate runs, not one job")


def test_inside_of_kernels_comes_where_something_was_recorded_or_it_is_named(open_job: OpenJob, tmp_path: Path) -> None:
    plain = TraceBuilder().kernel("gemm", 10, 20)
    assert "inside" not in [section.name for section in build(open_job(plain)).sections]
    (section,) = build(open_job(plain), ReportOptions(("inside",))).sections
    (line,) = section.blocks
    assert isinstance(line, Text)
    assert "rocprofv3 --pc-sampling-beta-enabled" in line.text
    memory = tmp_path / "memory.json"
    memory.write_text(memory_analysis(accesses(1)))
    with rocpd.connect([as_rows(made(3)).write(tmp_path / "a.db"), memory]) as session:
        (section,) = [each for each in build(session).sections if each.name == "inside"]
        tables = [block for block in section.blocks if isinstance(block, Table)]
        assert [table.name for table in tables] == ["hot-spots", "pc-lines", "stall-reasons", "memory-access"]
        assert all(table.rows for table in tables)
        (found,) = [block for block in section.blocks if isinstance(block, Findings)]
        assert "of its time at gemm.cpp:" in found.conclusions[0].finding.text
