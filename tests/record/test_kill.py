"""SIGKILL at random moments: at most the last flush interval is lost, and what is left opens."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import RocpdError
from tests.record.build import Build
from tests.record.runs import environment
from tests.soak import sized
from tests.waiting import until

FLUSH_MS = 400
LATE_MS = 1600
"""On a busy machine a thread is called so late; kills come up to a second later, and would find more lost."""
KILLS = sized(4, 200)
AT_ONCE = 2


def _start(built: Build, folder: Path) -> subprocess.Popen[bytes]:
    command = [str(built.program("probe")), "numbered", "3"]
    return subprocess.Popen(command, env=environment(folder, ROCPD_FLUSH_MS=str(FLUSH_MS)))


def _kill(process: subprocess.Popen[bytes]) -> int:
    """Kill, and give the time of it on the recorder's clock [ns]."""
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return now


def _grown(folder: Path, least: int) -> Path:
    """Wait for the file of a process to have `least` bytes, and give it."""

    def grown() -> list[Path]:
        return [path for path in folder.glob("*.db") if path.stat().st_size >= least]

    until(grown, "something is written")
    return grown()[0]


def _wait_for_rows(path: Path) -> None:
    """Wait for the first transaction that is complete: a long one is written to the file before that."""

    def has_rows() -> bool:
        with contextlib.suppress(RocpdError), rocpd.connect([path]) as session:
            return session.execute("SELECT COUNT(*) FROM rocpd_region").fetchall() != [(0,)]
        return False

    until(has_rows, "a row is committed")


def _killed(built: Build, base: Path, seed: int) -> Iterator[tuple[Path, int]]:
    chance = random.Random(seed)
    started = [(folder, _start(built, folder)) for folder in (base / f"{seed}-{i}" for i in range(AT_ONCE))]
    waits = sorted(chance.uniform(0.6, (LATE_MS + 1000) / 1000) for _ in started)
    for folder, _ in started:
        _grown(folder, 1)
    all_grown = time.monotonic()
    for (folder, process), wait in zip(started, waits, strict=True):
        time.sleep(max(0.0, all_grown + wait - time.monotonic()))
        yield folder, _kill(process)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(KILLS // AT_ONCE))
def test_nothing_flushed_is_lost(built: Build, tmp_path: Path, seed: int) -> None:
    for folder, killed in _killed(built, tmp_path, seed):
        left = [path for path in folder.iterdir() if path.suffix == ".db"]
        assert len(left) == 1
        _check(left[0], killed)


def _check(path: Path, killed: int) -> None:
    with rocpd.connect([path]) as session:
        rows = session.execute('SELECT tid, CAST(name AS INTEGER), "end" FROM markers').fetchall()
    texts: dict[int, list[int]] = defaultdict(list)
    for tid, number, _ in rows:
        texts[tid].append(number)
    assert len(texts) == 3
    for numbers in texts.values():  # every earlier row is there, once
        assert sorted(numbers) == list(range(len(numbers)))
    assert killed - max(end for _, _, end in rows) < LATE_MS * 1e6
    _check_recovered(path)


def _check_recovered(path: Path) -> None:
    """Any SQLite recovers the file from what lies beside it."""
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        connection.close()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(sized(3, 30)))
def test_killed_in_the_middle_of_writing(built: Build, tmp_path: Path, seed: int) -> None:
    """The writer is busy without pause: the kill hits a transaction, often one that has begun to reach the file."""
    process = subprocess.Popen(
        [str(built.program("probe")), "burst", "1000000000"], env=environment(tmp_path / "out", ROCPD_FLUSH_MS="1")
    )
    path = _grown(tmp_path / "out", 1 << 20)  # the tables alone take less
    _wait_for_rows(path)
    time.sleep(random.Random(seed).random() * 0.4)
    _kill(process)
    sql = "SELECT COUNT(*), MAX(id) - MIN(id) + 1, COUNT(event_id), MAX(event_id) FROM rocpd_region"
    with rocpd.connect([path]) as session:
        ((count, span, events, last),) = session.execute(sql).fetchall()
        orphans = session.execute("SELECT COUNT(*) FROM regions WHERE category IS NULL").fetchall()
    assert count > 0
    assert (span, events, last) == (count, count, count)
    assert orphans[0][0] == 0
    _check_recovered(path)
