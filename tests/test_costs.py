"""The list of slow tests: what makes a line of it, and that its names exist."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict

import pytest

from tests.costs import COLLECTED, ROOT, function_of, functions_in, listed, slow_of


def test_slow_cases_are_listed_and_functions_of_which_half_are_slow() -> None:
    costs = {"a.py::test_one": 3.0, "a.py::test_two": 0.01, "b.py::test[x]": 0.2, "b.py::test[y]": 0.01}
    costs |= {"c.py::test[x]": 9.0, "c.py::test[y]": 0.01, "c.py::test[z]": 0.02}
    assert slow_of(costs) == {"a.py::test_one": 3.0, "b.py::test": pytest.approx(0.105), "c.py::test[x]": 9.0}


def test_every_listed_test_exists(request: pytest.FixtureRequest) -> None:
    """Cases are compared where the whole file was read in this run."""
    is_whole = not any("::" in word for word in request.config.args)
    collected = request.config.stash[COLLECTED] if is_whole else frozenset()
    known = {function_of(test) for test in collected}
    gone: defaultdict[str, list[str]] = defaultdict(list)
    for name in listed():
        file, _, function = function_of(name).partition("::")
        exists = (ROOT / file).is_file() and function in functions_in(ROOT / file)
        if not exists or (name != function_of(name) and function_of(name) in known and name not in collected):
            gone[file].append(name)
    said = "".join(f"\n{file} has no {', '.join(names)}" for file, names in gone.items())
    assert not gone, f"tests/slow.txt is out of date:{said}\nmeasure again: python -m tests.costs {' '.join(gone)}"


def test_what_is_listed_is_left_out_of_a_quick_run() -> None:
    """A file of which all tests are listed is not even imported."""
    file, function = next(name for name in map(_parts, listed()) if "[" not in name[1])
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--collect-only"]
    done = subprocess.run([*command, "-m", "not slow", file], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout
    assert f"::{function}\n" not in done.stdout
    whole = subprocess.run([*command, file], cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"::{function}" in whole.stdout


def _parts(name: str) -> tuple[str, str]:
    file, _, function = name.partition("::")
    return file, function
