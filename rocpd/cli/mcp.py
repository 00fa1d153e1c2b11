"""`rocpd mcp` answers programs about a job by the Model Context Protocol; `rocpd questions` lists questions."""

from __future__ import annotations

import importlib.util

from rocpd.base import UsageError, frozen
from rocpd.base.option import Heading, plain
from rocpd.cli import tables
from rocpd.cli.diagnostics import note, standard_output, until_ctrl_c
from rocpd.cli.options import Inputs, TableOptions


@frozen
class McpOptions:
    """The transport, and limits."""

    HEADING = Heading.OUTPUT

    http: bool = plain(False, "Answer on 127.0.0.1 instead of stdin and stdout, at an address with a secret.")
    port: int = plain(0, "With --http: port; 0: any that is free.", "N", least=0, most=65535)
    history: str = plain("", "Store of the job's history, which may be asked, too.", "STORE")
    seconds: float = plain(300, "A question is stopped after so many seconds.", "S", least=0.1)


def mcp(inputs: Inputs, asked: McpOptions) -> None:
    """Answer agents' questions by the Model Context Protocol.

    Tools ask SQL, summaries, advice, comparisons and predictions; resources are the verdict, the report, the glossary
    and a table of questions. Only the inputs and paths below them are read, nothing is written. Answers have units,
    certainty, the command that shows the same, and at most 16,000 bytes unless more is asked for. On stdin and stdout
    unless --http is given; it ends with the client, or with Ctrl-C.

    Examples:
        rocpd mcp job/
        rocpd mcp before/ after/
        rocpd mcp job/ --http --port 8765
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("the package mcp is not installed", "pip install 'rocpd[mcp]'")
    from rocpd.agents.server import Answering, serve_http, serve_stdio
    from rocpd.session import connect
    from rocpd.view.desk import ViewedJob

    if not inputs.paths:
        raise UsageError("mcp: name the files that may be read", "rocpd mcp job/")
    with connect(inputs.paths, skip_bad=inputs.skip_bad, on_note=note):
        pass  # report inputs that can't be opened before a program asks
    answering = Answering(ViewedJob(tuple(inputs.paths), inputs.skip_bad), asked.seconds, asked.history)
    try:
        with until_ctrl_c():
            if asked.http:
                serve_http(answering, asked.port, _announce)
            else:
                serve_stdio(answering)
        note("the server has ended")
    finally:
        answering.close()


def _announce(address: str) -> None:
    with standard_output() as out:
        out.write(f"{address}\n")
    note("Ctrl-C ends it")


@frozen
class QuestionsChoice:
    """The questions to list."""

    words: tuple[str, ...] = plain((), "Only questions and commands with all these words.", "WORDS", is_positional=True)
    all: bool = plain(False, "Also questions that few people ask; words find them, too.")
    format: str = tables.format_option()


def questions(asked: QuestionsChoice, output: TableOptions) -> None:
    """Show which command answers which question.

    Each comes with the place to look at in the answer.

    Examples:
        rocpd questions
        rocpd questions why idle
        rocpd questions --all
    """
    from rocpd.agents.pages import USUAL, rows_of_questions

    words = " ".join(asked.words).lower().split()
    known = rows_of_questions() if words or asked.all else rows_of_questions(USUAL)
    rows = [row for row in known if all(word in " ".join(row).lower() for word in words)]
    if not rows:
        which = "the word" if len(words) == 1 else "all of the words"
        raise UsageError(f"no question has {which} {' '.join(asked.words)}", "rocpd questions --all shows all")
    tables.write_table(("question", "command", "look_at"), rows, output, asked.format)
