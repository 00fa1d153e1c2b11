"""Every command, run as users run it: what is on stdout, on stderr, on disk, and the exit code."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

from rocpd import __version__
from tests.build import TraceBuilder
from tests.cli.conftest import assert_one_error
from tests.conftest import Cli, Said, state_of

COUNT = "select count(*) as n, sum(duration) as ns from kernels"
ALL_FOUR = Said(0, "n,ns\n4,100\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ("query", COUNT, "db0.db", "db1.db", "db2.db", "db3.db"),
        ("query", "db0.db", "db1.db", "db2.db", "db3.db", COUNT),
        ("query", "db0.db", COUNT, "db1.db", "db2.db", "db3.db"),
        ("query", "db*.db", COUNT),
        ("query", "--query", COUNT, "db*.db"),
        ("query", "-i", "db0.db", "db1.db", "db2.db", "db3.db", "--query", COUNT),
        ("query", "--query", COUNT, "-i", "db0.db", "db1.db", "db2.db", "db3.db"),
        ("query", "-i", "db0.db", "db1.db", "db2.db", "db3.db", COUNT),
        ("query", "-i", "db0.db", "-i", "db1.db", "--query", COUNT, "db2.db", "db3.db"),
        ("query", COUNT, "."),
        ("query", COUNT, "-i", "../job"),
        ("query", f"{COUNT} -- and a remark", "."),
        ("query", f"  {COUNT} ;  ", "."),
    ],
)
def test_where_the_sql_may_stand(words: tuple[str, ...], cli: Cli, job: Path) -> None:
    assert cli(*words, "--format", "csv") == ALL_FOUR


def test_inputs_by_default(cli: Cli, job: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = cli("query", COUNT, "-f", "csv")
    assert (said.out, said.err) == (ALL_FOUR.out, "rocpd: input: 4 files, db0.db … db3.db\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROCPD_INPUT", "job/db1.db:job/db2.db")
    said = cli("query", COUNT, "-f", "csv")
    assert (said.out, said.err) == ("n,ns\n2,50\n", "rocpd: input: 2 files from $ROCPD_INPUT\n")


@pytest.mark.parametrize(
    "command", [("query", "select 1"), ("summary",), ("merge",), ("info",), ("convert", "-f", "csv")]
)
def test_nothing_to_work_on(
    command: tuple[str, ...], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = cli(*command)
    assert_one_error(said, 3, "no input: no *.rpdb, merged.db, *.db or HOST/PID_results.db in this folder")
    assert "set ROCPD_INPUT" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_input_is_named_wherever_it_stands(cli: Cli, job: Path) -> None:
    for words in (("select 1", "nowhere"), ("nowhere", "select 1"), ("-i", "nowhere", "select 1")):
        assert_one_error(cli("query", *words), 3, "nowhere: no such file")


def test_console_is_plain_text_in_a_pipe(cli: Cli, job: Path) -> None:
    said = cli("query", "select name, rank, duration, null as x from kernels order by rank limit 2", ".")
    assert said == Said(
        0,
        "name  rank  duration     x\n"
        "----  ----  --------  ----\n"
        "gemm     0        10  NULL\n"
        "gemm     1        20  NULL\n",
        "",
    )  # fmt: skip


def test_the_console_is_cut_and_says_so(cli: Cli, job: Path) -> None:
    said = cli("query", "select rank from kernels order by 1", ".", "--limit", "2")
    assert said.out == "rank\n----\n   0\n   1\n"
    assert said.err == "rocpd: cut at 2 rows; --limit 0 shows all, --format csv streams them\n"
    for words in (("--limit", "0"), ("--limit", "4"), ()):
        said = cli("query", "select rank from kernels", ".", *words)
        assert (said.err, len(said.out.splitlines())) == ("", 6)


@pytest.mark.parametrize("command", [("query", "select rank from kernels"), ("summary", "kernels", "--by", "rank")])
@pytest.mark.parametrize(("form", "others"), [("csv", 1), ("md", 2), ("json", 2)])
def test_a_limit_holds_in_every_format_and_none_is_usual_in_files(
    cli: Cli, job: Path, command: Sequence[str], form: str, others: int
) -> None:
    if form == "md" and command[0] == "summary":
        others += 4  # the heading and what the table is

    def rows(*words: str) -> int:
        return len(cli(*command, ".", "-f", form, *words).out.splitlines()) - others

    assert (rows("--limit", "1"), rows("--limit", "0"), rows()) == (1, rows(), rows())
    assert rows() > 1


def test_a_limit_leaves_full_names_in_full(cli: Cli, job: Path) -> None:
    """Pages have the names of kernels short, unless they are asked for in full."""
    name = "Cijk_Ailk_Bljk_BBS_BH_MT256x192x64_MI16x16x1_SN"
    TraceBuilder(4).kernel(name, 1000, 2000).write(job / "db4.db")
    limited = ("summary", "kernels", ".", "-f", "html", "--limit", "1")
    assert f"<td>{name}" not in cli(*limited).out
    assert f"<td>{name}" in cli(*limited, "--full-names").out


def test_scripts(cli: Cli, job: Path) -> None:
    """`;` in strings, comments, names and triggers ends no statement."""
    Path("first.sql").write_text(
        "\ufeff-- a remark; with a semicolon\n"
        "create temp table t (a); /* and; another */\n"
        "create temp trigger tr after insert on t begin update t set a = a || ';x'; update t set a = a || \"a\"; end;\n"
        "insert into t values ('one;two');;\n"
        'create temp view "odd;name" as select a from t;\n',
        encoding="utf-8",
    )
    said = cli("query", "--script", "first.sql", "--query", 'select * from "odd;name"', ".", "-f", "csv")
    assert said == Said(0, "a\none;two;xone;two;x\n", "")
    Path("whole.sql").write_text("select count(*) as n from kernels;\n-- the end\n")
    assert cli("query", "--script", "whole.sql", ".", "-f", "csv") == Said(0, "n\n4\n", "")
    assert cli("query", "-i", "db0.db", "db1.db", "--script", "whole.sql", "-f", "csv") == Said(0, "n\n2\n", "")
    assert_one_error(cli("query", "--script", "missing.sql", "."), 2, "missing.sql: cannot be read")


def test_several_results(cli: Cli, job: Path) -> None:
    two = "select 1 as a; select 2 as b, 3 as c"
    assert cli("query", two, ".").out == "a\n-\n1\n\nb  c\n-  -\n2  3\n"
    assert cli("query", two, ".", "-f", "csv").out == "a\n1\n\nb,c\n2,3\n"
    assert_one_error(cli("query", two, ".", "-f", "json", "-o", "x"), 2, "more than one statement gives rows")
    assert not Path("x.json").exists()
    assert json.loads(
        cli("query", f"create temp view v as select 5 as x; {'select * from v'}", ".", "-f", "json").out
    ) == [{"x": 5}]


@pytest.mark.parametrize("form", ["csv", "json", "md", "html"])
def test_formats_of_query(form: str, cli: Cli, job: Path) -> None:
    said = cli("query", "select rank, hostname, duration from kernels order by rank", ".", "--format", form)
    assert (said.code, said.err) == (0, "")
    rows = [[str(n), "node0", str(10 + 10 * n)] for n in range(4)]
    if form == "csv":
        assert list(csv.reader(said.out.splitlines())) == [["rank", "hostname", "duration"], *rows]
    elif form == "json":
        assert [[str(cell) for cell in row.values()] for row in json.loads(said.out)] == rows
    elif form == "md":
        assert [line.strip("| ").split(" | ") for line in said.out.splitlines()[2:]] == rows
    else:
        cells = re.findall("<td[^>]*>(.*?)</td>", said.out)
        assert [cells[i : i + 3] for i in range(0, 12, 3)] == rows


@pytest.mark.parametrize(
    ("words", "environment", "path", "start"),
    [
        (("-o", "x.csv"), {}, "x.csv", "n\n4"),
        (("-o", "x.json"), {}, "x.json", "[\n{"),
        (("-o", "x.md"), {}, "x.md", "| n |"),
        (("-o", "x.html"), {}, "x.html", "<!doctype"),
        (("-o", "sub/x.csv"), {}, "sub/x.csv", "n\n4"),
        (("-o", "x.csv"), {"ROCPD_OUTPUT_PATH": "elsewhere"}, "x.csv", "n\n4"),
        (("-o", "sub/x", "-f", "csv"), {}, "sub/x.csv", "n\n4"),
        (("-o", "x"), {}, "rocpd-output-data/x.txt", "n\n-\n4"),
        (("-o", "x", "-f", "csv"), {"ROCPD_OUTPUT_PATH": "elsewhere"}, "elsewhere/x.csv", "n\n4"),
        (("-o", "x.dat", "-f", "csv"), {}, "rocpd-output-data/x.dat.csv", "n\n4"),
        (("-o", "x.csv", "-d", "new"), {}, "new/x.csv", "n\n4"),
        (("-o", "x", "-f", "csv", "-d", "new/folder"), {}, "new/folder/x.csv", "n\n4"),
        (("-f", "csv", "-d", "new"), {}, "new/out.csv", "n\n4"),
        (("-f", "csv", "-d", "new"), {"ROCPD_OUTPUT_NAME": "named"}, "new/named.csv", "n\n4"),
    ],
)
def test_query_to_a_file(
    words: tuple[str, ...], environment: dict[str, str], path: str, start: str, cli: Cli, job: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    before = state_of(job)
    said = cli("query", "select count(*) as n from kernels", ".", *words)
    assert (said.code, said.out) == (0, "")
    assert said.err.startswith(f"rocpd: wrote {path} (")
    assert Path(path).read_text().startswith(start)
    assert set(state_of(job)) == {*before, path}


@pytest.mark.parametrize(
    ("sql", "code", "words"),
    [
        ("select * from nothing_here", 1, "SQL: no such table: nothing_here"),
        ("select nix from kernels", 1, "SQL: no such column: nix"),
        ("selec 1", 1, 'SQL: near "selec": syntax error'),
        ("delete from rocpd_region", 1, "SQL: cannot modify rocpd_region because it is a view"),
        ("attach 'x' as y", 1, "refused: this statement would write"),
        ("select abs(-9223372036854775808)", 1, "SQL: integer overflow"),
    ],
)
def test_sql_errors(sql: str, code: int, words: str, cli: Cli, job: Path) -> None:
    before = state_of(job)
    assert_one_error(cli("query", sql, "."), code, words)
    assert_one_error(cli("query", sql, ".", "-o", "x.csv"), code, words)
    assert state_of(job) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("frob",), "No such file or command 'frob'"),
        (("query", "--frob"), "No such option: --frob"),
        (("query", "."), "no SQL given"),
        (("query", " ", "."), "no SQL given"),
        (("query", "select 1", ".", "--limit", "-1"), "--limit"),
        (("query", "select 1", ".", "--format", "pdf2"), "--format"),
        (("query", "select 1", "-i"), "-i"),
        (("summary", ".", "--mangled-kernels", "--truncate-kernels"), "contradict"),
        (("summary", ".", "--full-names", "--truncate-kernels"), "contradict"),
        (("summary", ".", "--start", "soon"), "soon: not a time"),
        (("summary", ".", "--inclusive", "perhaps"), "--inclusive perhaps"),
        (("convert", "."), "no output format given"),
        (("convert", "-f", "docx", "."), "format docx: unknown"),
        (("schema", "nothing"), "nothing: no table or view of that name"),
        (("info", ".", "--only", "frob"), "--only"),
    ],
)
def test_usage_errors(words: tuple[str, ...], message: str, cli: Cli, job: Path) -> None:
    before = state_of(job)
    said = cli(*words)
    assert_one_error(said, 2, message)
    assert said.out == ""
    assert state_of(job) == before


def test_merge(cli: Cli, job: Path) -> None:
    said = cli("merge", "db*.db")
    assert (said.code, said.out) == (0, "")
    assert re.fullmatch(r"rocpd: wrote rocpd-output-data/merged\.db \(4 ranks from 4 files, [\d.]+ [kM]B\)\n", said.err)
    assert cli("query", COUNT, "rocpd-output-data/merged.db", "-f", "csv") == ALL_FOUR
    assert apsw.Connection("rocpd-output-data/merged.db").execute(COUNT).fetchall() == [(4, 100)]


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("-d", "."), "merged.db"),
        (("-o", "x", "-d", "y"), "y/x.db"),
        (("-o", "x"), "rocpd-output-data/x.db"),
        (("-o", "x.sqlite"), "x.sqlite"),
        (("-o", "m.db"), "m.db"),
        (("-o", "m.db", "-d", "y"), "y/m.db"),
        (("-o", "x-2.4"), "rocpd-output-data/x-2.4.db"),
        (("-o", "y/x.db"), "y/x.db"),
    ],
)
def test_where_merge_writes(words: tuple[str, ...], path: str, cli: Cli, job: Path) -> None:
    before = state_of(job)
    assert cli("merge", "db0.db", *words).code == 0
    assert set(state_of(job)) == {*before, path}


def test_merge_with_summary(cli: Cli, job: Path) -> None:
    said = cli("merge", ".", "-d", "out", "--summary")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if line.isupper()] == [
        "OVERVIEW",
        "TOP-KERNELS",
        "TOP-STEPS",
    ]
    assert said.out == cli("summary", "out/merged.db").out == cli("summary", "-i", *[f"db{i}.db" for i in range(4)]).out


def test_summary_on_the_console(cli: Cli, job: Path) -> None:
    said = cli("summary", ".", "--domain-summary", "--region-categories", "NONE")
    assert (said.code, said.err) == (0, "")
    kernels, _, domains = said.out.partition("\n\n")
    assert [line.split() for line in kernels.splitlines()][::3] == [
        ["KERNELS", "SUMMARY"],
        ["gemm", "4", "100", "25.0", "100.0", "10", "40", "12.909944487358056"],
    ]
    assert [line.split()[:3] for line in domains.splitlines()[3:]] == [
        ["MARKERS", "4", "1600"],
        ["HIP", "4", "200"],
        ["KERNELS", "4", "100"],
    ]


def test_summary_files(cli: Cli, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCPD_OUTPUT_PATH", "elsewhere")
    said = cli("summary", "-i", "db0.db", "db1.db", "--summary-by-rank", "--format", "csv")
    assert (said.code, said.out) == (0, "")
    names = [f"{n}_summary{r}" for n in ("hip", "kernels", "markers") for r in ("", "_by_rank")]
    assert sorted(path.name for path in Path("elsewhere").iterdir()) == [f"out_{name}.csv" for name in names]
    assert Path("elsewhere/out_kernels_summary.csv").read_text() == (
        "Name,Calls,DURATION (nsec),AVERAGE (nsec),PERCENT (INC),MIN (nsec),MAX (nsec),STD_DEV\n"
        "gemm,2,30,15.0,100.0,10,20,7.0710678118654755\n"
    )
    assert Path("elsewhere/out_kernels_summary_by_rank.csv").read_text().splitlines()[1:] == [
        "100,node0,gemm,1,10,10.0,100.0,10,10,",
        "101,node0,gemm,1,20,20.0,100.0,20,20,",
    ]
    assert len(said.err.splitlines()) == len(names)


def test_summary_writes_all_files_or_none(cli: Cli, job: Path) -> None:
    Path("out").mkdir()
    Path("out/out_markers_summary.csv").write_text("mine")
    assert_one_error(cli("summary", ".", "--format", "csv", "-d", "out"), 1, "out_markers_summary.csv: exists")
    assert [path.name for path in Path("out").iterdir()] == ["out_markers_summary.csv"]


def test_summary_of_nothing_is_an_error(cli: Cli, job: Path) -> None:
    empty = TraceBuilder(9).write(Path("empty.db"))
    for words in ((), ("--domain-summary",), ("--format", "csv", "-d", "out")):
        assert_one_error(cli("summary", empty, *words), 1, "nothing to summarise")
    assert not Path("out").exists()


def test_info(cli: Cli, job: Path) -> None:
    said = cli("info", ".", "--only", "ranks", "--format", "csv")
    rows = list(csv.DictReader(said.out.splitlines()))
    assert [(row["rank"], row["file"], row["host"], row["pid"]) for row in rows] == [
        (str(n), f"db{n}.db", "node0", str(100 + n)) for n in range(4)
    ]
    assert "RANKS" in cli("info", ".").out
    assert cli("info", "db0.db", "--only", "problems").out == "no problems\n"
    assert cli("info", "db0.db", "--only", "problems", "-f", "csv").out.splitlines() == ["rank,what"]


def test_problems_were_called_odd(cli: Cli, job: Path) -> None:
    TraceBuilder(9).kernel("gemm", 50, 40).write(Path("bad.db"))
    said = cli("info", "bad.db", "--only", "problems", "-f", "csv")
    assert said.out.splitlines()[0] == "rank,what"
    assert "rocpd_kernel_dispatch: 1 row without an end" in said.out
    assert cli("info", "bad.db", "--only", "odd", "-f", "csv") == said
    assert not cli("info", ".").out.endswith("PROBLEMS\nno problems\n")
    assert cli("info", "db0.db").out.endswith("\nPROBLEMS\nno problems\n")


def test_threads_are_jobs(cli: Cli, job: Path) -> None:
    for words in (("--threads", "2"), ("--threads", "0"), ("--jobs", "3"), ("-j", "1")):
        assert cli("query", COUNT, ".", "-f", "csv", *words) == ALL_FOUR
        assert cli("summary", "kernels", ".", "-f", "csv", *words).code == 0


def test_schema(cli: Cli) -> None:
    rows = list(csv.reader(cli("schema", "--format", "csv").out.splitlines()))
    assert {"kernels", "rocpd_region"} <= {row[0] for row in rows}
    columns = list(csv.DictReader(cli("schema", "kernels", "-f", "csv").out.splitlines()))
    assert cli("schema", "idle-calls").out == cli("schema", "idle_calls").out
    assert "overlap_ns" in cli("schema", "diff-kernels").out
    assert {row["column"]: row["unit"] for row in columns}["duration"] == "ns"


def test_convert(cli: Cli, job: Path) -> None:
    said = cli("convert", "-i", "db0.db", "db1.db", "-f", "csv", "pftrace", "-d", "out", "-o", "two")
    assert (said.code, said.out) == (0, ""), said
    kernels = list(csv.DictReader(Path("out/two_kernel_trace.csv").read_text().splitlines()))
    assert [int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in kernels] == [10, 20]
    assert Path("out/two_results.pftrace").stat().st_size > 100
    assert all(line.startswith("rocpd: wrote out/two") for line in said.err.splitlines())
    assert cli("convert", "-f", "pftrace", "db0.db", "db1.db", "-d", "other").code == 0
    assert [path.name for path in Path("other").iterdir()] == ["out_results.pftrace"]


def test_windows(cli: Cli, job: Path) -> None:
    said = cli("query", "select count(*) as n from regions", ".", "--start", "60%", "-f", "csv")
    assert said.out == "n\n4\n"
    assert_one_error(cli("summary", ".", "--start-marker", "nothing"), 2, "no marker matches nothing")


def test_simulate(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    said = cli("simulate", "-o", folder, "--ranks", "2", "--events-per-rank", "50")
    assert (said.code, said.out) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == ["rank0.db", "rank1.db"]
    said = cli("query", "select count(distinct rank) as n from kernels", folder, "-f", "csv")
    assert said.out == "n\n2\n"


def test_the_same_file_twice_counts_once(cli: Cli, job: Path) -> None:
    assert cli("merge", "db0.db", "db1.db", "-d", "out").code == 0
    said = cli("query", COUNT, "db0.db", "db0.db", "out/merged.db", "-f", "csv")
    assert said.out == "n,ns\n2,30\n"
    assert len(said.err.splitlines()) == 1
    assert "counts once" in said.err


def test_no_command_touches_its_inputs(cli: Cli, job: Path, tmp_path: Path) -> None:
    before = state_of(job)
    out = ("-d", tmp_path / "out")
    for words in (
        ("query", COUNT), ("summary",), ("info",), ("merge", *out), ("convert", "-f", "csv", "pftrace", *out),
        ("summary", "--format", "html", *out), ("query", COUNT, "-o", "x.md", *out),
    ):  # fmt: skip
        assert cli(*words, "-i", *sorted(job.glob("*.db"))).code == 0
    assert state_of(job) == before


def test_version(cli: Cli) -> None:
    assert cli("--version") == cli("-v") == Said(0, f"rocpd {__version__}\n", "")
