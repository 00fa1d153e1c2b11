"""The commands of quick references, which stand in the second column of their tables, run or at least exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests import omniprobe
from tests.conftest import Cli
from tests.docs.console import ROOT
from tests.pc_sampling import as_json, made

_COMMAND = re.compile(r"`(rocpd [^`]+)`")
_ASK_HELP = {"control", "record", "shell", "view"}
"""Commands that need a recorder, a process, a terminal or a browser: their options are looked up in the help."""

_VERDICTS = (0, 1, 4)
"""Exit codes of comparisons: whatever came out."""


def commands(page: Path) -> list[str]:
    """Return the commands in the second column of the tables of a page."""
    rows = (line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| "))
    return [command for row in rows for command in _COMMAND.findall(row.split(" | ")[1])]


_PAGES = ("questions.md", "more-questions.md", "coming-from.md", "from-rpd.md", "from-pytorch.md", "from-nsys.md")

_FOR_OTHERS = {"import", "index", "merge", "package", "record", "simulate", "trim"}
"""Commands that write what other commands of a page read. Lines of others run once, however many pages show them."""


def test_each_command_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    works: set[str] = set()
    assert cli("simulate", "-o", tmp_path / "job", "--ranks", "3", "--steps", "3").code == 0
    for page in _PAGES:
        lines = commands(ROOT / "docs" / page)
        assert len(lines) > 10
        (tmp_path / page).mkdir()
        monkeypatch.chdir(tmp_path / page)
        for name in ("job", "before"):
            shutil.copytree(tmp_path / "job", name)
        write_outputs_of_others()
        for line in lines:
            if line not in works:
                check(line, cli)
            if line.split()[1] not in _FOR_OTHERS:
                works.add(line)


def write_outputs_of_others() -> None:
    """Write what pages name beside the job: rocprofv3's samples of program counters, and outputs of Omniprobe."""
    as_json(made(1), Path("run_results.json"))
    Path("memory.json").write_text(omniprobe.memory_analysis(omniprobe.accesses(1)), encoding="utf-8")
    omniprobe.json_lines(Path("blocks.json"), omniprobe.blocks(1))


def check(line: str, cli: Cli) -> None:
    """Run a command, or look its options up."""
    _, command, *words = shlex.split(line)
    if command in _ASK_HELP or "--follow" in words:  # which goes on until Ctrl-C
        said = cli(command, "--help-all")
        options = words[: words.index("--")] if "--" in words else words
        assert [word for word in options if word.startswith("-") and word not in said.out] == [], line
        assert said.code == 0
    else:
        said = cli(command, *words, *(["--force"] if command in ("convert", "merge", "trim") else []))
        assert said.code in (_VERDICTS if command == "diff" else (0,)), f"{line}\n{said.err}"


def test_commands_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("| a | b |\n|---|---|\n| `rocpd x` | `rocpd y z`, `rocpd w` | `rocpd v` |\n\n`rocpd u`\n")
    assert commands(page) == ["rocpd y z", "rocpd w"]
