"""Fixtures that many tests share: real files, built jobs opened as one session, command lines, the sqlite3 shell."""

from __future__ import annotations

import atexit
import contextlib
import gc
import hashlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_type_hints

import pytest
from hypothesis import settings

import rocpd
from rocpd.base.boundary import Policy
from rocpd.base.option import Option, options_of
from rocpd.cli import run
from rocpd.schema.versions import LATEST
from tests import costs, warm
from tests.build import TraceBuilder
from tests.soak import sized

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# On a busy machine an example takes as long as it takes.
settings.register_profile("rocpd", deadline=None, max_examples=sized(12, 1000))
settings.load_profile("rocpd")

DATA = Path(os.environ.get("ROCPD_TEST_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
"""Files of real profilers, which are no part of the project."""

_ABSENT = "files of real profilers, which are not part of the project, are absent"

OpenJob: TypeAlias = Callable[..., rocpd.Session]
Shell: TypeAlias = Callable[[Path, str], str]
State: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Said:
    """What a command line ended with."""

    code: int
    out: str
    err: str


Cli: TypeAlias = Callable[..., Said]


def private(pattern: str, count: int) -> tuple[Path, ...]:
    """Return the `count` files below `DATA` that match a pattern; skip the test where they are absent."""
    files = tuple(sorted(DATA.glob(pattern)))
    if len(files) != count:
        pytest.skip(_ABSENT)
    return files


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let all tests that `private` skips share one place, so that pytest's summary has one line for them."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[2].endswith(_ABSENT):
        report.longrepr = (__file__, 0, report.longrepr[2])
    return report


@pytest.fixture(scope="session", autouse=True)
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Imported traces go to a cache of this test run."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def real_files() -> tuple[Path, ...]:
    """The twelve databases that rocprofv3 wrote on an MI300X; the test is skipped where they are absent."""
    return private("rocprofv3/*.db", 12)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def open_job(tmp_path: Path) -> Iterator[OpenJob]:
    """Write builders to `0.db`, `1.db` … of a folder and open them as one session, closed at the end."""
    sessions: list[rocpd.Session] = []

    def open_it(*builders: TraceBuilder, version: str = LATEST) -> rocpd.Session:
        folder = tmp_path / f"job{len(sessions)}"
        folder.mkdir()
        session = rocpd.connect([b.write(folder / f"{i}.db", version) for i, b in enumerate(builders)])
        sessions.append(session)
        return session

    yield open_it
    for session in sessions:
        session.close()


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """Run a command line in this process, without what the environment of the tests says."""
    for name in ("ROCPD_INPUT", "ROCPD_OUTPUT_NAME", "ROCPD_OUTPUT_PATH"):
        monkeypatch.delenv(name, raising=False)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def run_it(*words: str | Path) -> Said:
        capfd.readouterr()
        code = run([os.fspath(word) for word in words])
        return Said(code, *capfd.readouterr())

    yield run_it
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def sqlite3_shell() -> Shell:
    """Run SQL on a file in SQLite's own shell (often an older SQLite than ours); gives its output."""
    shell = shutil.which("sqlite3")
    if shell is None:
        pytest.skip("no sqlite3 shell on this machine")

    def run_sql(path: Path, sql: str) -> str:
        command = [shell, "-readonly", "-batch", str(path), sql]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    return run_sql


def state_of(folder: Path) -> State:
    """Return name -> SHA-256 of every file below `folder`: equal before and after means nothing was touched."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _only_the_finder_of_python() -> None:
    """Find packages as users without Dask do.

    Dask imports a backport of `importlib.metadata` that puts a finder of its own in the place of Python's. With a
    finder that it does not know, rocpd reads what all packages declare, again and again: a twentieth of the time of
    all tests.
    """
    finders, own = [*sys.meta_path], vars(PathFinder).get("find_distributions")
    with contextlib.suppress(ImportError):
        importlib.import_module("importlib_metadata")
        sys.meta_path[:] = finders
        if own is not None:
            setattr(PathFinder, "find_distributions", own)  # noqa: B010


def _build_commands_once() -> None:
    """Let command lines that run in this process share what typer makes of their options: 3 ms of 20.

    A command is built anew where other packages declare other options, or help would list other values.
    """
    from rocpd.cli import commands

    build, built = commands.command_of, dict[object, commands.HelpfulCommand]()

    @cache
    def options_in(function: commands.Function) -> tuple[Option, ...]:
        groups = [kind for name, kind in get_type_hints(function).items() if name != "return"]
        return tuple(option for kind in groups if kind is not commands.Asked for option in options_of(kind))

    def command_of(function: commands.Function, name: str) -> commands.HelpfulCommand:
        options = *options_in(function), *getattr(function, "declared_elsewhere", tuple)()
        key = function, name, options, tuple(option.listing() for option in options if option.listing)
        if key not in built:
            built[key] = build(function, name)
        return built[key]

    commands.command_of = command_of


def pytest_configure(config: pytest.Config) -> None:
    """Raise failures of parts, mark slow tests, let commands be interrupted: under nohup children inherit otherwise."""
    warm.sync_nothing()
    gc.disable()  # what is imported to collect tests stays: searching it takes a second
    _only_the_finder_of_python()
    _build_commands_once()
    config.pluginmanager.register(costs)
    Policy.is_raised = True
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_collection_finish() -> None:
    """Search for garbage rarely, and not in what was imported, which takes half a second."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries report what is left then; pytest's last searches take seconds before
    gc.set_threshold(20_000)
    gc.enable()


BEFORE = pytest.StashKey[State]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Note what the real files are before any test: workers share them, so their parent looks."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[BEFORE] = state_of(DATA)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail if any test has changed a real file or left something beside one."""
    before = session.config.stash.get(BEFORE, None)
    if before is not None:
        changed = {name for name, _ in before.items() ^ state_of(DATA).items()}
        if changed:
            print(f"\nchanged, added or removed by tests in {DATA}: {', '.join(sorted(changed))}")
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
