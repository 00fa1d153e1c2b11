"""Conversions that end early: signals and full disks leave nothing behind, and no process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.federate.run.workers import Workers
from rocpd.simulator import JobOptions, simulate
from tests.places import small_disk
from tests.processes import children, runs
from tests.soak import paired, sample
from tests.waiting import until

FORMS = ["pftrace", "csv", "parquet", "arrow", "json", "otf2"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=6, events_per_rank=30_000))
    return folder / "job"


@pytest.fixture(scope="module")
def few_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job whose traces of all formats are larger than a disk of 256 KiB."""
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=2, events_per_rank=10_000))
    return folder / "job"


@pytest.mark.soak
@pytest.mark.parametrize(("form", "number"), sample(paired(FORMS, [signal.SIGINT, signal.SIGTERM]), 3))
def test_a_signal_leaves_nothing(files: Path, tmp_path: Path, form: str, number: signal.Signals) -> None:
    if form == "otf2":
        pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    command = [sys.executable, "-m", "rocpd", "convert", "-f", form, "-j", "2", "-d", str(tmp_path / "out"), str(files)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    below: list[int] = []
    while not (below and any((tmp_path / "out").rglob("*"))) and process.poll() is None:
        below = children(process.pid) or below
        time.sleep(0.005)
    assert process.poll() is None, "it ended before the signal"

    process.send_signal(number)
    _, messages = process.communicate()

    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], messages
    assert "Traceback" not in messages
    assert list(tmp_path.rglob("*")) == []
    until(lambda: not any(map(runs, below)), "the processes end")


def test_a_killed_parent_leaves_no_children(files: Path, tmp_path: Path) -> None:
    words = ("convert", "-f", "csv", "-j", "2", "-d", str(tmp_path / "out"), str(files))
    process = subprocess.Popen([sys.executable, "-m", "rocpd", *words], stderr=subprocess.DEVNULL)
    until(lambda: children(process.pid) or process.poll() is not None, "it starts another process")
    below = children(process.pid)
    assert below
    time.sleep(0.3)
    process.kill()
    process.wait()

    until(lambda: not any(map(runs, below)), "the processes end")


@pytest.mark.soak
@pytest.mark.parametrize(("form", "processes"), sample(paired(FORMS, [1, 2]), 3, 2))
def test_a_full_disk_leaves_nothing(
    few_events: Path, tmp_path: Path, form: str, processes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    if form == "otf2":
        pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    with small_disk(tmp_path / "disk", "256k") as disk, rocpd.connect(few_events, jobs=processes) as session:
        options = ConvertOptions(disk / "out")
        with pytest.raises(rocpd.OutputError):
            FORMATS[form].write(session, options)
        assert not (disk / "out").exists()
    assert capfd.readouterr() == ("", "")


def _square(number: int) -> int:
    if number == 13:
        raise rocpd.RocpdError("thirteen", "take another")
    return number * number


def _die(number: int) -> int:
    os._exit(number)


def test_answers_come_in_order_and_errors_with_their_hint() -> None:
    workers = Workers(3)
    assert list(workers.each(_square, range(7))) == [n * n for n in range(7)]
    assert list(workers.each(_square, range(2))) == [0, 1]
    answers = workers.each(_square, [1, 2, 13, 4])
    assert [next(answers), next(answers)] == [1, 4]
    with pytest.raises(rocpd.RocpdError, match="thirteen") as caught:
        next(answers)
    assert caught.value.hint == "take another"
    workers.close()


def test_a_worker_that_dies_is_told() -> None:
    with contextlib.closing(Workers(2)) as workers, pytest.raises(rocpd.RocpdError, match="ended with code 3"):
        list(workers.each(_die, [3, 3]))


def test_an_input_that_is_damaged_within_a_worker(files: Path, tmp_path: Path) -> None:
    copies = []
    for path in sorted(files.glob("*.db"))[:2]:
        data = bytearray(path.read_bytes())
        copies.append(tmp_path / path.name)
        if len(copies) == 2:
            half = len(data) // 2
            data[half : half + half // 2] = b"\xaa" * (half // 2)
        copies[-1].write_bytes(data)
    for processes in (1, 2):
        with (
            rocpd.connect(copies, jobs=processes) as session,
            pytest.raises(rocpd.InputError, match=copies[1].name),
        ):
            FORMATS["pftrace"].write(session, ConvertOptions(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
