"""What help looks like: sections in order, examples first, whole lines, nothing of the parser's own."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from typer.core import TyperArgument, TyperOption

from rocpd.base.option import Heading
from rocpd.cli.commands import COMMANDS, HelpfulCommand, command_of, function_of
from tests.conftest import Cli

MOST_LINES = 45
READERS = ("query", "summary", "convert", "merge", "info", "shell")


def sections(text: str) -> list[str]:
    return [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]


def options_in(command: HelpfulCommand) -> list[TyperArgument | TyperOption]:
    return [each for each in command.params if isinstance(each, TyperArgument | TyperOption)]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("command", COMMANDS)
def test_sections(command: str, cli: Cli) -> None:
    text = cli(command, "--help-all").out
    headings = sections(text)
    assert headings[0] == "Examples"
    assert headings[1:] == [heading for heading in Heading if heading in headings]
    assert headings[-1] == "Other"
    assert max(map(len, text.splitlines())) <= 80
    for strange in ("<int", "<str", "<float", "range>", "list[", "x>=", "[default", "INTEGER", "TEXT..."):
        assert strange not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_screen(command: str, cli: Cli) -> None:
    """It shows the options that are declared plain, each once, and leads to the others."""
    text = cli(command, "--help").out
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 80
    assert sections(text) == ["Examples", "Options"]
    assert lines[lines.index("Examples:") + 1].startswith(("  rocpd ", "  mpirun ", "  srun "))
    shown = re.findall(r"^  (?:-\w, )*(--[\w-]+)", text, re.MULTILINE)
    declared = command_of(function_of(command), command)
    plain = {max(each.opts, key=len) for each in declared.params if each.name in declared.plain}
    assert sorted(shown) == sorted([*(flag for flag in plain if flag.startswith("--")), "--help-all"])
    assert f"All {sum(not each.hidden for each in options_in(declared))} options" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_whole_help_has_every_option(command: str, cli: Cli) -> None:
    text = cli(command, "--help-all").out
    for each in options_in(command_of(function_of(command), command)):
        shown = f"\n  {min(each.opts, key=len)}"
        assert f"{shown} " not in text if each.hidden else shown in text or isinstance(each, TyperArgument)


@pytest.mark.parametrize("words", [("--start", "10%"), ("--agent", "1"), ("--launched",)])
def test_help_leaves_out_what_a_command_refuses(words: tuple[str, ...], job: Path, cli: Cli) -> None:
    """Other commands take it, so that it is an option, and the refusal has a reason."""
    said = cli("whatif", job, *words)
    assert f"  {words[0]} " not in cli("whatif", "--help-all").out
    assert f"  {words[0]} " in cli("summary", "--help-all").out
    assert said.code == 2
    assert "effect" in said.err or "needs a window" in said.err


def test_spellings_of_amd_stand_apart(cli: Cli) -> None:
    text = cli("summary", "--help-all").out
    assert "--region-categories" in text.partition("AMD's spellings:")[2]
    assert "--region-categories" not in cli("summary", "--help").out


def test_a_typo_of_an_option_that_help_leaves_out(cli: Cli) -> None:
    assert "--scheduler" not in cli("summary", "--help").out
    assert "did you mean --scheduler?" in cli("summary", "--schedular", "x").err


@pytest.mark.parametrize("command", READERS)
def test_commands_that_read_share_their_options(command: str, cli: Cli) -> None:
    text = cli(command, "--help-all").out
    assert {"Inputs", "Window", "Filters", "Execution"} <= set(sections(text))
    for flag in ("-i, --input", "--skip-bad", "--start TIME", "--align ", "--clock-offset", "--rank LIST",
                 "-j, --jobs N", "--scheduler ADDRESS", "--local-hosts"):  # fmt: skip
        assert f"  {flag}" in text
    assert "--threads" not in text


def test_commands_are_described_in_whole_lines(cli: Cli) -> None:
    text = cli("--help").out
    lines = [
        line for line in text[text.index("\nAsk:\n") : text.index("Options:\n")].splitlines() if line.startswith(" ")
    ]
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert not any(line.endswith("...") or len(line) > 80 for line in lines)


@pytest.mark.parametrize(("command", "line"), COMMANDS.items())
def test_a_command_is_described_by_its_docstring(command: str, line: str) -> None:
    """`rocpd --help` shows the line without importing the command."""
    assert inspect.getdoc(function_of(command)).splitlines()[0] == f"{line}."  # type: ignore[union-attr]


def test_without_words_there_is_help(cli: Cli) -> None:
    said = cli()
    assert (said.code, said.out, said.err) == (2, "", cli("--help").out)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("query", "--stats", "select 1"), "No such option: --stats", "--stats is an option of rocpd convert"),
        (("info", "--summary-by-rank"), "No such option", "--summary-by-rank is an option of rocpd summary"),
        (("query", "--lmit", "3"), "No such option: --lmit", "did you mean --limit or"),
        (("query", "--xyzzy"), "No such option: --xyzzy", "rocpd query --help"),
        (("summry",), "No such file or command 'summry'", "did you mean summary?"),
        (("compare",), "No such file or command 'compare'", "rocpd diff BASE NEW"),
        (("convert", "-f", "chrome", "."), "format chrome: unknown", "did you mean json?"),
        (("convert", "-f", "parquet", "arrow", "chrome", "."), "chrome: neither a format nor", "did you mean json?"),
        (("convert", "-f", "pftrace", "nowhere"), "nowhere: neither a format nor a file", "one of csv"),
        (("convert", "-f", "pftrac", "."), "format pftrac: unknown", "did you mean pftrace?"),
        (("query", "kernels", "."), "kernels: neither SQL nor a file", 'rocpd query "select * from kernels"'),
        (("query", "-i", ".", "kernls"), "kernls: neither SQL", 'rocpd query "select * from kernels"'),
        (("query", "select 1", "-f", "cvs"), "--format cvs: unknown", "did you mean csv?"),
        (("query", "select 1", "-o", "x.parquet"), "--format parquet: is for tables of `rocpd summary`", "one of"),
        (("info", ".", "--only", "nothing"), "--only nothing: unknown", "one of job, ranks"),
        (("simulate",), "Missing option '-o'", "rocpd simulate --help"),
    ],
)
def test_errors_point_at_the_likely_wish(words: tuple[str, ...], message: str, hint: str, cli: Cli) -> None:
    said = cli(*words)
    lines = said.err.splitlines()
    assert (said.code, said.out, len(lines)) == (2, "", 2)
    assert lines[0].startswith("rocpd: error: ")
    assert message in lines[0]
    assert lines[1].startswith(f"  hint: {hint}")
