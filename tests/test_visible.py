"""Text that comes from files cannot steer a terminal, wherever a person reads it; data in pipes and files stays."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from rocpd.base.texts import VisibleStream, as_data, visible, visible_lines
from rocpd.cli import diagnostics as progress
from rocpd.table.html import write_html
from tests.build import TraceBuilder
from tests.cli.test_process import in_terminal
from tests.conftest import Cli

STEERING = [*map(chr, range(32)), *map(chr, range(127, 160)), *"\u2028\u2029\u200e\u200f\u061c\u202a\u202e\u2066\u2069"]
EVIL = "\x1b[31mred\x9b2J\u202egnp"
LINE = "rank 3 is a straggler"
SHOWN = "\\e[31mred\\x9b2J\\u202egnp"


@pytest.mark.parametrize("character", STEERING)
def test_every_character_that_steers_is_shown(character: str) -> None:
    assert visible(character).isprintable()
    assert visible_lines(character) == character if character in "\n\t" else visible_lines(character).isprintable()


def test_other_text_stays() -> None:
    text = "void gemm<float, 2>(é, 漢字, 😀) \\e"
    assert visible(text) == visible_lines(text) == text


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose texts steer terminals; the folder is the working directory."""
    monkeypatch.chdir(tmp_path)
    trace = TraceBuilder(0, host=EVIL, command=f"./{EVIL}\n{LINE}").kernel(EVIL, 1000, 1010)
    trace.counter("SQ_WAVES", 12.5, units=EVIL)
    trace.region(EVIL, 900, 950, category=EVIL).region("mark", 800, 990, message=EVIL)
    return trace.write(tmp_path / f"{EVIL}.db")


@pytest.mark.parametrize(
    "words",
    [
        ("summary",),
        ("summary", "--domain-summary", "--summary-by-rank"),
        ("summary", "all", "--by", "rank"),
        ("summary", "--list-categories"),
        ("summary", "counters"),
        ("advise",),
        ("info",),
        ("query", "select * from regions"),
        ("query", "select 1 as [" + EVIL + "]", "-f", "html"),
        ("query", "select name from regions", "-f", "md"),
        ("convert", "-f", "csv", "-d", EVIL),
        ("query", "select 1 from [" + EVIL + "]"),
        ("query", "select " + EVIL),
        ("summary", EVIL),
        ("convert", "-f", EVIL),
        ("merge", "-o", EVIL + "/x.db"),
    ],
    ids=lambda words: " ".join(words[:2])[:30],
)
@pytest.mark.parametrize("verbose", [False, True])
def test_nothing_steers_the_terminal(words: tuple[str, ...], verbose: bool, evil: Path, cli: Cli) -> None:
    said = cli(*words, "-i", evil.name, *(["-v"] if verbose else []))
    assert [character for character in STEERING if character not in "\n\t" and character in said.out + said.err] == []
    assert "\\e" in said.out + said.err
    assert not [line for line in (said.out + said.err).splitlines() if line.startswith(LINE)]


def test_data_in_pipes_stays(evil: Path, cli: Cli) -> None:
    said = cli("query", "select name from kernels", evil, "-f", "csv")
    assert said.out == f"name\r\n{EVIL}\r\n" or said.out == f"name\n{EVIL}\n"


@pytest.mark.parametrize("form", ["csv", "json", "md", "html", "console"])
def test_data_on_a_terminal_is_shown(form: str, evil: Path) -> None:
    code, seen = in_terminal(["query", "select name from kernels", evil.name, "-f", form], columns=100)
    assert code == 0
    assert EVIL not in seen
    assert "\x9b" not in seen
    assert "gnp" in seen


def test_headings_of_html() -> None:
    out = io.StringIO()
    write_html([EVIL], iter([(EVIL,)]), out)
    assert EVIL not in out.getvalue()
    assert out.getvalue().count(SHOWN) == 2


def test_labels_of_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    with progress.progress(EVIL) as report:
        assert report
        report(1, 2)
    assert SHOWN in capsys.readouterr().err


def test_data_stays_in_a_pipe_alone() -> None:
    out = io.StringIO()
    page = VisibleStream(out)
    assert as_data(page) is out  # type: ignore[arg-type]
    page.writelines([EVIL, "\n\ta\r"])
    assert out.getvalue() == f"{SHOWN}\n\ta\\r"
    out.isatty = lambda: True  # type: ignore[method-assign]
    assert as_data(page) is page  # type: ignore[arg-type, comparison-overlap]


def test_of_escape_sequences_colours_pass_alone() -> None:
    out = io.StringIO()
    VisibleStream(out, has_colours=True).write("\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\a")
    assert out.getvalue() == "\x1b[31mred\x1b[0m\\e[2J\\e]0;title\\x07"
