"""How large tests are: `make test` runs a sample of what `make soak` runs in full.

A test that is larger in a soak is marked `soak`, with how many times as long a case of it takes there; each law of
Hypothesis is. `python -m tests.soak` runs these tests alone. It says before how long that takes, from what
`tests/slow.txt` says of the samples.
Interrupted, it goes on with the tests that have not passed, unless the package or the recorder has changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

from tests.costs import ROOT, SLOW, function_of, listed

SOAK = bool(os.environ.get("ROCPD_SOAK"))
PASSED = ROOT / ".soak" / "passed"
"""The state of the sources, then a line for each test that has passed."""

T = TypeVar("T")
U = TypeVar("U")


def sized(sample: T, whole: T) -> T:
    """Return the size of a test: that of a soak in a soak."""
    return whole if SOAK else sample


def sample(values: Sequence[T], every: int, first: int = 0) -> Sequence[T]:
    """Return each n-th of the values, or all in a soak."""
    return values if SOAK else values[first::every]


def paired(ones: Iterable[T], others: Iterable[U]) -> list[tuple[T, U]]:
    """Return all pairs in a soak; else so few of them that each value of both occurs."""
    first, second = list(ones), list(others)
    if SOAK:
        return [(one, other) for one in first for other in second]
    return [(first[n % len(first)], second[n % len(second)]) for n in range(max(len(first), len(second)))]


def sources() -> str:
    """Return what changes with any file of the package or the recorder."""
    digest = hashlib.sha256()
    for folder in ("rocpd", "sdk_tool"):
        for path in sorted((ROOT / folder).rglob("*")):
            inside = path.relative_to(ROOT / folder).parts
            if path.is_file() and "__pycache__" not in inside and inside[0] != "build":
                digest.update(f"{inside}{path.stat().st_size}".encode() + path.read_bytes())
    return digest.hexdigest()


def passed(state: str) -> set[str]:
    """Return the tests that passed with these sources; forget those of others."""
    lines = PASSED.read_text(encoding="utf-8").splitlines() if PASSED.exists() else []
    if lines[:1] == [state]:
        return set(lines[1:])
    PASSED.parent.mkdir(exist_ok=True)
    PASSED.write_text(state + "\n", encoding="utf-8")
    return set()


class Tests:
    """Notes which tests there are, and what each costs [s]."""

    def __init__(self) -> None:
        self.costs: dict[str, float] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        usual = listed()
        for item in session.items:
            times = max((mark.args[0] for mark in item.iter_markers("soak") if mark.args), default=1)
            self.costs[item.nodeid] = usual.get(function_of(item.nodeid), SLOW / 2) * times


class Progress:
    """Notes each test that passes."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            with PASSED.open("a", encoding="utf-8") as file:
                file.write(report.nodeid + "\n")


def main(words: Sequence[str]) -> int:
    """Run what has not passed yet; `words` are pytest's, such as files or -k."""
    os.environ["ROCPD_SOAK"] = "1"  # the tests, and the workers, import this module anew
    done, tests = passed(sources()), Tests()
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main(["-q", "--collect-only", "-m", "soak", *words], [tests])
    if code:
        print(said.getvalue())
        return int(code)
    left = {test: cost for test, cost in tests.costs.items() if test not in done}
    if not left:
        print("All tests of the soak have passed with these sources. Remove .soak/ to run them again.")
        return 0
    minutes = sum(left.values()) / (os.cpu_count() or 1) / 60
    about = f"{minutes / 60:.1f} hours" if minutes > 90 else f"{minutes:.0f} minutes"
    print(f"{len(left)} of {len(tests.costs)} tests are left: about {about} with {os.cpu_count()} cores.")
    print("Interrupt it when you need to: the next `make soak` goes on with the tests that are left.", flush=True)
    dearest_first = sorted(left, key=left.__getitem__, reverse=True)
    return int(pytest.main(["-n", "auto", "--maxschedchunk", "1", *dearest_first], [Progress()]))


if __name__ == "__main__":
    ended = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(ended)  # libraries that were imported to read the tests report what they leak
