"""What a killed run left is removed by the next one in that folder; nothing else is."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocpd.base import leftovers
from rocpd.base.leftovers import make_folder, sweep, temporary_path
from rocpd.base.output import complete_or_nothing, folder_complete_or_nothing


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


REPLACE = """
import os, sys
from pathlib import Path
from rocpd.base import leftovers
from rocpd.base.output import folder_complete_or_nothing

moment, exchanges = int(sys.argv[1]), sys.argv[2] == "exchange"
def counted(function):
    def call(*words):
        global moment
        moment -= 1
        if moment == 0:
            os._exit(9)
        done = function(*words)
        moment -= 1
        if moment == 0:
            os._exit(9)
        return done
    return call

if not exchanges:
    leftovers._exchange = lambda one, other: False
leftovers._exchange = counted(leftovers._exchange)
Path.rename, Path.write_bytes, Path.rmdir = map(counted, (Path.rename, Path.write_bytes, Path.rmdir))
with folder_complete_or_nothing(Path("out"), force=True) as folder:
    (folder / "x.txt").write_text("new")
"""


@pytest.mark.parametrize("how", ["exchange", "rename"])
def test_a_folder_that_is_replaced_survives_a_kill(how: str, tmp_path: Path) -> None:
    """Killed before and after each step: the old folder or the new one is there, at the latest after a sweep."""
    out, ends = tmp_path / "out", []
    for moment in range(1, 99):
        shutil.rmtree(out, ignore_errors=True)
        with folder_complete_or_nothing(out) as folder:
            (folder / "x.txt").write_text("old")
        words = [sys.executable, "-c", REPLACE, str(moment), how]
        code = subprocess.run(words, cwd=tmp_path, check=False).returncode
        assert out.exists() or how == "rename", moment
        sweep(tmp_path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
        ends.append((out / "x.txt").read_text())
        if code == 0:
            break
        with folder_complete_or_nothing(out, force=True) as folder:
            (folder / "x.txt").write_text("newer")
    assert ends == sorted(ends, reverse=True), "first the old one, then the new one"
    assert set(ends) == {"old", "new"}
    assert len(ends) > (3 if how == "exchange" else 7)


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error or a signal between the steps."""
    monkeypatch.setattr(leftovers, "_exchange", lambda *_: False)
    for _ in range(2):
        with contextlib.suppress(KeyboardInterrupt), folder_complete_or_nothing(tmp_path / "out", force=True) as folder:
            (folder / "x.txt").write_text("old")
            if (tmp_path / "out").exists():
                monkeypatch.setattr(Path, "rename", _fails_once(Path.rename))
        assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
        assert (tmp_path / "out" / "x.txt").read_text() == "old"


def _fails_once(rename: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
    names: list[str] = []

    def renamed(path: Path, target: Path) -> Path:
        names.append(path.name)
        if len(names) == 2:
            raise KeyboardInterrupt
        return rename(path, target)

    return renamed
