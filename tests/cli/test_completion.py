"""Completion by the shell: commands, options, and the names that registries hold."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.build import TraceBuilder
from tests.conftest import Cli


def completed(process: Cli, line: str) -> list[str]:
    """Give what bash is offered for the last word of a line."""
    environment = {"_ROCPD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    return [word for word in process(environment=environment).out.splitlines() if word]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rocpd su", ["summary"]),
        ("rocpd summary ke", ["kernels"]),
        ("rocpd summary gpu", ["gpu-time"]),
        ("rocpd summary --by ", ["rank", "host", "agent", "stream"]),
        ("rocpd summary -f s", ["speedscope"]),
        ("rocpd convert -f p", ["pftrace", "perfetto", "parquet"]),
        ("rocpd convert --view kernel_s", ["kernel_symbols", "kernel_summary", "kernel_summary_region"]),
        ("rocpd convert --sta", ["--start", "--start-marker", "--stats"]),
        ("rocpd summary --he", ["--help", "--help-all"]),
        ("rocpd query -f m", ["md"]),
        ("rocpd query --strategy a", ["auto", "aggregates", "attached"]),
        ("rocpd schema ker", ["kernel_symbols", "kernels"]),
        ("rocpd schema summary.b", ["summary.budget", "summary.bottleneck"]),
        ("rocpd info --only p", ["problems"]),
        ("rocpd control st", ["start", "stop", "status"]),
    ],
)
def test_words(line: str, words: list[str], warm_process: Cli) -> None:
    assert set(words) <= set(completed(warm_process, line))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rocpd summary kernels db*.db --rank ", ["0", "1", "2", "3"]),
        ("rocpd info db1.db db2.db --rank ", ["0", "1"]),
        ("rocpd query -i db1.db --host n", ["node0"]),
        ("rocpd summary other/steps.db --start-marker ", ["warm up", "step 7"]),
        ("rocpd summary other/steps.db --end-marker w", ["warm up"]),
        ("rocpd summary other/steps.db --step ", ["7"]),
        ("rocpd summary nowhere*.db --rank ", []),
        ("rocpd summary other/broken.db --rank ", []),
    ],
)
def test_what_the_files_know(line: str, words: list[str], job: Path, warm_process: Cli) -> None:
    Path("other").mkdir()
    Path("other/broken.db").touch()
    trace = TraceBuilder(1, pid=101).kernel("gemm", 1000, 1010)
    for number, text in enumerate(("warm up", "step 7", "step 7")):
        trace.region("roctxRangePushA", 800 + 100 * number, 850 + 100 * number, message=text)
    trace.write(Path("other/steps.db"))
    assert [word.strip("'") for word in completed(warm_process, line)] == words


def in_bash(script: str, home: Path) -> str:
    """Return what bash writes, in which `rocpd` is this tree's: the shell is found among the parents of the process."""
    rocpd = home / "bin" / "rocpd"
    rocpd.parent.mkdir(exist_ok=True)
    rocpd.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rocpd "$@"\n')
    rocpd.chmod(0o755)
    paths = f"{rocpd.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": paths, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(["bash", "-c", f"{script}\n:"], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("su",), ["summary"]),
        (("summary", "steps.db", "--start-marker", ""), [r"'warm up'", r"'warm down'"]),
        (("summary", "steps.db", "--start-marker", r"warm\ d"), [r"'warm down'"]),
        (("summary", "steps.db", "--start-marker", "'warm u"), [r"'warm up'"]),
        (("info", "ste"), []),  # bash itself completes files
    ],
)
def test_in_bash(words: tuple[str, ...], offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trace = TraceBuilder(1, pid=101).region("roctxRangePushA", 800, 850, message="warm up")
    trace.region("roctxRangePushA", 900, 950, message="warm down").write(Path("steps.db"))
    script = f"""
        eval "$(rocpd --show-completion)"
        COMP_WORDS=(rocpd {shlex.join(words)}) COMP_CWORD={len(words)}
        _rocpd_completion rocpd
        printf '%s\\n' "${{COMPREPLY[@]}}"
        complete -p rocpd
    """
    *replies, rule = in_bash(script, tmp_path).splitlines()
    assert [reply for reply in replies if reply] == offered
    assert "-o default" in rule


def test_installing_is_idempotent(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("# mine\n")
    assert "bash completion installed in" in in_bash(
        "rocpd --install-completion && rocpd --install-completion", tmp_path
    )
    first, *others = (tmp_path / ".bashrc").read_text().splitlines()
    (line,) = filter(None, others)
    assert (first, line.split()[0]) == ("# mine", "source")
    assert in_bash(f"{line}; complete -p rocpd", tmp_path).endswith("rocpd\n")
