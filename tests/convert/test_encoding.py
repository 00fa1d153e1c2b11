"""The numpy protobuf encoder and the lanes, against simple ways of doing the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.convert.formats import protobuf as pb
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Ragged, Track, TrackKind, Tracks
from tests.pftrace_frames import count_packets


def decode(data: bytes) -> int:
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.sampled_from([1, 7, 14, 28, 35, 56, 64]))
def test_varints_of_one_width_read_back(values: list[int], bits: int) -> None:
    numbers = np.array([value >> (64 - bits) for value in values], np.int64)

    rows = pb.varints(numbers, -(-bits // 7) if (numbers >= 0).all() else 10)

    assert [decode(bytes(row)) for row in rows] == [int(n) % 2**64 for n in numbers]
    assert all((row[:-1] >= 0x80).all() and row[-1] < 0x80 for row in rows)


def test_rows_are_messages_of_equal_length() -> None:
    parts = pb.message(1, [pb.number(2, 5), *pb.numbers(3, np.array([1, 300]))])

    assert [bytes(row).hex() for row in pb.rows(parts, 2)] == ["0a051005188100", "0a05100518ac02"]


def test_ragged_keeps_the_order_within_a_row() -> None:
    ragged = Ragged.of(np.array([2, 0, 2]), np.array([7, 8, 9]), 4)
    assert (ragged.first.tolist(), ragged.values.tolist()) == ([0, 1, 1, 3, 3], [8, 7, 9])


intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), min_size=1, max_size=25)


@given(intervals)
def test_flat_lanes_are_free_of_overlap_and_as_few_as_can_be(spans: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in spans])
    end = start + np.array([d for _, d in spans])

    lanes = _lanes(start, end, nests=False)

    for lane in set(lanes):
        of_lane = sorted((s, e) for s, e, at in zip(start.tolist(), end.tolist(), lanes, strict=True) if at == lane)
        assert all(e <= s for (_, e), (s, _) in itertools.pairwise(of_lane))
    most = max(sum(s <= t < e for s, e in zip(start, end, strict=True)) for t in range(45))
    marks = max(sum(s < t < e or s == e == t for s, e in zip(start, end, strict=True)) for t in range(45))
    assert len(set(lanes)) <= max(most, 1) + (1 if marks else 0)


@given(intervals)
def test_nested_lanes_hold_parentheses_only(spans: list[tuple[int, int]]) -> None:
    start = np.array([s for s, _ in spans])
    end = start + np.array([d for _, d in spans])

    lanes = _lanes(start, end, nests=True)

    for lane in set(lanes):
        of_lane = [(s, e) for s, e, at in zip(start.tolist(), end.tolist(), lanes, strict=True) if at == lane and s < e]
        assert not any(a < c < b < d for a, b in of_lane for c, d in of_lane)
    alone = [(s, e) for s, e in zip(start.tolist(), end.tolist(), strict=True) if s < e]
    if not any(a < c < b < d for a, b in alone for c, d in alone):
        assert set(lanes) == {0}


def _lanes(start: np.ndarray, end: np.ndarray, nests: bool) -> list[int]:
    tracks = Tracks()
    tracks.index("t", Track("t", TrackKind.THREAD, nests=nests))
    track = spread(tracks, np.zeros(len(start), np.int64), start, end)
    return [tracks.all[i].lane for i in track.tolist()]


def test_framing_is_checked_to_the_last_byte(tmp_path: object) -> None:
    path = tmp_path / "t.pftrace"  # type: ignore[operator]
    data = pb.text(1, b"abc") + pb.text(1, b"")
    path.write_bytes(data)
    assert count_packets(path) == 2
    for broken in (data[:-1], data[:3], b"\x12" + data, data + b"\n"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="byte"):
            count_packets(path)
