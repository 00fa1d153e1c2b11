"""Words that are no command and no analysis lead on: every hint is a command line that works here."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rocpd.cli.commands import COMMANDS, command_of, function_of
from rocpd.cli.hints import MEANT, meant_by
from rocpd.summary.registry import TABLES
from tests.build import TraceBuilder
from tests.conftest import Cli

PLACEHOLDERS = {"JOB", "BASE", "NEW", "COMMAND", "DIR"}


@pytest.mark.parametrize("word", MEANT)
def test_what_words_lead_to_is_there(word: str) -> None:
    program, *words = shlex.split(MEANT[word])
    assert program == "rocpd"
    if words[0] in ("--help", "--version"):
        return
    command, *rest = words
    assert command in COMMANDS
    known = {flag for each in command_of(function_of(command), command).params for flag in each.opts}
    assert {each for each in rest if each.startswith("-") and each != "--"} <= {*known, "--list"}
    if command == "summary":
        names = [each for each in rest[: rest.index("JOB") if "JOB" in rest else 0] if not each.startswith("-")]
        assert set(names) <= set(TABLES)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("leaks", "rocpd summary allocation-sites memory-steps JOB"),
        ("Slow_Step", "rocpd summary steps JOB"),
        ("diff", "rocpd diff --help"),
        ("roofline", "rocpd summary roofline JOB"),
        ("imbalnce", "rocpd summary imbalance JOB"),
        ("sumary", "did you mean summary?"),
        ("grid", "rocpd questions grid"),
        ("xyzzy", "otherwise"),
    ],
)
def test_words(word: str, hint: str) -> None:
    assert meant_by(word, ["summary", "convert"], "otherwise", ["diff"]) == hint


def test_a_hint_names_the_job_that_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my job").mkdir()
    for words in (["leak", "my job"], ["summary", "leak", "my job"]):
        assert "hint: rocpd summary allocation-sites memory-steps 'my job'" in cli(*words).err
    assert "hint: rocpd record -o JOB" in cli("profile", "my job").err


def test_an_option_of_another_command_leads_to_one_of_this(cli: Cli) -> None:
    said = cli("diff", "a", "b", "--steps", "3").err
    assert "hint: --steps is an option of rocpd top, rocpd simulate; this one has --step\n" in said


def test_a_path_is_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A folder with the name of a command is meant where its path says so, and one that is missing is no command."""
    monkeypatch.chdir(tmp_path)
    Path("top").mkdir()
    TraceBuilder().kernel("gemm", 1000, 2000).write(Path("top") / "rank0.db")
    assert cli("./top").out == cli("summary", "top").out
    assert "error: ./tip: no such file" in cli("./tip").err
    assert "error: job/rank0.db: no such file" in cli("job/rank0.db").err


def test_a_damaged_file_names_the_option_that_leaves_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    TraceBuilder().kernel("gemm", 1000, 2000).write(Path("rank0.db"))
    Path("rank1.db").write_bytes(Path("rank0.db").read_bytes()[:-100])
    said = cli(".", "--color", "never")
    assert (said.code, said.out) == (3, "")
    assert "rank1.db: damaged" in said.err
    assert "--skip-bad leaves it out" in said.err
    assert cli(".", "--skip-bad").code == 0


def test_a_file_that_is_no_trace_is_said_to_be_none(tmp_path: Path, cli: Cli) -> None:
    """Of a JSON file that no profiler wrote SQLite alone would be the wrong answer."""
    (tmp_path / "x.json").write_text('{"a": 1}')
    said = cli("summary", tmp_path / "x.json")
    assert (
        said.err.splitlines()[1] == "  hint: nor a trace of another profiler that rocpd reads; --skip-bad leaves it out"
    )
