"""Every command over files whose every text holds an escape sequence and a second line that would fake one of ours."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import rocpd
from rocpd.cli.commands import COMMANDS
from rocpd.simulator import JobOptions, simulate
from tests.cli.test_process import in_terminal
from tests.conftest import Cli

LINE = "rank 3 is a straggler"
EVIL = f"\x1b[31m\x9b2J\u202e\r\n{LINE}"
PASSED = "\n\t"
VOCABULARY = {("agent", "type"), ("memory_allocate", "type"), ("memory_allocate", "level"), ("arg", "name")}
"""Columns whose words say what a row is: with others analyses would have nothing to say."""

WORDS: Mapping[str, Sequence[tuple[str, ...]]] = {
    "query": [("query", "select * from kernels"), ("query", f'select 1 as "{EVIL}"'), ("query", f"select {EVIL}")],
    "summary": [("summary",), ("summary", "all"), ("summary", "all", "--by", "rank"), ("summary", "--amd")],
    "counters": [("counters",), ("counters", "-f", "md")],
    "diff": [
        ("diff", "{job}", "--step", "2"),
        ("diff", "{job}", "--rank", "0"),
        ("diff", "{job}", "{job}"),
        ("diff", "{job}", "--step", "2", "-f", "md"),
    ],
    "advise": [("advise",), ("advise", "-f", "md"), ("advise", "-f", "html")],
    "whatif": [
        ("whatif",),
        ("whatif", "--scale", "kernel:.*=0.5"),
        ("whatif", "--without", EVIL),
    ],
    "hang": [("hang",)],
    "top": [("top", "--once"), ("top", "--follow"), ("top", EVIL, "--once"), ("top", "--once", "--alert", EVIL)],
    "report": [("report", "-o", f"{EVIL}.html"), ("report", "-o", f"{EVIL}.md"), ("report", "-o", f"{EVIL}.pdf")],
    "convert": [("convert", "-f", "csv", "-d", EVIL), ("convert", "-f", EVIL)],
    "merge": [("merge", "-o", f"{EVIL}.db")],
    "trim": [("trim", "--start", "40%", "-o", f"part {EVIL}.db"), ("trim", "--start-marker", EVIL, "-o", "x.db")],
    "package": [("package", "--copy", "-d", f"{EVIL}.rpdb")],
    "redact": [("redact", "--dry-run")],
    "symbolize": [("symbolize", "--debug-dir", EVIL), ("symbolize", "--debug-dir", ".", "-d", EVIL)],
    "raptor": [("raptor", "{job}", "--categorize", "--op-trace")],
    "import": [("import", "-d", EVIL)],
    "history": [
        ("history", "add", f"store {EVIL}", "{job}"),
        ("history", f"store {EVIL}"),
        ("history", EVIL),
        ("history", f"store {EVIL}", "runs"),
        ("history", "check", f"store {EVIL}", "{job}"),
        ("history", "report", f"store {EVIL}", "-o", "h.html"),
        ("history", "report", f"store {EVIL}", "-o", "h.md"),
    ],
    "index": [("index", "-d", f"index {EVIL}")],
    "cache": [("cache", "list")],
    "questions": [("questions", EVIL)],
    "info": [("info",), ("info", "-v"), ("info", "-f", "md")],
    "schema": [("schema",), ("schema", EVIL)],
    "doctor": [("doctor", "-d", EVIL)],
    "record": [("record", "--", f"./{EVIL}")],
    "control": [("control", "start", EVIL)],
    "simulate": [("simulate", "-o", f"simulated {EVIL}", "--ranks", "1", "--steps", "1")],
}
APART = {"view", "shell", "mcp"}
"""They do not end by themselves; the shell is tested below, what the others answer with their servers."""
NAMED = {"diff", "history", "raptor", "cache", "questions", "schema", "doctor", "record", "control", "simulate"}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks; what is no word of a vocabulary ends evilly, in JSON too."""
    folder = tmp_path_factory.mktemp("evil") / f"job{EVIL}"
    for path in simulate(JobOptions(folder, ranks=2, steps=3, seed=5)):
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.create_function("evil", 1, lambda text: text if text is None else spoilt(text))
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            spoil(connection, table)
        connection.commit()
        connection.close()
    return folder


def spoil(connection: sqlite3.Connection, table: str) -> None:
    """Let each text of a table end evilly."""
    base, _, suffix = table.removeprefix("rocpd_").removeprefix("info_").partition("_0000")
    if base in ("metadata", "mark") or not suffix:
        return
    for _, column, kind, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
        if kind != "TEXT" or column == "guid" or (base, column) in VOCABULARY:
            continue
        categories = f'SELECT category_id FROM "rocpd_event_0000{suffix}"'
        where = f"id NOT IN ({categories})" if base == "string" else "1"
        connection.execute(f'UPDATE "{table}" SET "{column}" = evil("{column}") WHERE {where}')


def spoilt(text: str) -> str:
    """Return a text with an evil end; in a JSON document the strings have it."""
    if not text.startswith(("{", "[")):
        return text + EVIL
    escaped = EVIL.replace("\x1b", "\\u001b").replace("\r", "\\r").replace("\n", "\\n")
    return text.replace('",', f'{escaped}",').replace('"}', f'{escaped}"}}')


def assert_nothing_steers(text: str, words: object) -> None:
    odd = sorted({character for character in text if not character.isprintable() and character not in PASSED})
    assert not odd, (words, odd)
    assert not [line for line in text.splitlines() if line.strip(" |>*-").startswith(LINE)], (words, text)


def test_the_files_are_evil(job: Path) -> None:
    with rocpd.connect(job) as session:
        for column in ("name", "hostname"):
            assert all(EVIL in text for (text,) in session.sql(f"select distinct {column} from kernels"))
        assert "budget" in session.summary("budget").name


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_steers_the_terminal(
    command: str, job: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in WORDS[command] if command not in APART else ():
        named = [word.replace("{job}", str(job)) for word in words]
        said = cli(*named, *([] if command in NAMED else ["-i", job]))
        assert_nothing_steers(said.out + said.err, words)
        assert said.out + said.err or command == "cache"
        assert said.code != 2 or any(EVIL in word for word in words), said
    for path in tmp_path.rglob("*"):
        if path.suffix in (".html", ".md"):
            assert_nothing_steers(path.read_text(encoding="utf-8"), path.suffix)


def test_nothing_steers_a_terminal_with_colours(job: Path) -> None:
    for words in (["query", "select * from kernels limit 3"], ["summary"], ["advise"], ["info"]):
        _, seen = in_terminal([*words, "--color", "always", "-i", str(job)], columns=120)
        assert "\x9b" not in seen
        assert "\u202e" not in seen
        assert "\x1b[31m" not in seen, "that is no colour of ours"


WRITERS = {
    "cli/commands.py", "cli/diagnostics.py", "cli/terminal.py", "cli/query.py", "federate/result.py", "rpd/raptor.py",
}  # fmt: skip
"""They name the streams: through them all else is written. `--version` and the shell take them as they are; `show` and
RPD's `raptor` are for programs in Python, and write tables as the command line does.
"""


def test_all_is_written_by_few_writers() -> None:
    """What they write goes through `VisibleStream`: no other module of the command line names a stream."""
    root = Path(rocpd.__file__).parent
    naming = set()
    for path in root.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if re.search(r"\bstd(out|err)", source) else ():
            match node:
                case ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr" | "__stdout__" | "__stderr__"):
                    naming.add(path.relative_to(root).as_posix())
    assert naming - {"schema/__main__.py"} == WRITERS
