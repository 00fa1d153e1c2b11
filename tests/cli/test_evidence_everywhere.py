"""No command with any option for outputs changes a recording or lays a file where it would be read with one."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import rocpd
from rocpd.base.evidence import JOURNALS
from rocpd.simulator import JobOptions, simulate
from tests.conftest import Cli, state_of

COMMANDS: Mapping[str, Sequence[str]] = {
    "query": ("query", "select 1 as a", "{}", "-o"),
    "summary": ("summary", "kernels", "{}", "-f", "csv", "-o"),
    "convert": ("convert", "-f", "json", "{}", "-o"),
    "merge": ("merge", "{}", "-o"),
    "report": ("report", "{}", "-o"),
    "advise": ("advise", "{}", "-f", "json", "-o"),
    "diff": ("diff", "{}", "{}", "-f", "json", "-o"),
    "baseline": ("diff", "--base", "{}", "--save-baseline"),
}
INPUTS = ("a.db", "linked.db", "folder", "trace.json", "trace.json.gz", "csv")
TARGETS = (
    "a.db", "b.db", "linked.db", "hard.db", "folder/../a.db", "a.db-wal", "b.db-journal", "folder/c.db", "trace.json",
    "trace.json.gz", "csv/out_kernel_trace.csv", "csv/out_marker_api_trace.csv",
)  # fmt: skip


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Recordings of several kinds, none of which rocpd wrote as they lie there."""
    made, job = tmp_path / "made", tmp_path / "job"
    (job / "folder").mkdir(parents=True)
    (job / "csv").mkdir()
    files = simulate(JobOptions(made, ranks=3, steps=2, seed=5))
    with rocpd.connect(files[0]) as session:
        session.convert("json", made / "trace")
        for path in session.convert("csv", made / "csv" / "out"):
            shutil.copy(path, job / "csv")
    for path, name in zip(files, ("a.db", "b.db", "folder/c.db"), strict=True):
        shutil.copy(path, job / name)
    shutil.copy(made / "trace.json", job)
    (job / "trace.json.gz").write_bytes(gzip.compress((made / "trace.json").read_bytes(), mtime=0))
    (job / "linked.db").symlink_to(job / "a.db")
    (job / "hard.db").hardlink_to(job / "a.db")
    monkeypatch.chdir(tmp_path)
    return job


@pytest.mark.parametrize("command", COMMANDS)
def test_no_recording_changes(command: str, cli: Cli, job: Path) -> None:
    """Each input comes with some of the targets; a file of another ending lies beside the one that was named."""
    before = state_of(job)
    seen = set(before)
    numbers = {name: number for number, name in enumerate(COMMANDS)}
    for number, target in enumerate(TARGETS):
        source = job / INPUTS[(number + numbers[command]) % len(INPUTS)]
        words = [word.format(source) for word in COMMANDS[command]]
        said = cli(*words, job / target, "--force")
        after = state_of(job)
        assert {name: after.get(name) for name in before} == before, (words, target, said)
        for name in after.keys() - seen:
            assert Path(name).name.startswith(Path(target).name), (words, target, name)
            assert not name.endswith(JOURNALS), (words, target, name)
        seen |= after.keys()


def test_an_input_is_held_to_the_end_of_the_command(cli: Cli, job: Path) -> None:
    """Also one that is read and closed before the output is written, and one that the working folder names."""
    shutil.copy(job / "trace.json", job / "other.json")
    raw = (job / "trace.json").read_bytes()
    for words in (("diff", "trace.json", "other.json"), ("advise", "trace.json", "-f", "json")):
        said = cli(
            *(job / word if word.endswith(".json") else word for word in words), "-o", job / "trace.json", "--force"
        )
        assert "is an input" in said.err
    assert (job / "trace.json").read_bytes() == raw


def test_what_rocpd_wrote_is_replaced(cli: Cli, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job)
    for words in (
        ("query", "select 1 as a", "a.db", "-o", "x.csv"),
        ("convert", "-f", "csv", "a.db", "-d", "out"),
        ("convert", "-f", "json", "a.db", "-o", "x.json"),
        ("merge", "a.db", "b.db", "-o", "m.db"),
    ):
        for _ in range(2):
            said = cli(*words, "--force")
            assert said.code == 0, said
    (job / "m.db").rename(job / "moved.db")
    assert cli("merge", "a.db", "b.db", "-o", "moved.db", "--force").code == 0
    (job / "x.csv").write_text("mine", encoding="utf-8")
    assert cli("query", "select 1 as a", "-i", "a.db", "-o", "x.csv", "--force").code == 0
    (job / "x.csv").write_text("mine", encoding="utf-8")
    said = cli("query", "select 1 as a", ".", "-o", "x.csv", "--force")
    assert "rocpd did not write it" in said.err


def test_stdout_is_an_output(cli: Cli, job: Path) -> None:
    said = cli("query", "select 1 as a", job / "a.db", "-f", "csv", "-o", "-")
    assert (said.code, said.out) == (0, "a\n1\n")
    assert "goes to files, not to stdout" in cli("merge", job / "a.db", "-o", "-").err
