"""Threads of a program that share a session get the answers that one alone gets."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

import rocpd
from rocpd.base import ClosedError
from tests.library.jobs import WAYS, questions, write_job
from tests.soak import sized

THREADS = 8
ASKED = sized(3, 1000)  # by each thread


@pytest.mark.soak(200)
@pytest.mark.parametrize("way", WAYS)
def test_threads_that_share_a_session_get_right_answers(way: str, tmp_path: Path) -> None:
    write_job(tmp_path / "job", way)
    asked = questions()
    with rocpd.connect(tmp_path / "job", **WAYS[way]) as session:
        expected = [ask(session) for ask in asked]
        recovered = [note for note in session.notes if "recovered copy" in note]
    assert len(recovered) == (0 if way in ("copied", "indexed") else 2)
    together = threading.Barrier(THREADS)

    def work(seed: int) -> list[int]:
        """Return which answers were wrong."""
        numbers = Random(seed).choices(range(len(asked)), k=ASKED)
        together.wait()  # all find a session that has opened nothing
        return [number for number in numbers if asked[number](session) != expected[number]]

    with rocpd.connect(tmp_path / "job", **WAYS[way]) as session, ThreadPoolExecutor(THREADS) as threads:
        assert list(threads.map(work, range(THREADS))) == [[]] * THREADS


def test_two_answers_that_are_read_in_turns_by_two_threads(tmp_path: Path) -> None:
    write_job(tmp_path / "job", "attached")
    sql = "SELECT rank, start, duration FROM kernels ORDER BY rank, start"
    with rocpd.connect(tmp_path / "job") as session, ThreadPoolExecutor(1) as other:
        expected = session.sql(sql).fetchall()
        here, there = iter(session.sql(sql)), other.submit(lambda: iter(session.sql(sql))).result()
        for row in expected:
            assert next(here) == row
            assert other.submit(next, there).result() == row


def test_tables_that_one_thread_makes_are_there_for_others(tmp_path: Path) -> None:
    write_job(tmp_path / "job", "attached")
    with rocpd.connect(tmp_path / "job") as session, ThreadPoolExecutor(2) as threads:
        threads.submit(session.execute, "CREATE TEMP TABLE mine AS SELECT 7 AS seven").result()
        assert threads.submit(lambda: session.sql("SELECT seven FROM mine").fetchall()).result() == [(7,)]


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_session_that_is_closed_ends_what_another_thread_asks(tmp_path: Path) -> None:
    write_job(tmp_path / "job", "copied")
    session, is_running = rocpd.connect(tmp_path / "job"), threading.Event()
    session.connection.create_scalar_function("note_running", lambda *_: is_running.set(), 0)
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(session.execute, ENDLESS.replace("SELECT 1 ", "SELECT coalesce(note_running(), 1) "))
        is_running.wait()
        session.close()
        with pytest.raises(ClosedError):
            answer.result()


def test_a_note_is_noted_once(tmp_path: Path) -> None:
    write_job(tmp_path / "job", "attached")
    noted: list[str] = []
    with rocpd.connect(tmp_path / "job", on_note=noted.append) as session, ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda _: session.alignment, range(THREADS)))
        assert sorted(set(noted)) == sorted(noted) == sorted(session.notes)
