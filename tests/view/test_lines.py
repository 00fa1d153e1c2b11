"""Tiles of the time line: what they add up to, and what a slice says of itself."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.view import lines
from rocpd.view.lines import STATES, RanksInLine, RowsTile, SliceDetails, StatesTile, StatesTiles, TakenTile


@pytest.fixture(scope="module")
def session(job: Path) -> Iterator[rocpd.Session]:
    with rocpd.connect(job) as opened:
        yield opened


@pytest.fixture(scope="module")
def end(session: rocpd.Session) -> int:
    return int(RanksInLine().of(session)["end"])


def rows_of(session: rocpd.Session, start: int, end: int, pixels: int = 300) -> dict[str, Any]:
    return RowsTile(TakenTile(0, start, end, pixels)).of(session)


def test_the_states_of_a_rank_are_the_time_of_its_agents(session: rocpd.Session, end: int) -> None:
    said = StatesTile(TakenTile(1, 0, end, 1)).of(session)
    shares, length = base64.b64decode(said["shares"]), said["end"] - said["start"]
    sql = "select part, hides like '%communication%', sum(duration) from agent_time where rank = 1 group by 1, 2"
    spent: dict[str, int] = {}
    for part, hides, time in session.sql(sql).fetchall():
        state = "hidden communication" if part == "compute" and hides else part
        spent[state] = spent.get(state, 0) + time
    assert [share / 255 for share in shares] == pytest.approx([spent[state] / length for state in STATES], abs=1 / 255)


def times_of(session: rocpd.Session, tile: TakenTile) -> list[float]:
    """Return the time in each state [ns], as a tile says it."""
    said = StatesTile(tile).of(session)
    shares = np.frombuffer(base64.b64decode(said["shares"]), np.uint8).reshape(len(STATES), -1)
    return list(shares.mean(axis=1) / 255 * (said["end"] - said["start"]))


@pytest.mark.parametrize("pixels", [1, 37, 4000])
def test_finer_pixels_show_the_same_time(session: rocpd.Session, end: int, pixels: int) -> None:
    whole = times_of(session, TakenTile(0, 0, end, pixels))
    assert whole == pytest.approx(times_of(session, TakenTile(0, 0, end, 300)), abs=end / 255)


@pytest.mark.parametrize("parts", [2, 7, 40])
def test_parts_of_the_time_line_add_up_to_the_outline(session: rocpd.Session, end: int, parts: int) -> None:
    """The outline is read once for all; what is narrower comes from the operations themselves."""
    edges = [end * part // parts for part in range(parts + 1)]
    sums = [times_of(session, TakenTile(0, low, high, 1000)) for low, high in pairwise(edges)]
    whole = times_of(session, TakenTile(0, 0, end, 2000))
    assert [sum(each) for each in zip(*sums, strict=True)] == pytest.approx(whole, abs=end / 255)


def test_several_ranks_answer_as_far_as_they_are_read_soon(
    session: rocpd.Session, end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = StatesTiles((1, 0), 0, end, 300)
    assert asked.of(session) == {rank: StatesTile(TakenTile(rank, 0, end, 300)).of(session) for rank in (1, 0)}
    assert list(StatesTiles((1, 7, 0), 0, end, 300).of(session)) == [1]
    with pytest.raises(UsageError):
        StatesTiles((7, 1), 0, end, 300).of(session)
    monkeypatch.setattr(lines, "_SOON", 0)
    assert list(asked.of(session)) == [1]


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
