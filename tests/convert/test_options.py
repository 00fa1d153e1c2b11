"""Options that several formats share: outputs per rank or node, compression, clocks, statistics, processes."""

from __future__ import annotations

import gzip
import io
import json
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocpd
from rocpd.cli import diagnostics as progress
from rocpd.cli import run
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions, Split
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.convert.conftest import BASE, ToCsv, read_csv, to_perfetto
from tests.convert.small import small_job
from tests.perfetto_engine import Engine
from tests.pftrace_frames import count_packets


def test_one_trace_per_rank_or_node(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(
        *(TraceBuilder(i, host=f"n/{i // 2}", pid=20 + i).kernel(f"k{i}", BASE, BASE + 1) for i in range(3))
    )

    ranks = FORMATS["pftrace"].write(session, ConvertOptions(tmp_path, split=Split.RANK))
    nodes = FORMATS["pftrace"].write(session, ConvertOptions(tmp_path, split=Split.NODE))

    assert [p.name for p in ranks] == [
        "out_rank0_results.pftrace",
        "out_rank1_results.pftrace",
        "out_rank2_results.pftrace",
    ]
    assert [p.name for p in nodes] == ["out_node-n_0_results.pftrace", "out_node-n_1_results.pftrace"]
    written = [[name for (name,) in Engine(p).rows("SELECT name FROM recorded ORDER BY 1")] for p in (*ranks, *nodes)]
    assert written == [["k0"], ["k1"], ["k2"], ["k0", "k1"], ["k2"]]


def test_csv_and_json_split_too(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(*small_job())

    tables = FORMATS["csv"].write(session, ConvertOptions(tmp_path, split=Split.RANK))
    (first, second) = FORMATS["json"].write(session, ConvertOptions(tmp_path, split=Split.RANK))

    assert "out_rank1_kernel_trace.csv" in [p.name for p in tables]
    assert {row["Guid"] for row in read_csv(tmp_path / "out_rank1_kernel_trace.csv")} == {session.ranks[1].guid}
    assert json.loads(first.read_text()) != json.loads(second.read_text())


@pytest.mark.parametrize("form", ["csv", "json", "pftrace"])
def test_compressed_outputs_hold_the_same_bytes(open_job: OpenJob, tmp_path: Path, form: str) -> None:
    session = open_job(*small_job())

    plain = FORMATS[form].write(session, ConvertOptions(tmp_path))
    squeezed = FORMATS[form].write(session, ConvertOptions(tmp_path, name="z.gz"))
    again = FORMATS[form].write(session, ConvertOptions(tmp_path, name="y", gzip=True))

    assert [p.name for p in squeezed] == [p.name.replace("out", "z", 1) + ".gz" for p in plain]
    for p, z, y in zip(plain, squeezed, again, strict=True):
        assert gzip.decompress(z.read_bytes()) == p.read_bytes()
        assert y.read_bytes() == z.read_bytes()
    if form == "pftrace":
        engine = Engine(squeezed[0])
        assert engine.complaints() == []
        assert engine.one("SELECT COUNT(*) FROM recorded") == Engine(plain[0]).one("SELECT COUNT(*) FROM recorded")


@pytest.mark.parametrize(("name", "output"), [("t.gz", "t_results.pftrace.gz"), ("t.pftrace.gz", "t.pftrace.gz")])
def test_a_name_that_ends_in_gz(open_job: OpenJob, tmp_path: Path, name: str, output: str) -> None:
    (path,) = FORMATS["pftrace"].write(open_job(TraceBuilder()), ConvertOptions(tmp_path, name=name))
    assert path.name == output


def test_a_name_with_the_ending_of_a_further_format(tmp_path: Path) -> None:
    """Endings come from the rows of formats."""
    options = ConvertOptions(tmp_path, name="t.ndjson.gz").without_gz([".json", ".ndjson", ".son"])
    assert (options.name, options.gzip) == ("t", True)


@pytest.fixture(scope="module")
def in_one_and_in_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[rocpd.Session, rocpd.Session]]:
    """A job opened twice: for one process, and for two, which start once for all formats."""
    folder = tmp_path_factory.mktemp("processes")
    simulate(JobOptions(folder, ranks=3, nodes=2, steps=1, faults=True))
    with (
        rocpd.connect(folder, skip_bad=True, jobs=1) as one,
        rocpd.connect(folder, skip_bad=True, jobs=2) as two,
    ):
        yield one, two


@pytest.mark.parametrize("form", ["pftrace", "csv", "json", "arrow", "parquet"])
def test_processes_write_the_same_bytes(
    in_one_and_in_two: tuple[rocpd.Session, rocpd.Session], tmp_path: Path, form: str
) -> None:
    notes, written = [], []
    for number, session in enumerate(in_one_and_in_two):
        folder = tmp_path / f"out{number}"
        FORMATS[form].write(session, ConvertOptions(folder, stats=True))
        notes.append(session.notes)
        files = sorted(p for p in folder.rglob("*") if p.is_file())
        written.append({str(p.relative_to(folder)): p.read_bytes() for p in files})
    assert written[0] == written[1]
    assert notes[0] == notes[1]
    assert written[0]


def test_more_files_than_sqlite_attaches(tmp_path: Path) -> None:
    files = [
        TraceBuilder(i, pid=100 + i).kernel(f"k{i}", BASE + i, BASE + i + 1).write(tmp_path / f"{i}.db")
        for i in range(130)
    ]
    with rocpd.connect(files) as session:
        engine = to_perfetto(session, tmp_path / "o")
        (kernels, _) = FORMATS["csv"].write(session, ConvertOptions(tmp_path / "o"))

    assert engine.one("SELECT COUNT(DISTINCT name) FROM recorded") == 130
    assert len(read_csv(kernels)) == 130


def test_clock_offsets_move_hosts_and_windows(tmp_path: Path) -> None:
    for i, host in enumerate("ab"):
        builder = TraceBuilder(i, host=host)
        for k in range(4):
            builder.kernel(f"{host}{k}", BASE + i * 1000 + 10 * k, BASE + i * 1000 + 10 * k + 5)
        builder.write(tmp_path / f"{host}.db")
    command = ["convert", str(tmp_path), "-f", "pftrace", "-d", str(tmp_path / "o"), "--clock-offset", "b=-1000"]

    assert run(command) == 0
    written = Engine(tmp_path / "o" / "out_results.pftrace").rows("SELECT name, ts FROM recorded ORDER BY ts, name")
    assert written == [(f"{host}{k}", BASE + 10 * k) for k in range(4) for host in "ab"]

    assert run([*command, "-o", "half", "--start", "50%", "--inclusive", "False"]) == 0
    written = Engine(tmp_path / "o" / "half_results.pftrace").rows("SELECT name FROM recorded ORDER BY ts, name")
    assert written == [("a2",), ("b2",), ("a3",), ("b3",)]


@pytest.mark.parametrize("word", ["b", "b=x", "=5", "nowhere=5"])
def test_clock_offsets_that_make_no_sense(tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    TraceBuilder(host="b").kernel("k", 1, 2).write(tmp_path / "b.db")

    assert run(["convert", str(tmp_path), "-f", "pftrace", "-d", str(tmp_path / "o"), "--clock-offset", word]) == 2
    assert "error: " in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_statistics_files(csv_files: ToCsv) -> None:
    lasts = [[10, 30], [20, 1_000_000_007]]
    files = csv_files(
        *(
            TraceBuilder(i).kernel("k", 100, 100 + a).kernel("k", 200, 200 + b).kernel("bad", 9, 4).region("hipA", 1, 3)
            for i, (a, b) in enumerate(lasts)
        ),
        stats=True,
    )

    durations = [d for pair in lasts for d in pair]
    (kernel, bad) = files["kernel_stats"]
    assert list(kernel) == ["Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage", "MinNs", "MaxNs", "StdDev"]
    assert list(kernel.values()) == [
        "k", "4", str(sum(durations)), repr(sum(durations) / 4), "100.0", "10", "1000000007",
        repr(statistics.stdev(durations)),
    ]  # fmt: skip
    assert list(bad.values()) == ["bad", "2", "0", "", "0.0", "", "", ""]
    assert [(row["Name"], row["Calls"], row["TotalDurationNs"]) for row in files["domain_stats"]] == [
        ("KERNEL_DISPATCH", "6", str(sum(durations))),
        ("HIP_API", "2", "4"),
    ]


def test_every_option_on_the_command_line(tmp_path: Path) -> None:
    for builder, name in zip(small_job(), ("a.db", "b.db"), strict=True):
        builder.write(tmp_path / name)
    words = ["--kernel-rename", "--group-by-queue", "--agent-index-value", "type-relative", "--annotate-args"]
    words += [
        "--annotate-pmc",
        "--split",
        "rank",
        "--gzip",
        "--stats",
        "--view",
        "kernels",
        "--arrow-stream",
        "-j",
        "2",
    ]
    forms = ["csv", "perfetto", "otf2", "parquet", "arrow", "json"]

    pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    assert run(["convert", "-i", str(tmp_path), "-d", str(tmp_path / "o"), "-f", *forms, *words]) == 0

    trace = tmp_path / "o" / "out_rank0_results.pftrace.gz"
    engine = Engine(trace)
    written = engine.rows(
        "SELECT track, title, EXTRACT_ARG(arg_set_id, 'debug.SQ_WAVES') FROM recorded"
        " WHERE category = 'kernel_dispatch' ORDER BY ts"
    )
    assert written[0] == ("GPU 0 / queue 1", 'step "1", über', 64.0)
    names = {p.name for p in (tmp_path / "o").iterdir()}
    assert {"out_rank1.json.gz", "out_rank0_results.otf2", "out_parquet", "out_kernels.arrows"} <= names
    assert {"out_rank0_kernel_stats.csv.gz", "out_rank1_domain_stats.csv.gz"} <= names
    (tmp_path / "plain.pftrace").write_bytes(gzip.decompress(trace.read_bytes()))
    assert count_packets(tmp_path / "plain.pftrace") > 0


def test_a_bar_with_rows_speed_and_time_left_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for i, builder in enumerate(small_job()):
        builder.write(tmp_path / f"{i}.db")
    monkeypatch.setattr(progress, "_PATIENCE_S", -1.0)
    monkeypatch.setattr(progress, "_REDRAW_S", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    assert run(["convert", "-f", "json", "-d", str(tmp_path / "o"), str(tmp_path)]) == 0

    written = re.findall(r"convert json ━+ *(\d+)%  (\d+) rows  [\d,]+ MB/s  [\d,]+ s left", terminal.getvalue())
    assert written[0] == ("50", "16")
