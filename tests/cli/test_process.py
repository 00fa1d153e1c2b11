"""What only a process of its own shows: pipes, locales, terminals, signals, start-up."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocpd.cli.commands import COMMANDS
from tests.conftest import Cli, Said
from tests.waiting import until

ROCPD = [sys.executable, "-m", "rocpd"]
NAMES = list(COMMANDS)
MANY = "with recursive n(i) as (select 1 union all select i + 1 from n limit 300000) select i, i * 2 as j from n"
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
HEAVY = ("rich", "apsw", "duckdb", "msgspec", "pandas", "pyarrow", "sqlglot", "numpy", "yaml")


def environment(**more: str) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ROCPD_", "LC_", "LANG"))}
    return {**env, "PYTHONPATH": str(Path(__file__).parents[2]), **more}


@pytest.mark.parametrize("form", ["csv", "json", "md", "html", "console"])
def test_a_reader_that_leaves(form: str, job: Path) -> None:
    """`rocpd query … | head -1`: quiet, exit code 0."""
    process = subprocess.Popen(
        [*ROCPD, "query", MANY, "db0.db", "--limit", "0", "--format", form],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), said) == (0, "")


def test_a_reader_that_leaves_while_lines_are_written() -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -u -m rocpd doctor | head -n 1"],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


@pytest.mark.parametrize("words", [("query", "select 1", "db0.db"), ("--version",), ("--help",)], ids=" ".join)
def test_stdout_on_a_full_disk(words: tuple[str, ...], job: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*ROCPD, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env=environment(PYTHONUNBUFFERED=""),
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "rocpd: error: output: No space left on device\n")


def test_a_closed_stdout(job: Path) -> None:
    command = f"'{sys.executable}' -m rocpd query 'select 1' db0.db >&-"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False, env=environment())
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("locale", ["C", "POSIX", "en_US.ISO-8859-1"])
def test_other_locales(locale: str, process: Cli, job: Path) -> None:
    strict = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    sql = "select char(233, 28450, 128512) as x"
    assert process("query", sql, "db0.db", "-f", "csv", environment=strict) == Said(0, "x\né漢😀\n", "")
    said = process("query", "select 'é' as x", "nöwhere.db", environment=strict)
    assert said.code == 3
    assert "Traceback" not in said.err


def test_text_that_is_not_unicode(process: Cli, job: Path) -> None:
    said = process("query", "select cast(x'61ff62' as text) as x", "db0.db", "-f", "csv")
    assert (said.code, said.out, said.err) == (0, "x\na\\xffb\n", "")


def in_terminal(words: list[str], columns: int = 80) -> tuple[int, str]:
    """Run with a terminal as stdout and stderr; gives exit code and what the terminal got."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [*ROCPD, *words], stdout=side, stderr=side, env=environment(COLUMNS=str(columns), TERM="xterm", LINES="40")
    )
    os.close(side)
    seen = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # Linux says so when the last writer is gone
            break
        if not piece:
            break
        seen += piece
    os.close(main)
    return process.wait(), seen.decode()


def test_a_terminal_gets_a_drawn_table(job: Path) -> None:
    code, seen = in_terminal(["query", "select name, rank, duration / 3.0 as x from kernels order by rank", "."])
    assert code == 0
    assert "───" in seen
    assert "3.3333" in seen
    assert max(len(line) for line in seen.splitlines() if "\x1b" not in line) <= 80


def test_a_terminal_gets_blocks_when_it_is_narrow(job: Path) -> None:
    code, seen = in_terminal(["query", "select * from kernels order by rank limit 2", "."], columns=60)
    assert code == 0
    assert "── row 1 " in seen
    assert "── row 2 " in seen


@pytest.mark.parametrize(("what", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_long_statement_can_be_stopped(what: int, code: int, job: Path) -> None:
    process = subprocess.Popen(
        [*ROCPD, "query", ENDLESS, "db0.db", "-o", "x.csv"], stderr=subprocess.PIPE, text=True, env=environment()
    )
    until(lambda: list(job.glob(".rocpd-*")), "the statement begins")
    time.sleep(0.2)
    process.send_signal(what)
    _, said = process.communicate()
    assert process.returncode == code
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1
    assert sorted(path.name for path in job.iterdir()) == [f"db{n}.db" for n in range(4)]


IMPORTS = """
import json, sys
from rocpd.cli import run
code = run(sys.argv[1:])
sys.stdout.flush()
print("\\n" + json.dumps([code, sorted(name for name in sys.modules if "." not in name)]))
"""


def imported_by(*words: str) -> tuple[int, set[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *words], capture_output=True, text=True, check=True, env=environment()
    )
    out, _, last = done.stdout.rstrip("\n").rpartition("\n")
    code, names = json.loads(last)
    return code, set(names), out


HELP = """
import contextlib, io, json, os, sys
import rocpd.cli.commands
for command in sys.argv[1:]:
    if os.fork() == 0:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = rocpd.cli.run([command, "--help"])
        print(json.dumps([code, [*sys.modules], out.getvalue()]), flush=True)
        os._exit(0)
    os.wait()
"""
"""What all commands import, they import once."""


@pytest.fixture(scope="module")
def helps() -> dict[str, tuple[int, list[str], str]]:
    """Command -> the exit code of its help, what is imported then, and the help."""
    done = subprocess.run(
        [sys.executable, "-c", HELP, *NAMES], capture_output=True, text=True, check=True, env=environment()
    )
    return dict(zip(NAMES, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("command", NAMES)
def test_help_has_an_example_and_is_quick(command: str, helps: dict[str, tuple[int, list[str], str]]) -> None:
    code, names, out = helps[command]
    assert code == 0
    assert f"  rocpd {command}" in out
    assert f"Usage: rocpd {command}" in out
    assert "rocpd.cli" in names
    assert set(names) & set(HEAVY) == set()


def test_help_of_all_is_quick() -> None:
    code, names, out = imported_by("--help")
    assert code == 0
    assert [name for name in NAMES if f"\n  {name} " not in out] == []
    assert names & set(HEAVY) == set()


@pytest.mark.parametrize("form", ["csv", "json", "md", "html", "console"])
def test_a_query_in_a_pipe_needs_little(form: str, job: Path) -> None:
    code, names, _ = imported_by("query", "select * from kernels", "db0.db", "db1.db", "--format", form)
    assert code == 0
    assert names & {"pandas", "pyarrow", "rich", "yaml"} == set()


def test_python_m_and_script_are_the_same(process: Cli, job: Path) -> None:
    script = Path(sys.executable).with_name("rocpd")
    if not script.exists():
        pytest.skip("the package is not installed")
    done = subprocess.run(
        [script, "query", "select 1", "db0.db"], capture_output=True, text=True, check=False, env=environment()
    )
    said = process("query", "select 1", "db0.db")
    assert (done.returncode, done.stdout, done.stderr) == (said.code, said.out, said.err)


def test_sigterm_counts_whatever_a_library_makes_of_it(job: Path) -> None:
    """A C extension that is being imported turns the exit that is raised in it into an error of its own."""
    program = (
        "import sys, signal, rocpd.session as s\n"
        "def connect(*a, **k):\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGTERM)\n"
        "    except SystemExit:\n"
        "        raise ImportError('initialization failed') from None\n"
        "s.connect = connect\n"
        "from rocpd.cli import run\n"
        "sys.exit(run(['info', '.']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment()
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


def test_a_bug_is_told_in_one_line(job: Path) -> None:
    program = (
        "import sys, rocpd.session as s\n"
        "s.connect = lambda *a, **k: 1 / 0\n"
        "from rocpd.cli import run\n"
        "sys.exit(run(['info', '.', *sys.argv[1:]]))"
    )
    for words, traceback in (((), False), (("-v",), True)):
        done = subprocess.run(
            [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, env=environment()
        )
        assert done.returncode == 1
        assert "rocpd: error: ZeroDivisionError: division by zero\n  hint: this is a bug in rocpd" in done.stderr
        assert ("Traceback" in done.stderr) is traceback
