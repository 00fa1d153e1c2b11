"""`-o` and `-d` mean one thing in every command: a base name in a folder, or the file itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rocpd.base.output import Destination, destination
from tests.conftest import Cli, state_of


@pytest.mark.parametrize(
    ("name", "folder", "expected"),
    [
        (None, None, ("rocpd-output-data", "out", "")),
        ("x", None, ("rocpd-output-data", "x", "")),
        ("x", "d", ("d", "x", "")),
        ("x.csv", None, (".", "x", ".csv")),
        ("x.csv", "d", ("d", "x", ".csv")),
        ("sub/x.csv", None, ("sub", "x", ".csv")),
        ("sub/x", None, ("sub", "x", "")),
        ("sub/x", "d", ("d/sub", "x", "")),
        ("/tmp/x", None, ("/tmp", "x", "")),
        ("./x", None, (".", "x", "")),
        ("v1.2", None, ("rocpd-output-data", "v1.2", "")),
        ("x.a.csv", None, (".", "x", ".a.csv")),
        (".csv", None, ("rocpd-output-data", ".csv", "")),
        ("sub/", None, ("sub", "out", "")),
        ("sub/", "d", ("d/sub", "out", "")),
        ("x/..", None, ("x/..", "out", "")),
    ],
)
def test_destinations(name: str | None, folder: str | None, expected: tuple[str, str, str], cli: Cli) -> None:
    target = destination(name, Path(folder) if folder else None, [".csv", ".a.csv"])
    assert target == Destination(Path(expected[0]), *expected[1:])


def test_variables_give_what_is_not_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_OUTPUT_PATH", "there")
    monkeypatch.setenv("ROCPD_OUTPUT_NAME", "named")
    assert destination(None, None, [".csv"]) == Destination(Path("there"), "named")
    assert destination("x", None, [".csv"]) == Destination(Path("there"), "x")
    assert destination("x.csv", None, [".csv"]) == Destination(Path(), "x", ".csv")
    assert destination(None, Path("d"), [".csv"]) == Destination(Path("d"), "named")


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (("convert", "-o", "x.pftrace"), {"x.pftrace"}),
        (("convert", "-f", "pftrace", "-o", "sub/x.pftrace"), {"sub/x.pftrace"}),
        (("convert", "-f", "pftrace", "-o", "sub/x"), {"sub/x_results.pftrace"}),
        (("convert", "-f", "perfetto", "json", "-o", "x.pftrace"), {"x.pftrace", "x.json"}),
        (("convert", "-o", "x.json", "-d", "d"), {"d/x.json"}),
        (("convert", "-o", "x.pftrace.gz"), {"x.pftrace.gz"}),
        (("convert", "-f", "json", "-o", "x.gz"), {"rocpd-output-data/x.json.gz"}),
        (("convert", "-o", "x.arrow"), {"x.arrow"}),
        (("convert", "-o", "x.arrows"), {"x.arrows"}),
        (("convert", "-f", "arrow", "-o", "x"), {"rocpd-output-data/x_kernels.arrow"}),
        (
            ("convert", "-o", "x.parquet", "--view", "kernels"),
            {"x.parquet/kernels/rank=0/part.parquet", "x.parquet/.rocpd-manifest.json"},
        ),
        (("convert", "-f", "pftrace", "-o", "x.json"), {"rocpd-output-data/x.json_results.pftrace"}),
        (("summary", "kernels", "-o", "x.csv"), {"x.csv"}),
        (("summary", "kernels", "-o", "sub/x.parquet"), {"sub/x.parquet"}),
        (("summary", "kernels", "api", "-o", "x.csv"), {"x_kernels.csv", "x_api.csv"}),
        (("summary", "kernels", "api", "-o", "x.html"), {"x.html"}),
        (("summary", "kernels", "-f", "csv", "-o", "x"), {"rocpd-output-data/x_kernels.csv"}),
        (("summary", "-o", "x.csv"), {"x_hip_summary.csv", "x_kernels_summary.csv", "x_markers_summary.csv"}),
        (("summary", "calls", "-o", "x.folded"), {"x.folded"}),
        (("summary", "calls", "-o", "x.speedscope.json"), {"x.speedscope.json"}),
        (("summary", "calls", "-o", "x.json"), {"x.json"}),
        (("merge", "-o", "sub/m.db3"), {"sub/m.db3"}),
        (("query", "select 1", "-o", "x.html"), {"x.html"}),
        (("query", "select 1", "-f", "csv", "-o", "sub/"), {"sub/out.csv"}),
        (("merge", "-o", "."), {"merged.db"}),
        (("convert", "-f", "json", "-o", "./"), {"out.json"}),
        (("package", "-d", "."), {"index.yaml"}),
        (("package", "-d", ".", "--copy"), {"job.rpdb/db0.db", "job.rpdb/index.yaml", "job.rpdb/.rocpd-manifest.json"}),
        (("package", "-d", "sub/"), {"sub.rpdb/index.yaml", "sub.rpdb/.rocpd-manifest.json"}),
    ],
)
def test_where_commands_write(words: tuple[str, ...], paths: set[str], cli: Cli, job: Path) -> None:
    before = state_of(job)
    said = cli(*words, "-i", "db0.db")
    assert (said.code, said.out) == (0, ""), said
    files = {str(p.relative_to(job)) for p in job.rglob("*") if p.is_file()}
    assert files == {*before, *paths}


def test_a_table_that_was_named_is_that_table(cli: Cli, job: Path) -> None:
    assert cli("summary", "kernels", "-o", "x.parquet", ".").code == 0
    assert pq.read_table("x.parquet")["total_ns"].to_pylist() == [100]


def test_the_size_of_an_archive_is_that_of_all_its_files(cli: Cli, job: Path) -> None:
    pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    said = cli("convert", "-f", "otf2", "-d", "o", ".")
    size = sum(path.stat().st_size for path in Path("o").rglob("*") if path.is_file())
    assert size > 1000
    assert said.err == f"rocpd: wrote o/out_results.otf2 ({size / 1000:.1f} kB)\n"


def test_one_file_is_one_file(cli: Cli, tmp_path: Path) -> None:
    said = cli("simulate", "-o", tmp_path / "one", "--ranks", "1", "--events-per-rank", "10")
    assert said.err.startswith(f"rocpd: wrote 1 file to {tmp_path}/one (")


@pytest.mark.parametrize(
    ("words", "path", "start"),
    [
        (("info", "db0.db", "-o", "x.csv", "--only", "agents"), "x.csv", "host,type"),
        (("info", "db0.db", "-d", "d"), "d/out.txt", "JOB\n"),
        (("schema", "kernels", "-o", "x.md"), "x.md", "| column |"),
    ],
)
def test_tables_of_any_command_go_to_files(words: tuple[str, ...], path: str, start: str, cli: Cli, job: Path) -> None:
    said = cli(*words)
    assert (said.code, said.out) == (0, "")
    assert Path(path).read_text().startswith(start)
