"""Completion by the shell: commands, options, and the names that registries hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.build import TraceBuilder
from tests.conftest import Cli


def completed(process: Cli, line: str) -> list[str]:
    """Give what bash is offered for the last word of a line."""
    environment = {"_ROCPD_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    said = process(environment=environment)
    return [word.partition(",")[2] for word in said.out.splitlines() if word.startswith("plain,")]


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
        ("rocpd query -f m", ["md"]),
        ("rocpd query --strategy a", ["auto", "aggregates", "attached"]),
        ("rocpd schema ker", ["kernel_symbols", "kernels"]),
        ("rocpd schema summary.b", ["summary.budget", "summary.bottleneck"]),
        ("rocpd info --only p", ["problems"]),
        ("rocpd control st", ["start", "stop", "status"]),
    ],
)
def test_words(line: str, words: list[str], process: Cli) -> None:
    assert set(words) <= set(completed(process, line))


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
def test_what_the_files_know(line: str, words: list[str], job: Path, process: Cli) -> None:
    Path("other").mkdir()
    Path("other/broken.db").touch()
    trace = TraceBuilder(1, pid=101).kernel("gemm", 1000, 1010)
    for number, text in enumerate(("warm up", "step 7", "step 7")):
        trace.region("roctxRangePushA", 800 + 100 * number, 850 + 100 * number, message=text)
    trace.write(Path("other/steps.db"))
    assert [word.strip("'") for word in completed(process, line)] == words


@pytest.mark.parametrize(("shell", "file"), [("bash", ".bashrc"), ("fish", ".config/fish/completions/rocpd.fish")])
def test_installing_is_idempotent(shell: str, file: str, process: Cli, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("# mine\n")
    environment = {"HOME": str(tmp_path), "SHELL": f"/bin/{shell}"}
    for _ in range(2):
        said = process("--install-completion", environment=environment)
        assert (said.code, said.out) == (0, "")
        assert f"completion of {shell} is in {tmp_path / file}" in said.err
    script = process("--show-completion", environment=environment).out
    assert "_ROCPD_COMPLETE" in script
    assert (tmp_path / file).read_text().count(script) == 1
    assert (tmp_path / ".bashrc").read_text().startswith("# mine\n")


def test_an_unknown_shell(process: Cli) -> None:
    said = process("--show-completion", environment={"SHELL": "/bin/tcsh"})
    assert (said.code, "completion knows bash, zsh, fish" in said.err) == (2, True)
