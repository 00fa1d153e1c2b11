"""`rocpd summary NAMES`: forms, places, divisions, what is said when data is missing."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rocpd.cli.options import Selection, selects
from rocpd.summary import analyse
from rocpd.summary.names import SUMMARIES, TABLES
from rocpd.summary.reading import Reading
from rocpd.summary.result import Field, Summary, Table
from tests.build import TraceBuilder
from tests.cli.conftest import Cli


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    one = (
        TraceBuilder(0, pid=7)
        .region("launch", 90, 95, stack=1)
        .kernel("gemm", 100, 110, stack=1)
        .kernel("gemm", 200, 230)
    )
    two = TraceBuilder(1, pid=8, host="node1").kernel("relu", 100, 150)
    return [str(trace.write(tmp_path / f"{n}.db")) for n, trace in enumerate((one, two))]


def test_console(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "kernels", "gaps", "--by", "rank", *files)
    assert said.code == 0
    head, _, first, *_ = said.out.splitlines()[1:]
    assert " ".join(head.split()) == "rank name calls total mean min median p95 p99 max std percent"
    assert " ".join(first.split()) == "0 gemm 2 40 ns 20 ns 10 ns 20 ns 29 ns 29.8 ns 30 ns 14.1 ns 100 %"
    assert said.out.splitlines()[6] == "GAPS"


def test_one_csv_goes_to_stdout(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "-i", *files, "--format", "csv", "kernels")
    assert [row[:3] for row in csv.reader(said.out.splitlines())] == [
        ["name", "calls", "total_ns"],
        ["relu", "1", "50"],
        ["gemm", "2", "40"],
    ]


def test_json_of_several_is_one_object(cli: Cli, files: list[str]) -> None:
    one = json.loads(cli("summary", "kernels", *files, "-f", "json").out)
    several = json.loads(cli("summary", "kernels", "overlap", *files, "-f", "json").out)
    assert several["kernels"] == one
    assert [row["busy_ns"] for row in several["overlap"]] == [40, 50]


def test_files(cli: Cli, files: list[str], tmp_path: Path) -> None:
    place = ["-d", str(tmp_path / "out"), "-o", "job"]
    assert cli("summary", "kernels", "gpu-time", *files, "-f", "parquet", *place).code == 0
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        "job_gaps.parquet",
        "job_gpu-time.parquet",
        "job_kernels.parquet",
        "job_largest-gaps.parquet",
        "job_overlap.parquet",
    ]
    table = pq.read_table(tmp_path / "out" / "job_kernels.parquet")
    assert table["total_ns"].to_pylist() == [50, 40]
    assert table.schema.field("total_ns").metadata[b"unit"] == b"ns"
    assert cli("summary", "kernels", "domains", *files, "-f", "html", *place).code == 0
    assert (tmp_path / "out" / "job.html").read_text().count("<h2>") == 2
    again = cli("summary", "kernels", "domains", *files, "-f", "html", *place)
    assert (again.code, "exists" in again.err) == (1, True)
    assert cli("summary", "kernels", *files, "-f", "csv", *place).code == 0
    assert (tmp_path / "out" / "job_kernels.csv").is_file()


def test_markdown_has_sections(cli: Cli, files: list[str]) -> None:
    out = cli("summary", "kernels", "domains", *files, "-f", "md").out
    assert [line for line in out.splitlines() if line.startswith("## ")] == ["## kernels", "## domains"]


def test_trees(cli: Cli, files: list[str]) -> None:
    assert cli("summary", "calls", *files, "-f", "folded").out == "launch 5\n"
    page = json.loads(cli("summary", "calls", *files, "-f", "speedscope").out)
    assert [profile["weights"] for profile in page["profiles"]] == [[5], [10]]
    said = cli("summary", "kernels", *files, "-f", "folded")
    assert (said.code, "is a form of the call tree" in said.err) == (2, True)


def test_all_says_what_is_missing(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "all", *files)
    assert said.code == 0
    assert "rocpd: copies: no memory copies in the selection" in said.err
    assert "rocpd: counters: no counter values of kernels in the selection" in said.err
    assert "COPIES" not in said.out
    by = cli("summary", "all", "--by", "stream", *files)
    assert by.code == 0
    assert "can't be divided by stream" in by.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["copies"], 1, "no memory copies in the selection"),
        (["copies", "scratch"], 1, "no summary has the data that it needs"),
        (["collectives"], 1, "collectives: the selection holds nothing for it"),
        (["kernels", "--kernel", "nothing"], 1, "nothing is left: no event passes the filters"),
        (["kernels", "--rank", "9"], 1, "no rank is numbered 9"),
        (["--kernel", "nothing"], 1, "nothing is left"),
        (["calls", "--by", "agent"], 2, "calls can't be divided by agent"),
        (["kernels", "--clip"], 2, "--clip needs a window"),
        (["-f", "parquet"], 2, "--format parquet is for named summaries"),
    ],
)
def test_errors(words: list[str], code: int, message: str, cli: Cli, files: list[str]) -> None:
    said = cli("summary", *words, *files)
    assert (said.code, said.out) == (code, "")
    assert message in said.err


def test_lists(cli: Cli, files: list[str]) -> None:
    listed = cli("summary", "--list").out
    assert [line.split()[0] for line in listed.splitlines()[2:]] == list(SUMMARIES)
    found = cli("summary", "--list-categories", *files).out
    assert [line.split() for line in found.splitlines()[2:]] == [
        ["HIP", "HIP_RUNTIME_API_EXT", "1"],
        ["KERNELS", "KERNEL_DISPATCH", "3"],
    ]


def test_by_alone_gives_the_totals(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "--by", "host", *files)
    assert [line for line in said.out.splitlines() if line.isupper()] == ["KERNELS", "API", "DOMAINS"]


def test_filters_hold_for_amds_tables(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "--rank", "1", *files)
    assert "relu" in said.out
    assert "gemm" not in said.out


def test_an_analysis_of_another_package(monkeypatch: pytest.MonkeyPatch, cli: Cli, files: list[str]) -> None:
    table = Table("ours", "How many ranks.", (Field("ranks", "", "ranks"),))

    class Point:
        name, value, dist = "ours", "elsewhere:ours", None

        @staticmethod
        def load() -> object:
            def ours(reading: Reading) -> list[Summary]:
                return [reading.summary(table, [(len(reading.session.ranks),)])]

            return ours

    monkeypatch.setattr(analyse, "entry_points", lambda group: [Point] if group == "rocpd.summaries" else [])
    assert cli("summary", "ours", *files, "-f", "csv").out.split() == ["ranks", "2"]
    assert "from elsewhere:ours" in cli("summary", "--list").out


def test_the_table_of_contents_is_true() -> None:
    """Every table is declared in its module, with a unit in the name of each column that has one."""
    import importlib

    for name, analysis in SUMMARIES.items():
        module = importlib.import_module(analysis.place.partition(":")[0])
        assert callable(getattr(module, analysis.place.partition(":")[2]))
        for table in (module.TABLES[table] for table in analysis.tables):
            assert TABLES[table.name] == name
            assert table.doc
            for field in table.fields:
                assert field.doc, (table.name, field)
                ending = {"ns": "_ns", "bytes": "bytes", "%": "percent"}.get(field.unit, "")
                assert field.name.endswith((ending, "percent_last")), (table.name, field)


def test_options_are_declared_once() -> None:
    seen: list[Selection] = []

    @selects
    def command(paths: str = "x", selection: Selection = Selection(), force: bool = False) -> None:
        seen.append(selection)

    command(paths="y", start="1%", clip=True, rank="0")
    assert (seen[0].start, seen[0].clip, seen[0].rank, seen[0].kernel) == ("1%", True, "0", None)
