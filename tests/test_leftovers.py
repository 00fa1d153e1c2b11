"""What a killed run left is removed by the next one in that folder; nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rocpd.base.leftovers import make_folder, sweep, temporary_path
from rocpd.base.output import complete_or_nothing


@pytest.fixture(scope="module")
def of_the_dead() -> str:
    """The name that a process gave which has ended."""
    program = "from pathlib import Path; from rocpd.base.leftovers import temporary_path; print(temporary_path(Path()))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_what_a_dead_process_left_goes(of_the_dead: str, tmp_path: Path) -> None:
    (tmp_path / of_the_dead).write_text("half")
    (tmp_path / f"{of_the_dead}-journal").write_text("its journal")
    with complete_or_nothing(tmp_path / "out.txt") as path:
        path.write_text("whole")
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


def test_folders_go_as_well(of_the_dead: str, tmp_path: Path) -> None:
    (tmp_path / of_the_dead / "deeper").mkdir(parents=True)
    (tmp_path / of_the_dead / "deeper" / "part").write_text("half")
    folder = make_folder(tmp_path)
    assert list(tmp_path.iterdir()) == [folder]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_may_be_in_use_stays(of_the_dead: str, tmp_path: Path) -> None:
    machine, _ = of_the_dead.removeprefix(".rocpd-").split("-", 1)
    elsewhere = of_the_dead.replace(machine, "0" * len(machine))
    names = (temporary_path(tmp_path).name, elsewhere, f"{of_the_dead}.old", f"my{of_the_dead}", ".rocpd-mine.partial")
    for name in names:
        (tmp_path / name).write_text("in use")
    sweep(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == set(names)


def test_a_link_goes_and_its_target_stays(of_the_dead: str, tmp_path: Path) -> None:
    (tmp_path / "raw.db").write_text("evidence")
    (tmp_path / of_the_dead).symlink_to(tmp_path / "raw.db")
    sweep(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["raw.db"]


def test_a_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    sweep(tmp_path / "missing")
