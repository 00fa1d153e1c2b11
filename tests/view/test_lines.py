"""Tiles of the time line: what they add up to, and what a slice says of itself."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.view import outlines
from rocpd.view.desk import ViewedJob
from rocpd.view.lines import RowsTile, SliceDetails, StatesTiles, TakenTile
from rocpd.view.outlines import STATES, Overview


@pytest.fixture(scope="module")
def session(job: Path) -> Iterator[rocpd.Session]:
    with rocpd.connect(job) as opened:
        yield opened


@pytest.fixture(scope="module")
def overview(job: Path) -> Iterator[Overview]:
    opened = Overview(ViewedJob((str(job),), jobs=1))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def end(overview: Overview) -> int:
    return int(overview.ranks().value["end"])


def rows_of(session: rocpd.Session, start: int, end: int, pixels: int = 300) -> dict[str, Any]:
    return RowsTile(TakenTile(0, start, end, pixels)).of(session)


def test_the_states_of_a_rank_are_the_time_of_its_agents(session: rocpd.Session, overview: Overview) -> None:
    said = overview.outlines((1,), 1).value["ranks"][1]
    shares, length = base64.b64decode(said["shares"]), said["end"] - said["start"]
    sql = "select part, hides like '%communication%', sum(duration) from agent_time where rank = 1 group by 1, 2"
    spent: dict[str, int] = {}
    for part, hides, time in session.sql(sql).fetchall():
        state = "hidden communication" if part == "compute" and hides else part
        spent[state] = spent.get(state, 0) + time
    assert [share / 255 for share in shares] == pytest.approx([spent[state] / length for state in STATES], abs=1 / 255)


def times_of(said: dict[str, Any]) -> list[float]:
    """Return the time in each state of rank 0 [ns], as an answer says it."""
    said = said["ranks"][0]
    shares = np.frombuffer(base64.b64decode(said["shares"]), np.uint8).reshape(len(STATES), -1)
    return list(shares.mean(axis=1) / 255 * (said["end"] - said["start"]))


@pytest.mark.parametrize("pixels", [1, 37, 4000])
def test_finer_pixels_show_the_same_time(session: rocpd.Session, overview: Overview, end: int, pixels: int) -> None:
    whole = times_of(overview.outlines((0,), pixels).value)
    assert whole == pytest.approx(times_of(StatesTiles((0,), 0, end, 300).of(session)), abs=end / 255)


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_parts_of_the_time_line_add_up_to_the_outline(
    session: rocpd.Session, overview: Overview, end: int, parts: int
) -> None:
    """The outline is read once for all; what is narrower comes from the operations themselves."""
    edges = [end * part // parts for part in range(parts + 1)]
    sums = [times_of(StatesTiles((0,), low, high, 1000).of(session)) for low, high in pairwise(edges)]
    whole = times_of(overview.outlines((0,), 2000).value)
    assert [sum(each) for each in zip(*sums, strict=True)] == pytest.approx(whole, abs=end / 255)


def test_several_ranks_answer_as_far_as_they_are_read_soon(
    session: rocpd.Session, overview: Overview, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known(*ranks: int) -> list[list[int]]:
        answers = (overview.outlines(ranks, 300).value, StatesTiles(ranks, 0, end, 300).of(session))
        return [list(answer["ranks"]) for answer in answers]

    monkeypatch.setattr(outlines, "_SOON", 900)
    assert known(1, 0) == [[1, 0]] * 2
    assert known(1, 7, 0) == [[1]] * 2
    with pytest.raises(UsageError):
        overview.outlines((7, 1), 300)
    with pytest.raises(UsageError):
        StatesTiles((7, 1), 0, end, 300).of(session)
    monkeypatch.setattr(outlines, "_SOON", 0)
    assert known(1, 0) == [[1]] * 2


def test_who_asks_while_times_are_read_is_told_how_far(
    overview: Overview, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlines, "_PATIENCE", 0.01)
    reports: list[tuple[int, int]] = []
    opened = Overview(ViewedJob((str(job),), jobs=1))
    with opened.reading(), ThreadPoolExecutor() as others:
        assert others.submit(opened.ranks).result().value == {"read": 0.0}
    opened.read(lambda done, of: reports.append((done, of)))
    assert reports[0][0] < reports[0][1]
    assert opened.ranks() == overview.ranks()
    opened.close()


def test_steps_are_those_of_all_ranks(session: rocpd.Session, overview: Overview) -> None:
    sql = 'select step, min(start), max("end") from rank_steps group by step order by step'
    (origin, _), spans = session.time_range or (0, 0), session.sql(sql).fetchall()
    expected = [[step, start - origin, end - origin] for step, start, end in spans]
    assert overview.outlines((1, 0), 300).value["steps"] == expected


def test_every_event_is_drawn(session: rocpd.Session, end: int) -> None:
    """Slices that are merged count: no operation and no call is lost, however few pixels there are."""
    counts: dict[str, int] = {}
    for row in rows_of(session, 0, end + 1, 10)["rows"]:
        counts[row["kind"]] = counts.get(row["kind"], 0) + sum(row.get("count", []))
    for kind, table in (("stream", "kernels"), ("copies", "memory_copies"), ("thread", "regions")):
        assert counts[kind] == session.sql(f"select count(*) from {table} where rank = 0").fetchall()[0][0], table


def test_a_tile_goes_by_pixels(session: rocpd.Session, end: int) -> None:
    for pixels in (10, 100):
        for row in rows_of(session, 0, end, pixels)["rows"]:
            assert len(row.get("start", [])) <= 2 * (pixels + 1) * row.get("depth", 1)
            assert len(row.get("value", [])) in (0, pixels)


def test_a_kernel_says_which_call_launched_it(session: rocpd.Session, end: int) -> None:
    rows = rows_of(session, 0, end, 4000)["rows"]
    number = next(index for index, row in enumerate(rows) if row["kind"] == "stream" and len(row["id"]) > 9)
    said = SliceDetails(0, number, rows[number]["id"][5]).of(session)
    (shown,) = session.sql(said["sql"]).fetchall()
    values = dict(zip(session.sql(said["sql"]).columns, shown, strict=True))
    assert said["end"] - said["start"] == values["duration"]
    assert dict(said["values"])["dispatch_id"] == str(values["dispatch_id"])
    (call,) = said["linked"]
    launching = SliceDetails(0, call["row"], call["id"]).of(session)
    assert call["text"] == "launched by"
    assert (launching["name"], launching["start"]) == (call["name"], call["start"])
    assert said["start"] in [each["start"] for each in launching["linked"]]


@pytest.mark.parametrize(("row", "number"), [(0, 999_999), (999, 0)])
def test_slices_that_are_not_there_are_mistakes(session: rocpd.Session, row: int, number: int) -> None:
    with pytest.raises(rocpd.RocpdError, match="no such slice"):
        SliceDetails(0, row, number).of(session)
    with pytest.raises(rocpd.RocpdError, match="no rank 77"):
        SliceDetails(77, row, number).of(session)
