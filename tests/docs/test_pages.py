"""Commands in the documents are run and their output compared; Python examples are run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rocpd.summary.registry import SUMMARIES
from tests.docs.console import ROOT, run, steps
from tests.warm import run_code

PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if steps(page)]


_JOB = "rocpd simulate -o job --ranks 4 --nodes 2 --steps 4 --seed 7"
"""How dozens of pages start: it runs once, and they get copies of the job."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which `_JOB` ran, and what it printed."""
    folder = tmp_path_factory.mktemp("pages")
    return folder, run(_JOB, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_show_what_they_give(page: Path, job: tuple[Path, str], tmp_path: Path) -> None:
    for step in steps(page):
        if step.command == _JOB:
            shutil.copytree(job[0], tmp_path, dirs_exist_ok=True)
            assert job[1] == step.shown
        else:
            assert run(step.command, tmp_path) == step.shown, f"$ {step.command}"
    for example in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
        run_code(example, tmp_path)


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_analysis_has_an_example(name: str) -> None:
    """A console block of its page runs the analysis or one of its tables, and so is compared above."""
    shown = {name, *SUMMARIES[name].tables}
    commands = [step.command.split() for step in steps(ROOT / "docs" / "analyses" / f"{name}.md")]
    assert [words for words in commands if words[:2] == ["rocpd", "summary"] and shown & set(words[2:])]


def test_every_page_of_an_analysis_has_its_analysis() -> None:
    assert {page.stem for page in (ROOT / "docs" / "analyses").iterdir()} == SUMMARIES.keys()


def test_modules_that_the_architecture_names_exist() -> None:
    """Each path starts at `rocpd/` or at one of its packages."""
    packages = [ROOT / "rocpd", *(path for path in (ROOT / "rocpd").rglob("*") if path.is_dir())]
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = sorted(set(re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", text)))
    assert [name for name in named if not any((package / name).exists() for package in packages)] == []


def test_every_command_is_in_the_readme() -> None:
    from rocpd.cli.commands import COMMANDS

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`rocpd {name}" not in text] == []
