"""Questions of programs have the numbers of the command line; what makes no sense is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.agents.pages import PAGES, page, rows_of_questions
from rocpd.agents.questions import QUESTIONS, asked, schema_of
from tests.agents.conftest import Call
from tests.conftest import Cli
from tests.docs.console import ROOT
from tests.soak import sample

PLAIN = {"--by": "by", "--step": "step", "--rank": "rank", "--kernel": "kernel", "--start": "start", "--end": "end"}


def questions() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return command -> tool and arguments, of the page of questions, as far as tools have the options."""
    known: dict[str, tuple[str, dict[str, Any]]] = {}
    for _, command, _ in rows_of_questions():
        words = shlex.split(command)
        if words[0] != "rocpd" or words[1] not in QUESTIONS or "job" not in words or words.count("job") > 1:
            continue
        words.remove("job")
        named: dict[str, Any] = {}
        while len(words) > 2 and words[-2] in PLAIN:
            *words, option, value = words
            named[PLAIN[option]] = value
        if words[1] == "summary" and len(words) == 3 and not words[2].startswith("-"):
            known[command] = ("summary", {"table": words[2], **named})
        elif words[1] == "query" and len(words) == 3 and not words[2].startswith("-"):
            known[command] = ("query", {"sql": words[2], **named})
    return known


ASKED = questions()


def test_thirty_questions_are_asked() -> None:
    assert len(ASKED) >= 30


@pytest.mark.soak
@pytest.mark.parametrize("command", sample([*ASKED], 3))
def test_tools_have_the_numbers_of_the_command_line(command: str, job: Path, cli: Cli) -> None:
    tool, arguments = ASKED[command]
    with rocpd.answers(str(job)) as answers:
        answer = answers.ask(tool, **arguments, most_bytes=4_000_000)
    said = cli(*shlex.split(answer["command"])[1:], "--format", "json")
    if said.code:
        assert answer["not_recorded"], said.err
        assert "tables" not in answer
        return
    assert answer["cut"] is None
    shown = json.loads(said.out)
    rows = shown if isinstance(shown, list) else next(iter(shown.values()))
    (first, *_) = answer["tables"]
    names = [column["name"] for column in first["columns"]]
    assert [number_cells(row) for row in first["rows"]] == [number_cells(row[name] for name in names) for row in rows]


def number_cells(row: Any) -> list[object]:
    """Return the cells of a row that are no texts: names of kernels are short here."""
    return [value for value in row if not isinstance(value, str)]


@pytest.mark.parametrize(
    ("question", "arguments", "said"),
    [
        ("summary", {"table": "nonsense"}, "no summary is called nonsense"),
        ("summary", {"by": "planet"}, "by"),
        ("summary", {"table": 3.5}, "table 3.5: not of type str"),
        ("summary", {"nonsense": 1}, "summary: takes no nonsense"),
        ("query", {}, "query: needs sql"),
        ("query", {"sql": "delete from kernels"}, "only one statement that reads"),
        ("query", {"sql": "select 1; select 2"}, "only one statement that reads"),
        ("query", {"sql": "pragma user_version"}, "only one statement that reads"),
        ("schema", {"relation": "nonsense"}, "neither table nor view"),
        ("whatif", {"without": ["nonsense"]}, "nonsense"),
        ("whatif", {"start": "30%"}, "whatif replays whole jobs"),
        ("summary", {"most_bytes": 5}, "most_bytes 5: not a whole number of at least 2000"),
        ("nonsense", {}, "no question is called nonsense"),
    ],
)
def test_what_makes_no_sense_is_refused(question: str, arguments: dict[str, Any], said: str, call: Call) -> None:
    assert said in call(question, **arguments)["error"]


def test_what_was_not_recorded_is_an_answer(call: Call) -> None:
    answer = call("summary", table="memory-access")
    assert "error" not in answer
    assert "tables" not in answer
    assert answer["not_recorded"]


def test_a_history_is_asked_where_one_was_named(job: Path, tmp_path: Path, cli: Cli, call: Call) -> None:
    assert call("history")["not_recorded"] == ["no history of the job was named (rocpd mcp JOB --history STORE)"]
    assert cli("history", "add", tmp_path / "store", job).code == 0
    with rocpd.answers(str(job), history=tmp_path / "store") as answers:
        answer = answers.ask("history", metric=["step"])
    assert answer["command"] == f"rocpd history {tmp_path / 'store'} --metric step"
    assert [table["table"] for table in answer["tables"]] == ["changes", "runs", "noise"]
    assert answer["tables"][1]["rows_in_all"] == 1


def test_schemas_say_what_is_required() -> None:
    schema = schema_of(QUESTIONS["query"])
    assert schema["required"] == ["sql"]
    assert schema["properties"]["most_bytes"]["maximum"] == 4_000_000
    assert schema_of(QUESTIONS["whatif"])["properties"]["without"]["type"] == "array"


def test_commands_are_quoted() -> None:
    question = asked("summary", ["my job"], {"table": "kernels", "kernel": "a b", "rank": 3})
    assert question.command() == "rocpd summary kernels 'my job' --rank 3 --kernel 'a b'"


def test_questions_are_listed(cli: Cli) -> None:
    said = cli("questions", "straggl", "--format", "csv")
    assert "Which rank is slow: who makes the others wait?,rocpd summary stragglers job,caused_wait\n" in said.out
    assert "rocpd summary idle job" in cli("questions", "why", "idle").out
    for word, command in {"collective": "collectives", "nccl": "collectives", "launch-bound": "launch"}.items():
        assert f"rocpd summary {command} job" in cli("questions", word).out
    assert cli("questions", "xyzzy").err.startswith("rocpd: error: no question has the word xyzzy")


def test_few_questions_are_shown_and_all_are_found(cli: Cli) -> None:
    shown, every = (cli("questions", *words, "--format", "csv").out.splitlines() for words in ((), ("--all",)))
    assert 25 < len(shown) < 40 < len(every)
    assert set(shown) < set(every)
    assert cli("questions", "speed-of-light", "--format", "csv").out.splitlines()[1:] == [
        line for line in every if "speed-of-light" in line
    ]


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_those_of_the_documentation(name: str) -> None:
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == page(name)
