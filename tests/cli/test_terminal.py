"""A terminal has colours and a pager; a pipe, `NO_COLOR`, a dumb terminal and `--no-pager` have not."""

from __future__ import annotations

import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.warm import program

_ROOT = Path(__file__).parents[2]
_READS_ALL = "import sys; open('paged', 'w').write(sys.stdin.read())"
_QUITS = "import sys; sys.stdin.readline(); open('paged', 'w').close()"
_STAYS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
open('paged', 'w').write(sys.stdin.read())
print('READY', flush=True)
signal.sigtimedwait([], 0.7)
"""
_LONG = (
    "query",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80) SELECT i FROM n",
    "db0.db",
)
_SHORT = ("query", "SELECT 1", "db0.db")


def on_a_terminal(
    *words: str, environment: Mapping[str, str], on_text: Callable[[bytes], bytes | None] | None = None
) -> tuple[int, str]:
    """Run a command on a terminal of 80 columns; return its exit code and what it shows.

    Args:
        words: the command line.
        environment: is added to this one.
        on_text: takes what has been shown so far and returns keys that are pressed once. The terminal sends Ctrl-C to
            the processes that it started, so the command is one of these then.
    """
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "PAGER")}
    env = {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(_ROOT), **environment}
    start = [sys.executable, "-m", "rocpd"] if on_text else [program()]
    process = subprocess.Popen(
        [*start, *words],
        stdin=side,
        stdout=side,
        stderr=side,
        env=env,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(side)
    shown, pressed = b"", False
    while True:
        try:
            text = os.read(main, 65536)
        except OSError:  # nobody has the other side any more
            break
        shown += text
        keys = on_text(shown) if on_text and not pressed else None
        if keys:
            pressed = True
            os.write(main, keys)
    os.close(main)
    return process.wait(), shown.decode().replace("\r\n", "\n")


def pager(program: str) -> str:
    """Return the value of $PAGER for a program in Python."""
    return shlex.join([sys.executable, "-c", program])


def test_what_is_longer_than_the_terminal_goes_to_the_pager(job: Path) -> None:
    whole = on_a_terminal(*_LONG, "--no-pager", environment={"PAGER": pager(_READS_ALL)})[1]
    assert not Path("paged").exists()
    code, shown = on_a_terminal(*_LONG, environment={"PAGER": pager(_READS_ALL)})
    assert (code, shown) == (0, "")
    assert Path("paged").read_text() == whole
    assert len(whole.splitlines()) > 80


@pytest.mark.parametrize("words", [_SHORT, (*_LONG, "--format", "csv", "-o", "out.csv"), (*_LONG, "--limit", "3")])
def test_what_fits_does_not(words: tuple[str, ...], job: Path) -> None:
    code, shown = on_a_terminal(*words, environment={"PAGER": pager(_READS_ALL)})
    assert code == 0
    assert shown
    assert not Path("paged").exists()


def test_leaving_the_pager_is_no_error(job: Path) -> None:
    many = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) SELECT i, hex(zeroblob(30)) FROM n"
    )
    assert on_a_terminal("query", many, "db0.db", "--limit", "0", environment={"PAGER": pager(_QUITS)}) == (0, "")
    assert Path("paged").exists()


def test_ctrl_c_is_the_pagers(job: Path) -> None:
    code, shown = on_a_terminal(
        *_LONG, environment={"PAGER": pager(_STAYS)}, on_text=lambda text: b"\x03" if b"READY" in text else None
    )
    assert code == 0, shown
    assert shown.replace("^C", "").split() == ["READY"]


@pytest.mark.parametrize("command", ["", "cat", "/nowhere/less", "'"])
def test_without_a_pager_all_is_written(command: str, job: Path) -> None:
    code, shown = on_a_terminal(*_LONG, environment={"PAGER": command})
    assert code == 0
    assert len(shown.splitlines()) > 80


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"TERM": "dumb"}, False),
        (("--color", "never"), {}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
    ],
)
def test_colours(words: tuple[str, ...], environment: dict[str, str], expected: bool, job: Path) -> None:
    code, shown = on_a_terminal("summary", "kernels", "db0.db", *words, environment=environment)
    assert code == 0
    assert ("\x1b[" in shown) == expected
    assert "█" in shown


def test_notes_stand_on_the_page(job: Path) -> None:
    on_a_terminal(*_LONG, "--limit", "40", environment={"PAGER": pager(_READS_ALL)})
    assert Path("paged").read_text().splitlines()[-1].startswith("rocpd: cut at 40 rows")
