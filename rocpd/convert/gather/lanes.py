"""Lanes: slices of one track that overlap and do not nest are spread over as few extra tracks as needed.

Times do not change. The same slices give the same lanes whatever else is in the trace.
"""

from __future__ import annotations

import heapq

import numpy as np

from rocpd.base import Ints
from rocpd.convert.model import Tracks
from rocpd.facts.columns import grouped


def spread(tracks: Tracks, track: Ints, start: Ints, end: Ints) -> Ints:
    """Return the track of each slice: its own if it fits, else an extra lane of it.

    Intervals are half-open: a slice may start where another one ends. A zero-length slice fits anywhere on a track
    that nests, and beside slices that start at the same time on a track that does not.

    Args:
        tracks: gets the extra lanes.
        track: index of the track of each slice; start, end: its interval [ns].
    """
    result = track
    for (index,), rows in grouped([track]):
        nests = tracks.all[index].nests
        # Outer slices first if slices nest; zero-length ones first if they follow each other.
        rows = rows[np.lexsort((-end[rows] if nests else end[rows], start[rows]))]
        s, e = start[rows], end[rows]
        if np.all(s[1:] >= np.maximum.accumulate(e)[:-1]) or (nests and _nests(s[s < e], e[s < e])):
            continue
        lanes = _nested(s.tolist(), e.tolist()) if nests else _flat(s.tolist(), e.tolist())
        if result is track:
            result = track.copy()
        numbers = np.array([tracks.lane(index, lane) for lane in range(max(lanes) + 1)], np.int64)
        result[rows] = numbers[np.array(lanes)]
    return result


def _nests(start: Ints, end: Ints) -> bool:
    """Whether slices, sorted by start and the longer first, nest like parentheses.

    Counts depth over starts and ends; then, level by level, each end must belong to the start before it. Twice as
    fast as a stack.
    """
    count = len(start)
    closing = count - 1 - np.argsort(end[::-1], kind="stable")
    which = np.concatenate([closing, np.arange(count)])
    order = np.argsort(np.concatenate([end[closing], start]), kind="stable")
    starts = order >= count
    depth = np.cumsum(np.where(starts, 1, -1))
    level = depth + ~starts
    pairs = which[order][np.argsort(level.astype(np.uint16) if level.max() < 65536 else level, kind="stable")]
    return bool(np.array_equal(pairs[::2], pairs[1::2]))


def _flat(start: list[int], end: list[int]) -> list[int]:
    """Return the lowest free lane for each slice (interval partitioning)."""
    lanes = []
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for s, e in zip(start, end, strict=True):
        while busy and busy[0][0] <= s:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (e, lane))
        lanes.append(lane)
    return lanes


def _nested(start: list[int], end: list[int]) -> list[int]:
    """Return for each slice the first lane on which it lies within all open slices."""
    lanes = []
    open_ends: list[list[int]] = [[]]
    for s, e in zip(start, end, strict=True):
        lane = 0
        while s < e:
            stack = open_ends[lane]
            while stack and stack[-1] <= s:
                stack.pop()
            if not stack or e <= stack[-1]:
                stack.append(e)
                break
            lane += 1
            if lane == len(open_ends):
                open_ends.append([])
        lanes.append(lane)
    return lanes
