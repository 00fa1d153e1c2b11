"""Formats and analyses declare their own options: the command line offers them, and refuses what nothing reads.

A package that is installed has the same rights as ours, without a line in `rocpd.cli`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import rocpd
from rocpd.base.option import Option, options_of
from rocpd.convert import FORMATS, Format
from rocpd.convert.options import ConvertOptions
from rocpd.facts.rank import Options
from rocpd.summary.registry import SUMMARIES
from rocpd.table import TABLE_FORMATS
from tests.cli.conftest import assert_one_error
from tests.conftest import Cli, Said
from tests.warm import BEFORE

MODULE = '''
from collections.abc import Iterator
from rocpd.convert import Format
from rocpd.base.option import Option
from rocpd.base.output import complete_or_nothing
from rocpd.summary.registry import Analysis, TextForm
from rocpd.summary.result import Field, TableDefinition
from rocpd.table import TableFormat


def write_count(session, options, progress=None):
    """A trace format with an option of its own, and one of ours."""
    path = options.path(".count")
    with complete_or_nothing(path, options.force) as temporary:
        temporary.write_text(f"{len(session.ranks)} {options.further['depth']} {options.kernel_rename}")
    return (path,)


COUNT = Format("count", "number of ranks", "ours:write_count", (".count",),
               (Option("How deep.", name="depth", kind=int, default=3, least=1), "kernel_rename"), hints=("tally",))

TABLE = TableDefinition("ours", "Ranks.", (Field("ranks", "", "ranks"), Field("depth", "", "as asked")))
DETAIL = TableDefinition("ours-detail", "More.", (Field("x", "", "x"),))


def ours(reading):
    yield reading.summary(TABLE, [(len(reading.session.ranks), reading.options.further["level"])])
    yield reading.summary(DETAIL, [(reading.options.bins,)])


def shout(reading):
    yield f"{len(reading.session.ranks)} RANKS\\n"


OURS = Analysis("ours:ours", ("ours", "ours-detail"), "ranks by ours",
                ("bins", Option("Which level.", name="level", kind=str, default="low", metavar="LEVEL")),
                (TextForm("shout", "ours:shout", ".shout"),))


def plain(reading):
    yield reading.summary(TABLE, [(len(reading.session.ranks), "plain")])


def write_tabs(columns, rows, out):
    for row in (columns, *rows):
        out.write("\\t".join(map(str, row)) + "\\n")


TABS = TableFormat("tabs", "tab-separated values", "ours:write_tabs", ".tsv")
GREEDY = Format("greedy", "takes what is ours", "ours:write_count", reads=(Option("Mine.", name="force", kind=bool),))
HASTY = Analysis("ours:ours", ("hasty",), "too", (Option("Mine.", flags=("-v", "--verbose"), name="vivid", kind=bool),))
'''
ASK = """
import rocpd

with rocpd.connect("db0.db") as session:
    print(session.summary("ours").fetchall(), session.summary("ours", level="high").fetchall())
    for name, options in (("ours", {"deep": 3}), ("kernels", {"level": "high"}), ("ours", {"level": 7})):
        try:
            session.summary(name, **options)
        except rocpd.UsageError as error:
            print(f"{error.message} [{error.hint}]")
    for options in ({}, {"depth": 7, "kernel_rename": True}):
        (path,) = session.convert("count", "asked", force=True, **options)
        print(path, path.read_text())
    try:
        session.convert("count", "asked", force=True, depth=0)
    except rocpd.UsageError as error:
        print(error.message)
"""
ENTRY_POINTS = """
[rocpd.formats]
count = ours:COUNT
greedy = ours:GREEDY
[rocpd.summaries]
ours = ours:OURS
simple = ours:plain
hasty = ours:HASTY
[rocpd.table_formats]
tabs = ours:TABS
bars = ours:write_tabs
"""


@pytest.fixture
def installed(tmp_path: Path, job: Path, warm_process: Cli) -> Callable[..., Said]:
    """Run a command line where the package `ours` is installed."""
    library = tmp_path / "library"
    package = library / "ours-1.0.dist-info"
    package.mkdir(parents=True)
    (library / "ours.py").write_text(MODULE)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(ENTRY_POINTS)
    found = f"import sys; sys.path.insert(0, {str(library)!r})"

    def run(*words: str, script: str = "", **more: str) -> Said:
        before = f"{found}; exec({script!r}); sys.exit()" if script else found
        return warm_process(*words, environment={BEFORE: before, **more}, cwd=job)

    return run


def test_a_trace_format(installed: Callable[..., Said], job: Path) -> None:
    shown = installed("convert", "--help-all", COLUMNS="100").out
    assert "--depth N" in shown
    assert "How deep. [count] (default: 3)" in shown
    assert installed("convert", "-f", "count", "csv", "--depth", "5", "--kernel-rename", "-d", "o", ".").code == 0
    assert (job / "o" / "out.count").read_text() == "4 5 True"
    assert installed("convert", "-o", "x.count", "db0.db").code == 0
    assert (job / "x.count").read_text() == "1 3 False"
    assert_one_error(installed("convert", "-f", "count", "--stats", "."), 2, "--stats concerns none of count")
    assert_one_error(installed("convert", "-f", "pftrace", "--depth", "2", "."), 2, "--depth concerns none of pftrace")
    said = installed("convert", "-f", "tally", ".")
    assert_one_error(said, 2, "format tally: unknown")
    assert "did you mean count?" in said.err


def test_an_analysis_with_an_option_and_a_text_form(installed: Callable[..., Said], job: Path) -> None:
    shown = installed("summary", "--help-all", COLUMNS="100").out
    assert "--level LEVEL" in shown
    assert "of ours: shout" in " ".join(shown.split())
    listed = [line.split()[:2] for line in installed("summary", "--list").out.splitlines()]
    assert ["ours", "ours-detail"] in listed
    said = installed("summary", "ours", ".", "--level", "high", "--bins", "7", "-f", "json")
    assert '"ranks": 4, "depth": "high"' in said.out
    assert '"x": 7' in said.out
    assert installed("summary", "ours-detail", ".", "-f", "csv") == Said(0, "x\n50\n", "")
    assert installed("summary", "ours", ".", "-f", "shout") == Said(0, "4 RANKS\n", "")
    assert installed("summary", "ours", "db0.db", "-o", "x.shout").code == 0
    assert (job / "x.shout").read_text() == "1 RANKS\n"
    assert_one_error(installed("summary", "kernels", ".", "-f", "shout"), 2, "--format shout is a format of ours")
    assert_one_error(installed("summary", "kernels", ".", "--level", "x"), 2, "--level concerns none of kernels")
    assert_one_error(installed("summary", "ours", ".", "--sequence", "2"), 2, "--sequence concerns none of ours")
    assert "did you mean ours?" in installed("summary", "our", ".").err


def test_options_of_another_package_from_python(installed: Callable[..., Said], job: Path) -> None:
    said = installed(script=ASK)
    assert said.err == ""
    assert said.out.splitlines() == [
        "[(1, 'low')] [(1, 'high')]",
        "ours has no option deep [it has bins, level]",
        "kernels has no option level [it has step_marker, each_agent]",
        "level 7: not of type str [None]",
        "asked.count 1 3 False",
        "asked.count 1 7 True",
        "depth 0: not a whole number of at least 1",
    ]


def test_an_option_that_clashes_with_one_of_the_command_is_refused(installed: Callable[..., Said]) -> None:
    said = installed("convert", "-f", "greedy", ".")
    assert_one_error(said, 2, "greedy: its option --force is an option of the command itself")
    assert "the package with the entry point greedy" in said.err
    assert_one_error(installed("summary", "hasty", "."), 2, "hasty: its option --verbose is an option of the command")
    assert installed("convert", "-f", "count", "-d", "o", "db0.db").code == 0


def test_a_plain_function_is_enough(installed: Callable[..., Said]) -> None:
    assert installed("summary", "simple", ".", "-f", "csv", "--bins", "3").out == "ranks,depth\n4,plain\n"
    assert "from ours" in installed("summary", "--list").out


def test_a_table_format(installed: Callable[..., Said], job: Path) -> None:
    sql = "select rank, duration from kernels order by 1 limit 1"
    for words in (("-f", "tabs"), ("-f", "bars")):
        assert installed("query", sql, ".", *words) == Said(0, "rank\tduration\n0\t10\n", "")
    assert installed("query", sql, ".", "-o", "x.tsv").code == 0
    assert (job / "x.tsv").read_text() == "rank\tduration\n0\t10\n"
    assert installed("summary", "kernels", ".", "-f", "tabs").out.startswith("name\tcalls\t")
    assert installed("summary", ".", "-f", "tabs", "-d", "o").code == 0
    assert (job / "o" / "out_kernels_summary.tsv").read_text().startswith("Name\tCalls\t")
    assert installed("schema", "kernels", "-f", "tabs").out.startswith("column\tunit\tmeaning\n")
    shown = [name for name, entry in TABLE_FORMATS.items() if not entry.is_columnar]
    assert ", ".join([*shown, "tabs", "bars"]) in " ".join(installed("query", "--help-all").out.split())


def readers(option: str) -> str:
    return ", ".join(name for name, entry in FORMATS.items() if option in entry.reads)


@pytest.mark.parametrize(
    ("words", "flag", "option"),
    [
        (("-f", "pftrace", "--stats"), "--stats", "stats"),
        (("-f", "pftrace", "--view", "nosuch"), "--view", "views"),
        (("-f", "pftrace", "--arrow-stream"), "--arrow-stream", "arrow_stream"),
        (("-f", "parquet", "--gzip"), "--gzip", "gzip"),
        (("-f", "parquet", "arrow", "--split", "rank"), "--split", "split"),
        (("-f", "otf2", "--gzip"), "--gzip", "gzip"),
    ],
)
def test_an_option_that_nothing_reads(words: tuple[str, ...], flag: str, option: str, cli: Cli, job: Path) -> None:
    said = cli("convert", *words, "-d", "out", ".")
    assert_one_error(said, 2, f"{flag} concerns none of ")
    assert f"it is for {readers(option)}\n" in said.err
    assert not (job / "out").exists()


def test_an_option_that_one_of_the_formats_reads(cli: Cli, job: Path) -> None:
    assert cli("convert", "-f", "pftrace", "csv", "--stats", "-d", "out", ".").err.count("without effect") == 0


def test_options_of_amd_pass_everywhere_and_say_so(cli: Cli, job: Path) -> None:
    """AMD's own tool takes them with any format."""
    said = cli("convert", "-f", "csv", "--annotate-args", "--group-by-queue", "-d", "out", "db0.db")
    assert said.code == 0
    assert said.err.splitlines()[0] == "rocpd: without effect on csv: --group-by-queue, --annotate-args"


@pytest.mark.parametrize("name", FORMATS)
def test_rows_of_formats_are_true(name: str) -> None:
    """What a row says that its format reads is read somewhere in the package, and has a default."""
    declared = {option.name: option for option in options_of(ConvertOptions)}
    for option in FORMATS[name].options:
        assert option == declared[option.name]
        assert getattr(ConvertOptions(Path()), option.name) == option.default


def test_rows_of_analyses_are_true() -> None:
    """What rows read by name are the fields of `Options`, all of them; the rest they declare themselves."""
    read = {name for analysis in SUMMARIES.values() for name in analysis.reads if isinstance(name, str)}
    assert read == {option.name for option in options_of(Options)}


def test_an_option_that_is_not_there() -> None:
    wrong = Format("x", "x", "x:x", reads=("nonsense", Option("mine", name="mine")))
    with pytest.raises(rocpd.RocpdError, match="ConvertOptions has no option nonsense"):
        _ = wrong.options
