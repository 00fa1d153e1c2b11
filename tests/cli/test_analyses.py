"""`rocpd summary NAMES`: forms, places, divisions, what is said when data is missing."""

from __future__ import annotations

import csv
import importlib
import json
from html import unescape
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rocpd
from rocpd.base import UsageError, entries
from rocpd.summary.registry import SUMMARIES, TABLES
from tests.build import TraceBuilder
from tests.conftest import Cli


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    first = (
        TraceBuilder(0, pid=7)
        .region("launch", 90, 95, stack=1)
        .kernel("gemm", 100, 110, stack=1)
        .kernel("gemm", 200, 230)
    )
    second = TraceBuilder(1, pid=8, host="node1").kernel("relu", 100, 150)
    return [str(trace.write(tmp_path / f"{n}.db")) for n, trace in enumerate((first, second))]


def test_console(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "kernels", "gaps", "--by", "rank", *files)
    assert said.code == 0
    head, _, first, *_ = said.out.splitlines()[1:]
    assert " ".join(head.split()) == "rank name calls total mean min median p95 p99 max std percent"
    assert " ".join(first.split()) == "0 gemm 2 40 ns 20 ns 10 ns 20 ns 29 ns 29.8 ns 30 ns 14.1 ns 100 %"
    assert said.out.splitlines()[6] == "GAPS"


def test_tables_that_are_not_divided_say_so(cli: Cli, files: list[str]) -> None:
    """Of an analysis that is: the largest gaps are those of the job."""
    said = cli("summary", "gaps", "largest-gaps", "--by", "host", *files)
    assert [line for line in said.err.splitlines() if "divided" in line] == ["rocpd: largest-gaps: not divided by host"]


def test_a_folder_that_is_called_like_a_summary(
    cli: Cli, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "elsewhere" / "steps"
    folder.mkdir(parents=True)
    Path(files[0]).rename(folder / "0.db")
    monkeypatch.chdir(folder.parent)
    alone = cli("summary", "steps")
    assert (alone.code, alone.err.splitlines()[0]) == (
        3,
        "rocpd: steps is the summary; the folder of that name is ./steps",
    )
    both = cli("summary", "kernels", "./steps")
    assert (both.code, both.err) == (0, "")
    assert cli("summary", "kernels", "-i", "steps").out == both.out


def test_one_csv_goes_to_stdout(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "-i", *files, "--format", "csv", "kernels")
    assert [row[:3] for row in csv.reader(said.out.splitlines())] == [
        ["name", "calls", "total_ns"],
        ["relu", "1", "50"],
        ["gemm", "2", "40"],
    ]


def test_json_of_several_is_one_object(cli: Cli, files: list[str]) -> None:
    alone = json.loads(cli("summary", "kernels", *files, "-f", "json").out)
    several = json.loads(cli("summary", "kernels", "overlap", *files, "-f", "json").out)
    assert several["kernels"] == alone
    assert [row["busy_ns"] for row in several["overlap"]] == [40, 50]


def test_files(cli: Cli, files: list[str], tmp_path: Path) -> None:
    target = ["-d", str(tmp_path / "out"), "-o", "job"]
    assert cli("summary", "kernels", "gpu-time", *files, "-f", "parquet", *target).code == 0
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
    assert cli("summary", "kernels", "domains", *files, "-f", "html", *target).code == 0
    assert (tmp_path / "out" / "job.html").read_text().count("<h2>") == 2
    again = cli("summary", "kernels", "domains", *files, "-f", "html", *target)
    assert (again.code, "exists" in again.err) == (1, True)
    assert cli("summary", "kernels", *files, "-f", "csv", *target).code == 0
    assert (tmp_path / "out" / "job_kernels.csv").is_file()


def test_markdown_has_sections(cli: Cli, files: list[str]) -> None:
    out = cli("summary", "kernels", "domains", *files, "-f", "md").out
    assert [line for line in out.splitlines() if line.startswith("## ")] == ["## kernels", "## domains"]


def test_trees(cli: Cli, files: list[str]) -> None:
    assert cli("summary", "calls", *files, "-f", "folded").out == "launch 5\n"
    page = json.loads(cli("summary", "calls", *files, "-f", "speedscope").out)
    assert [profile["weights"] for profile in page["profiles"]] == [[5], [10]]
    said = cli("summary", "kernels", *files, "-f", "folded")
    assert (said.code, "is a format of calls" in said.err) == (2, True)


def test_traces_as_text(cli: Cli, files: list[str], tmp_path: Path) -> None:
    said = cli("summary", "op-trace", files[0], "-f", "raptor")
    assert (
        said.out.splitlines()[1]
        == "1.00000001       nan        0.000010        0.000020    0.0                           gemm"
    )
    assert cli("summary", "op-trace", files[0], "-f", "logduration", "-d", str(tmp_path), "-o", "job").code == 0
    assert (tmp_path / "job_op-trace.log").read_text().splitlines()[1] == '"gemm",90,100,110'
    for words, message in (
        (("kernels", "-f", "raptor"), "is a format of op-trace"),
        (("op-trace", "-f", "raptor", "--by", "stream"), "can't be divided"),
    ):
        said = cli("summary", *words, *files)
        assert (said.code, message in said.err) == (2, True)


def test_all_says_what_is_missing(cli: Cli, files: list[str]) -> None:
    said = cli("summary", "all", *files)
    assert said.code == 0
    assert "rocpd: copies: no memory copies in the selection" in said.err
    assert "rocpd: counters: no counter values of kernels in the selection" in said.err
    assert "COPIES" not in said.out
    for by in ("rank", "host", "agent", "stream"):
        divided = cli("summary", "all", "--by", by, *files)
        assert (divided.code, "GPU-TIME" in divided.out, "CALLS" in divided.out) == (0, True, True)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["copies"], 1, "no memory copies in the selection"),
        (["copies", "scratch"], 1, "no summary has the data that it needs"),
        (["collectives"], 1, "collectives: nothing in the selection"),
        (["kernels", "--kernel", "nothing"], 1, "no event passes the filters"),
        (["kernels", "--rank", "9"], 1, "no rank is numbered 9"),
        (["--kernel", "nothing"], 1, "no event passes the filters"),
        (["kernels", "--clip"], 2, "--clip needs a window"),
        (["-f", "folded"], 2, "rocpd summary calls --format folded"),
        (["kernls"], 2, "did you mean kernels"),
        (["kernels", "largest_gap"], 2, "did you mean largest-gaps?"),
        (["nope"], 2, "`rocpd summary --list` shows all summaries"),
        (["kernels", "-f", "cvs"], 2, "did you mean csv?"),
        (["calls", "-f", "speedscop"], 2, "did you mean speedscope?"),
        (["something"], 2, "something: neither a summary nor a file"),
        (["kernels", "gaps", "--sequence", "2"], 2, "--sequence concerns none of gpu-time, kernels"),
        (["--amd", "--bins", "3"], 2, "--bins concerns none of"),
        (["kernels", "--domain-summary"], 2, "are for summaries without names"),
    ],
)
def test_errors(words: list[str], code: int, message: str, cli: Cli, files: list[str]) -> None:
    said = cli("summary", *words, *files)
    assert (said.code, said.out) == (code, "")
    assert message in said.err


def test_lists(cli: Cli, files: list[str]) -> None:
    listed = cli("summary", "--list").out
    assert [line.split()[0] for line in listed.splitlines()[2:]] == list(SUMMARIES)
    listing = cli("summary", "--list-categories", *files).out
    assert [line.split() for line in listing.splitlines()[2:]] == [
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


def test_amds_tables_are_summaries_too(cli: Cli, files: list[str], tmp_path: Path) -> None:
    assert cli("summary", *files, "-f", "parquet", "-d", tmp_path / "out").code == 0
    table = pq.read_table(tmp_path / "out" / "out_kernels_summary.parquet")
    assert table["Name"].to_pylist() == ["relu", "gemm"]
    assert table.schema.field("DURATION (nsec)").metadata[b"unit"] == b"ns"


def test_a_broken_analysis_of_another_package(monkeypatch: pytest.MonkeyPatch, cli: Cli, files: list[str]) -> None:
    point = EntryPoint("ours", "nowhere:ours", "rocpd.summaries")
    monkeypatch.setattr(entries, "points", lambda group: [point] if "summaries" in group else [])
    said = cli("summary", "ours", *files)
    assert (said.code, "ours: nowhere:ours cannot be loaded: ModuleNotFoundError" in said.err) == (1, True)
    assert "from nowhere:ours" in cli("summary", "--list").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "bins 0: not a whole number of at least 1"),
        ({"bins": -1}, "bins -1"),
        ({"bins": 10**8}, "bins 100000000: larger than 100000"),
        ({"sequence": 10**6}, "sequence 1000000: larger than 100"),
        ({"sequence": -2}, "sequence -2"),
        ({"top": 1.5}, "top 1.5"),
        ({"by": "day"}, "by day: unknown"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str, files: list[str]) -> None:
    with rocpd.connect(files) as session, pytest.raises(UsageError, match=message):
        session.summary("memory-curve", **options)


def test_the_table_of_contents_is_true() -> None:
    """Every table is declared in its module, with a unit in the name of each column that has one."""
    for name, analysis in SUMMARIES.items():
        module = importlib.import_module(analysis.home.partition(":")[0])
        assert callable(getattr(module, analysis.home.partition(":")[2]))
        for table in (module.TABLES[table] for table in analysis.tables):
            assert TABLES[table.name] == name
            assert table.doc
            for field in table.fields:
                assert field.doc, (table.name, field)
                ending = {"ns": "_ns", "bytes": "bytes", "%": "percent"}.get(field.unit, "")
                assert field.name.endswith((ending, "percent_last")), (table.name, field)


def test_the_default_summary_has_the_verdict(cli: Cli, tmp_path: Path) -> None:
    """After what the job is; AMD's tables are as AMD has them."""
    options = ("--ranks", "2", "--steps", "10", "--plant", "straggler", "--profile", "gemm")
    cli("simulate", "-o", str(tmp_path / "job"), *options)
    verdict, by_default, amds = (
        cli("summary", str(tmp_path / "job"), *arguments).out.splitlines()
        for arguments in (("stragglers",), (), ("--amd",))
    )
    assert ": a straggler; " in verdict[0]
    assert by_default[1] == verdict[0]
    assert amds[0] == "KERNELS SUMMARY"


def test_names_of_kernels_are_short_for_people_and_full_for_programs(cli: Cli, tmp_path: Path) -> None:
    full = "void app::update<float, 64>(float*, int)"
    file = TraceBuilder().kernel(full, 1, 31).kernel(full.replace("64", "128"), 1, 21).write(tmp_path / "0.db")
    for form in ("console", "md", "html"):
        said = unescape(cli("summary", "kernels", file, "-f", form).out)
        assert said.count("update<float, 64>") == said.count("update<float, 128>") == 1
        assert "app::" not in said
        assert cli("summary", "kernels", file, "-f", form, "--full-names").out.count("app::update") == 2
    for form in ("csv", "json"):
        assert cli("summary", "kernels", file, "-f", form).out.count(full) == 1
        bare = cli("summary", "kernels", file, "-f", form, "--truncate-kernels").out
        assert ("app::" in bare, bare.count("update")) == (False, 1)
    assert full in cli("summary", "--amd", file).out
    cli("summary", "kernels", file, "-o", tmp_path / "kernels.txt")
    assert "app::update" not in (tmp_path / "kernels.txt").read_text()
