"""What each test costs, and which are slow: those that `tests/slow.txt` lists, as they were measured.

`python -m tests.costs` runs all tests and writes the list anew; with files of tests, it replaces the lines of those. As
a plugin of pytest it marks the listed tests as `slow`. `-m "not slow"` (`make quick`) does not even import a file all
of whose tests are listed, and measures what it runs, to name what should be listed.

A cost is the CPU time [s] of a test and of the processes that it started, or a twentieth of the time that it took
where that is more: a test that waits keeps others from its worker, and on a busy machine each takes longer. The cost of
what tests share is divided among them; more than `HINT` counts in full, so that no quick run begins with it.
Where the first test to come fills a cache, a file is marked by hand.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import warm

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "slow.txt"
HEAD = "# CPU seconds of slow tests, written by `make costs`: see tests/costs.py\n"

SLOW = 0.02
"""A test that costs more is slow [s]: the other half takes a minute on two cores, busy ones too."""
HINT = 1.0
"""`make quick` names tests that cost more and are not listed [s]."""

COMPILED = "built"
"""The fixture that compiles the recorder, which takes a minute the first time: tests that use it are slow."""

MEASURED = "ROCPD_TESTS_MEASURED"
"""The environment variable that asks the workers to measure."""

Costs = dict[str, float]


def function_of(test: str) -> str:
    """Return the name of a test without its parameters."""
    return test.partition("[")[0]


def listed() -> Costs:
    """Return the functions of slow tests, and what a case of each costs [s]."""
    lines = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    pairs = (line.rsplit(maxsplit=1) for line in lines if not line.startswith("#"))
    return {name: float(cost) for name, cost in pairs}


def functions_in(path: Path) -> set[str]:
    """Return the names of the test functions of a file, read without importing it."""
    return set(re.findall(r"^\s*(?:async )?def (test_\w*)", path.read_text(encoding="utf-8"), re.M))


def only_slow_files(names: Iterable[str]) -> set[Path]:
    """Return the files in which every test is slow."""
    slow: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        file, _, function = name.partition("::")
        slow[file].add(function)
    paths = {ROOT / file: functions for file, functions in slow.items()}
    return {path for path, functions in paths.items() if path.exists() and functions_in(path) <= functions}


# --- marking


def _is_quick(config: pytest.Config) -> bool:
    return str(config.option.markexpr) == "not slow"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: listed in tests/slow.txt")
    config.addinivalue_line("markers", "soak(times): larger in `make soak`, where a case takes so many times as long")
    config.pluginmanager.register(_Marks(config))
    if _is_quick(config) or MEASURED in os.environ:
        config.pluginmanager.register(_Measures())


class _Marks:
    """Marks the tests of the list."""

    def __init__(self, config: pytest.Config) -> None:
        self._slow = listed()
        self._left_out = only_slow_files(self._slow) if _is_quick(config) else set()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if collection_path in self._left_out else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if function_of(item.nodeid) in self._slow or COMPILED in getattr(item, "fixturenames", ()):
                item.add_marker("slow")
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False) and not item.get_closest_marker("soak"):
                item.add_marker(pytest.mark.soak(40))

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter, config: pytest.Config) -> None:
        """Name what a quick run need not have run."""
        if not _is_quick(config):
            return
        costs: defaultdict[str, float] = defaultdict(float)
        for reports in terminalreporter.stats.values():
            for report in reports:
                if isinstance(report, pytest.TestReport):
                    costs[report.nodeid] += getattr(report, "cost", 0.0)
        if dear := sorted((name for name, cost in costs.items() if cost > HINT), key=costs.__getitem__)[-10:]:
            terminalreporter.section("hint: slow, but not in tests/slow.txt")
            for name in dear:
                terminalreporter.line(f"{costs[name]:5.1f} s  {name}")
            terminalreporter.line(f"They are listed by: python -m tests.costs {' '.join(sorted(files_of(dear)))}")


def files_of(names: Iterable[str]) -> set[str]:
    """Return the files of tests."""
    return {name.partition("::")[0] for name in names}


# --- measuring, in the process that runs the test


class _Measures:
    """Notes in the report of each test what was used since the one before."""

    def __init__(self) -> None:
        self._before = self._used()
        self._shared: Costs = {}

    @staticmethod
    def _used() -> tuple[float, float]:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in usages) + warm.cpu_seconds(), time.monotonic()

    def _read(self) -> float:
        """Return the cost [s] since the last time."""
        (cpu, wall), (cpu_before, wall_before) = self._used(), self._before
        self._before = cpu, wall
        return max(cpu - cpu_before, (wall - wall_before) / 20)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Set aside what is made once for several tests."""
        if fixturedef.scope == "function":
            return (yield)
        own = self._read()
        result = yield
        self._shared[_key(fixturedef)] = self._read()
        self._shared[""] = self._shared.get("", 0.0) + own
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._read()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        shared, self._shared = self._shared, {}
        report.cost = self._read() + shared.pop("", 0.0)  # type: ignore[attr-defined]
        report.shared = shared  # type: ignore[attr-defined]
        if report.when == "setup":
            fixtures = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009
            report.uses = [_key(fixture) for (*_, fixture) in fixtures if fixture.scope != "function"]  # type: ignore[attr-defined]
        return report


def _key(fixture: pytest.FixtureDef[object]) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


# --- writing the list


class Collector:
    """Adds up what the tests of a run cost."""

    def __init__(self) -> None:
        self._own: Counter[str] = Counter()
        self._shared: defaultdict[str, list[float]] = defaultdict(list)
        self._users: Counter[str] = Counter()
        self._uses: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        values = vars(report)
        self._own[report.nodeid] += values["cost"]
        for key, cost in values["shared"].items():
            self._shared[key].append(cost)
        if report.when == "setup":
            self._uses[report.nodeid] = values["uses"]
            self._users.update(values["uses"])

    def costs(self) -> Costs:
        """Return the cost of each test [s], with its part of what it shares."""
        return {test: cost + sum(map(self._part, self._uses[test])) for test, cost in self._own.items()}

    def _part(self, key: str) -> float:
        """Return what each test pays for what it shares [s]."""
        made = self._shared.get(key, [0.0])
        return max(made) if max(made) > HINT else sum(made) / self._users[key]


def slow_of(costs: Mapping[str, float]) -> Costs:
    """Return the functions whose cases cost more than `SLOW` on average, and what a case costs [s]."""
    cases: defaultdict[str, list[float]] = defaultdict(list)
    for test, cost in costs.items():
        cases[function_of(test)].append(cost)
    means = {function: sum(of_cases) / len(of_cases) for function, of_cases in cases.items()}
    return {function: cost for function, cost in means.items() if cost > SLOW}


def write(slow: Mapping[str, float]) -> None:
    """Write the list, with costs of one digit, so that measuring again changes few lines."""
    lines = [f"{name} {float(f'{cost:.1g}'):g}\n" for name, cost in sorted(slow.items())]
    LIST.write_text(HEAD + "".join(lines), encoding="utf-8")


def main() -> int:
    """Run the tests of some files, or all, and write what is slow."""
    parser = argparse.ArgumentParser(prog="python -m tests.costs")
    parser.add_argument("files", nargs="*", help="files of tests; all unless given")
    parser.add_argument("-n", default="0", metavar="WORKERS", help="workers; usually none")
    asked = parser.parse_args()
    there = [file for file in asked.files if Path(file).exists()]
    collector, code = Collector(), 0
    os.environ[MEASURED] = "1"
    if there or not asked.files:
        code = int(pytest.main(["-q", "-n", asked.n, "--dist", "worksteal", *there], [collector]))
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return code
    costs = collector.costs()
    old = {name: cost for name, cost in listed().items() if asked.files and name.partition("::")[0] not in asked.files}
    write(old | slow_of(costs))
    quick = [cost for test, cost in costs.items() if function_of(test) not in listed()]
    print(f"{len(costs)} tests cost {sum(costs.values()):.0f} s; the {len(quick)} that are not slow {sum(quick):.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
