"""Processes that are kept for the next tasks, whatever happens to them or to their parent."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.federate.run import local
from rocpd.federate.run.shares import ConnectionCache
from rocpd.federate.run.workers import Here, Workers
from rocpd.simulator import JobOptions, simulate
from tests.processes import runs
from tests.waiting import until


@pytest.fixture
def workers() -> Iterator[Workers]:
    started = Workers(2)
    yield started
    started.close()


def _pid(_: int) -> int:
    return os.getpid()


def test_they_outlive_the_thread_that_started_them(workers: Workers) -> None:
    seen: set[int] = set()
    thread = threading.Thread(target=lambda: seen.update(workers.each(_pid, range(8))))
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert set(workers.each(_pid, range(8))) <= seen
    assert os.getpid() not in seen


def test_those_that_were_killed_are_started_again(workers: Workers) -> None:
    before = set(workers.each(_pid, range(8)))
    for pid in before:
        os.kill(pid, 9)
    until(lambda: not any(map(runs, before)), "they are gone")
    after = set(workers.each(_pid, range(8)))
    assert after
    assert not after & before


def test_this_process_is_one_of_them_for_short_tasks() -> None:
    with contextlib.closing(Workers(2, Here(ConnectionCache().lend))) as both:
        assert {*both.each(_pid, [0])} == {os.getpid()}
        assert len({*both.each(_pid, range(8))} - {os.getpid()}) <= 1
        both.rest()
        assert [*both.each(_same, range(8))] == [*range(8)]


class _Refusing:
    def __reduce__(self) -> str:
        raise ValueError("not to be sent")


def _same(task: object) -> object:
    return task


def test_a_task_that_cannot_be_sent_leaves_its_process_as_it_was() -> None:
    alone, twice = Workers(1), "twice"
    with contextlib.closing(alone):
        (pid,) = alone.each(_pid, [0])
        with pytest.raises(ValueError, match="not to be sent"):
            list(alone.each(_same, [["long" * (1 << 18), _Refusing()]]))
        assert [*alone.each(_same, [["three", twice, twice]])] == [["three", twice, twice]]
        assert [*alone.each(_pid, [0])] == [pid]


def test_those_that_rest_are_started_again(workers: Workers) -> None:
    before = set(workers.each(_pid, range(8)))
    workers.rest()
    for pid in before:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    after = set(workers.each(_pid, range(8)))
    assert after
    assert not after & before


def test_a_process_that_is_killed_at_work_is_reported(workers: Workers) -> None:
    with pytest.raises(RocpdError, match="ended with code -9"):
        list(workers.each(_kill_itself, range(3)))


def test_a_process_that_cannot_start_is_reported(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(sys, "path", ["x" * 1_000_000])  # more than a pipe takes at once
    with pytest.raises(RocpdError, match="ended with code 1"):
        list(workers.each(_pid, range(3)))


def test_files_of_the_working_folder_are_no_modules(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    monkeypatch.chdir(tmp_path)
    assert [*workers.each(_same, range(3))] == [0, 1, 2]


def _kill_itself(_: int) -> None:
    os.kill(os.getpid(), 9)


def test_they_stay_when_all_answers_were_taken_and_nobody_asked_for_more(workers: Workers) -> None:
    answers = workers.each(_pid, range(4))
    before = {next(answers) for _ in range(4)}
    answers.close()
    assert set(workers.each(_pid, range(8))) & before


def _sleep(seconds: int) -> int:
    time.sleep(seconds)
    return os.getpid()


def test_those_at_work_end_when_answers_are_not_wanted_and_only_those(workers: Workers) -> None:
    answers, others = workers.each(_sleep, [0, 10_000]), workers.each(_sleep, [0, 0])
    next(answers)
    before = {next(others), next(others)}
    answers.close()
    assert len(set(workers.each(_pid, range(8))) & before) == 1


def test_clocks_of_small_files_are_read_where_they_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(simulate(JobOptions(out=tmp_path / "job", ranks=4, nodes=2, steps=2)))
    monkeypatch.setattr(Workers, "each", lambda *_: pytest.fail("a process was started"))
    with rocpd.connect(files, jobs=2) as session:
        assert session.alignment.clocks


def test_those_of_many_are_read_by_processes_and_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(simulate(JobOptions(out=tmp_path / "job", ranks=4, nodes=2, steps=2)))
    with rocpd.connect(files, jobs=2) as session:
        expected = session.alignment
    each, calls = Workers.each, count()
    monkeypatch.setattr(local, "_MANY", 4)
    monkeypatch.setattr(Workers, "each", lambda *asked: next(calls) >= 0 and each(*asked))
    with rocpd.connect(files, jobs=2) as session:
        assert session.alignment == expected
    assert next(calls)
