"""`--follow`: kernels are printed once each as a file grows, whatever its writer does; checked with a simulated job."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import rocpd
from rocpd.cli.summary import follow
from rocpd.facts.rank import Options
from rocpd.federate.federation import Notes
from rocpd.simulator import JobOptions, simulate
from tests.conftest import Cli
from tests.waiting import until

HEAD = "kernel,dispatch,startNs,endNs\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(JobOptions(tmp_path_factory.mktemp("whole"), ranks=1, steps=2, seed=31))[0]


@pytest.fixture
def expected(whole: Path, cli: Cli) -> list[str]:
    return cli("summary", "op-trace", whole, "--format", "logduration").out.splitlines()


class Growing:
    """A file that a profiler is writing: a simulated one whose dispatches come some at a time."""

    def __init__(self, whole: Path, path: Path, mode: str) -> None:
        shutil.copy(whole, path)
        self.path = path
        self.connection = apsw.Connection(str(path))
        self.connection.pragma("journal_mode", mode)
        (name,) = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_kernel_dispatch%'"
        ).fetchall()[0]
        self.table = f'"{name}"'
        self.connection.execute(f"CREATE TEMP TABLE waiting AS SELECT * FROM {self.table} ORDER BY id")
        self.connection.execute(f"DELETE FROM {self.table}")

    def write(self, count: int, statement: str = "SELECT 1") -> None:
        """Run a statement, then write the next dispatches."""
        self.connection.execute(statement)
        rows = f"SELECT * FROM waiting ORDER BY id LIMIT {count}"
        self.connection.execute(f"INSERT INTO {self.table} {rows}")
        self.connection.execute(f"DELETE FROM waiting WHERE id IN (SELECT id FROM ({rows}))")

    def end(self) -> None:
        self.connection.close()


def followed(inputs: list[str], *steps: Callable[[], None], **selection: Any) -> tuple[list[str], list[str]]:
    """Follow files, do a step after each look, and press Ctrl-C; return what each look printed, and the reports."""
    out, looks = io.StringIO(), [""]
    reports = Notes()
    ahead: Iterator[Callable[[], None]] = iter(steps)

    def wait(_seconds: float) -> None:
        looks.append(out.getvalue())
        try:
            step = next(ahead)
        except StopIteration:
            raise KeyboardInterrupt from None
        step()

    def connect() -> rocpd.Session:
        return rocpd.connect(inputs, on_note=reports.add, **selection)

    follow(connect, inputs, Options(), out, reports.add, wait)
    return [after.removeprefix(before) for before, after in itertools.pairwise(looks)], reports


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_each_kernel_is_printed_once_when_it_is_written(
    mode: str, whole: Path, expected: list[str], tmp_path: Path
) -> None:
    file = Growing(whole, tmp_path / "a.db", mode)
    texts, reports = followed(
        [str(file.path)],
        lambda: file.write(3),
        lambda: None,
        lambda: file.write(4, "BEGIN"),
        lambda: file.write(0, "COMMIT"),
        lambda: file.write(100_000),
        file.end,
        lambda: None,
    )
    counts = [text.removeprefix(HEAD).count("\n") for text in texts]
    assert counts == [0, 3, 0, 0, 4, len(expected) - 8, 0, 0]
    assert texts[1].startswith(HEAD)
    assert sorted("".join(texts).splitlines()) == sorted(expected)
    assert reports == []


def test_a_file_that_is_replaced_or_comes_later(whole: Path, expected: list[str], tmp_path: Path) -> None:
    path, other = tmp_path / "a.db", tmp_path / "other"
    (replacement,) = simulate(JobOptions(other, ranks=1, steps=1, seed=32))

    def copy(source: Path, size: int = -1) -> Callable[[], None]:
        def do() -> None:
            (tmp_path / "new").write_bytes(source.read_bytes()[:size] if size > 0 else source.read_bytes())
            (tmp_path / "new").replace(path)

        return do

    texts, reports = followed([str(path)], lambda: None, copy(whole, 5000), copy(whole), path.unlink, copy(replacement))
    assert [bool(text) for text in texts] == [False, False, False, True, False, True]
    assert texts[3].splitlines() == expected
    with rocpd.connect(replacement) as session:
        rows = session.sql('SELECT start, "end" FROM kernels').fetchall()
    assert sorted(tuple(map(int, line.split(",")[-2:])) for line in texts[5].splitlines()) == sorted(rows)
    assert all(text.endswith("; waiting") for text in reports)
    assert len(reports) == 2  # not there, cut


@pytest.mark.parametrize("way", ["variable", "package", "folder"])
def test_whatever_names_the_file_is_watched(
    way: str, whole: Path, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also long after its last change; the folder of a package lists files that lie elsewhere."""
    monkeypatch.setattr("rocpd.cli.summary._FRESH", 0)
    (tmp_path / "files").mkdir()
    (tmp_path / "a.rpdb").mkdir()
    file = Growing(whole, tmp_path / "files" / "a.db", "wal")
    (tmp_path / "a.rpdb" / "index.yaml").write_text("rocprofiler-sdk: {rocpd: {files: [../files/a.db]}}")
    monkeypatch.setenv("ROCPD_INPUT", str(file.path))
    inputs = {"variable": [], "package": [str(tmp_path / "a.rpdb")], "folder": [str(tmp_path / "files")]}[way]
    texts, reports = followed(inputs, lambda: file.write(3), lambda: file.write(100_000), file.end)
    assert sorted("".join(texts).splitlines()) == sorted(expected)
    assert [bool(text) for text in texts] == [False, True, True, False]
    assert all(text.startswith("input: ") for text in reports)


def test_what_filters_let_pass_may_come_later(whole: Path, tmp_path: Path) -> None:
    file = Growing(whole, tmp_path / "a.db", "wal")
    name = str(file.connection.execute("SELECT display_name FROM kernel_symbols LIMIT 1").fetchall()[0][0])
    texts, _ = followed(
        [str(file.path)], lambda: file.write(100_000), file.end, filters=rocpd.Filters(kernel=re.escape(name))
    )
    assert [bool(text) for text in texts] == [False, True, False]
    assert {line.split('",')[0] for line in texts[1].splitlines()[1:]} == {f'"{name}'}


def test_the_command_ends_well_with_ctrl_c(whole: Path, expected: list[str], tmp_path: Path) -> None:
    """A process of its own, beside one that writes."""
    script = (
        "import sys, time; from pathlib import Path; from tests.cli.test_follow import Growing\n"
        "file = Growing(Path(sys.argv[1]), Path(sys.argv[2]), 'wal'); print('ready', flush=True)\n"
        "for _ in range(5): file.write(40); time.sleep(0.15)\n"
        "file.write(100_000); file.end()\n"
    )
    path = tmp_path / "a.db"
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # not so in a background job
    program = [sys.executable, "-c", f"{hears}; from rocpd.cli import start; start()"]
    words = [*program, "summary", "op-trace", str(path), "--format", "logduration", "--follow"]
    with contextlib.ExitStack() as processes:
        writer = processes.enter_context(
            subprocess.Popen([sys.executable, "-c", script, str(whole), str(path)], stdout=subprocess.PIPE, text=True)
        )
        processes.callback(writer.kill)
        assert writer.stdout
        writer.stdout.readline()
        with (tmp_path / "out").open("w") as out:
            reader = processes.enter_context(subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, text=True))
            processes.callback(reader.kill)
        until(lambda: len((tmp_path / "out").read_text().splitlines()) >= len(expected), "all events are shown")
        reader.send_signal(signal.SIGINT)
        _, err = reader.communicate()
    assert (reader.returncode, err) == (0, "")
    assert sorted((tmp_path / "out").read_text().splitlines()) == sorted(expected)


@pytest.mark.parametrize(
    "words",
    [
        ["kernels", "--follow"],
        ["op-trace", "--follow"],
        ["op-trace", "--format", "raptor", "--follow"],
        ["op-trace", "--format", "logduration", "--follow", "-o", "x.log"],
    ],
)
def test_other_ways_are_refused(words: list[Any], whole: Path, cli: Cli) -> None:
    said = cli("summary", *words, whole)
    assert said.code == 2
    assert "--follow: " in said.err
