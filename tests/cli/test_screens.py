"""What a terminal of 80 and 120 columns shows of a job with planted facts, and of files that are no job.

`ROCPD_GOLDEN=write pytest tests/cli/test_screens.py` writes the screens anew.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from rocpd.cli import run
from rocpd.simulator import JobOptions, plan, simulate
from tests.build import TraceBuilder
from tests.conftest import Cli
from tests.convert.golden import check

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_COMMANDS = (
    "summary",
    "summary kernels --limit 4",
    "summary stragglers",
    "summary heat",
    "summary steps --limit 3",
    "info",
)
_PLANTED = "straggler,slow-step,lost-overlap,launch-bound"
_WRITTEN = 1_750_000_000  # when the files were written


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> JobOptions:
    """A job in which much goes wrong."""
    options = JobOptions(tmp_path_factory.mktemp("screens") / "job", ranks=4, steps=8, seed=31, plant=_PLANTED)
    for file in simulate(options):
        os.utime(file, (_WRITTEN, _WRITTEN))
    return options


@pytest.fixture
def beside(options: JobOptions, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the job, as working directory, in a terminal that is told where and when it is."""
    monkeypatch.chdir(options.out.parent)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    return options.out


def screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int, command: str) -> list[str]:
    """Return the lines that a command shows on a terminal; notes come after them."""
    monkeypatch.setenv("COLUMNS", str(width))
    code = run([*command.split(), "job", "--color", "always"])
    said = capsys.readouterr()
    assert code == 0, said.err
    return [f"$ rocpd {command}", *_ESCAPES.sub("", said.out).splitlines(), *said.err.splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_screens(width: int, beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line.rstrip() for command in _COMMANDS for line in screen(capsys, monkeypatch, width, command)]
    check(f"{width}.txt", "\n".join([*lines, ""]).encode(), Path(__file__).parent / "screens")


def test_names_of_files_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostname and a marker are what a program made them."""
    monkeypatch.chdir(tmp_path)
    for number in range(2):
        trace = TraceBuilder(number, pid=100 + number, host=f"\x1b]0;title\x07{number}")
        for step in range(3):
            begin = 1000 * step + 1000
            trace.region("roctxRangePushA", begin, begin + 900, message=f"\x1b[2Jstep {step}")
            trace.kernel("ncclDevKernel_AllReduce", begin + 10 + 100 * number, begin + 500)
        trace.write(tmp_path / f"rank{number}.db")
    monkeypatch.setenv("COLUMNS", "100")
    names = ("heat", "waits", "steps", "stragglers")
    run(["summary", *names, "--by", "host", "--step-marker", "step", "--color", "always", "--no-pager"])
    run(["info", "--color", "always"])
    said = capsys.readouterr()
    assert "HEAT" in said.out
    assert not set("\x1b\x07") & set(_ESCAPES.sub("", said.out + said.err))


def test_the_page_on_terminals_shows_screens_that_are_kept() -> None:
    page = (Path(__file__).parents[2] / "docs" / "terminal.md").read_text(encoding="utf-8")
    kept = (Path(__file__).parent / "screens" / "80.txt").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert blocks
    assert [block for block in blocks if block not in kept] == []


@pytest.mark.parametrize("width", [72, 100, 160])
@pytest.mark.parametrize("command", ["summary", "summary heat waits steps memory-curve", "advise"])
def test_nothing_is_wider_than_the_terminal(
    command: str, width: int, beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, *lines = screen(capsys, monkeypatch, width, command)
    shown = [line for line in lines if not line.startswith(("rocpd: ", "   read   https://"))]
    assert [line for line in shown if len(line) > width] == []


@pytest.mark.parametrize("width", [80, 120])
def test_the_first_ten_lines_name_what_was_planted(
    width: int, options: JobOptions, beside: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = plan(options)
    _, *lines = screen(capsys, monkeypatch, width, "summary")
    first = " ".join(line.strip() for line in lines[:10])
    assert f"✗ rank {truth.straggler_rank} costs " in first
    assert f"✗ step {truth.slow_step} is slow: " in first
    assert "✗ communication does not overlap: compute hides 0." in first
    assert "✗ GPUs are idle" in first
    assert "while the host launches" in first


def test_separate_runs_are_told_first(real_files: tuple[Path, ...], cli: Cli) -> None:
    first = cli("summary", real_files[0].parent).out.splitlines()[0]
    assert first.startswith("12 separate runs, not one job, on 7 nodes; AMD Instinct MI300X; ")


def test_a_pipe_has_neither_colours_nor_pictures(beside: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    for command in ("summary", "summary heat steps", "info"):
        said = cli(*command.split(), "job")
        assert not set("\x1b█▓▒░▁▂▃▄▅▆▇✗✓") & set(said.out)
        assert said == cli(*command.split(), "job", "--color", "never")


@pytest.mark.usefixtures("beside")
def test_tables_are_tables_on_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is minor goes before a row becomes a block of lines, which nobody can compare with the next one."""
    names = "kernel-shapes copies copy-sizes copy-calls allocation-sites gpu-time graphs marker-kernels samples"
    lines = screen(capsys, monkeypatch, 80, f"summary {names} kernel-samples --limit 3")
    assert [line for line in lines if "row 1" in line] == []
    assert max(map(len, lines[1:])) <= 80
