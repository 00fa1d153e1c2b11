"""The list of slow tests: what makes a line of it, and that its names exist."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests import costs
from tests.costs import ROOT, functions_in, listed, slow_of


def test_functions_are_listed_whose_cases_are_slow_on_average() -> None:
    measured = {"a.py::test_one": 3.0, "a.py::test_two": 0.01, "b.py::test[x]": 0.2, "b.py::test[y]": 0.1}
    assert slow_of(measured) == {"a.py::test_one": 3.0, "b.py::test": pytest.approx(0.15)}


def test_every_listed_test_exists() -> None:
    functions: defaultdict[str, set[str]] = defaultdict(set)
    for file, _, function in (name.partition("::") for name in listed()):
        functions[file].add(function)
    there = {file: functions_in(ROOT / file) if (ROOT / file).is_file() else set() for file in functions}
    gone = {file: names - there[file] for file, names in functions.items() if names - there[file]}
    said = "".join(f"\n{file} has no {', '.join(sorted(names))}" for file, names in gone.items())
    assert not gone, f"tests/slow.txt is out of date:{said}\nmeasure again: python -m tests.costs {' '.join(gone)}"


def test_what_is_listed_is_left_out_of_a_quick_run() -> None:
    file = "tests/hostile/test_cases.py"
    slow, quick = f"{file}::test_cases", f"{file}::test_there_are_families_enough"
    assert slow in listed()
    assert slow.partition("::")[2] in functions_in(ROOT / file)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--collect-only", file]
    found = subprocess.run([*command, "-m", "not slow"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [slow in found, quick in found] == [False, True]


def test_files_with_nothing_but_slow_tests_are_not_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(costs, "ROOT", tmp_path)
    for name, functions in (("a.py", ("test_one", "test_two")), ("b.py", ("test_three",))):
        (tmp_path / name).write_text("".join(f"def {function}(): ...\n" for function in functions))
    assert costs.only_slow_files(["a.py::test_one", "b.py::test_three", "gone.py::test"]) == {tmp_path / "b.py"}
