"""Owns the tree of calls: regions by path, with their CPU time and the GPU time that they launched.

Inclusive GPU time of a region is that of the operations that it launched, directly and through regions inside it:
the sum of their durations. Trees of threads and ranks with equal paths are added up; --by rank keeps threads apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocpd.errors import RocpdError
from rocpd.federate.identify import Rank
from rocpd.summary.calltree import Node, Range, grow
from rocpd.summary.ops import Names, Ops, read_ops, string_texts
from rocpd.summary.options import By
from rocpd.summary.read import NULL, columns, sound
from rocpd.summary.reading import DIVISIONS, RANK, Key, Reading, order_of
from rocpd.summary.result import Field, Row, Summary, Table
from rocpd.summary.spread import Ints

THREAD = Field("thread", "", "OS thread id, NULL where unknown")

TABLES = {
    "calls": Table(
        "calls",
        "Regions by path, each below the one that it runs in; the longest first.",
        (
            Field("node", "", "number of the row's path, from 1", True),
            Field("parent", "", "node that it runs in, NULL at the top", True),
            Field("depth", "", "how many regions are around it"),
            Field("name", "", "function or message of the marker"),
            Field("calls", "", "regions with this path"),
            Field("cpu_ns", "ns", "their time, regions inside included"),
            Field("cpu_self_ns", "ns", "their time outside of regions inside"),
            Field("gpu_ns", "ns", "operations that they launched, directly or through regions inside"),
            Field("gpu_self_ns", "ns", "operations that they launched themselves", True),
            Field("percent", "%", "cpu_ns by that of all regions at the top"),
        ),
    )
}

_REGIONS = """
SELECT E.stack_id, R.start, R."end", R.id, R.tid, R.name_id, E.category_id FROM rocpd_region R
LEFT JOIN rocpd_event E ON E.id = R.event_id"""
_MESSAGES = """
SELECT R.id, json_extract(E.extdata, '$.message') FROM rocpd_region R JOIN rocpd_event E ON E.id = R.event_id
WHERE E.category_id IN (SELECT id FROM rocpd_string WHERE string GLOB 'MARKER_*' OR string GLOB 'rocm_marker*')
AND json_valid(E.extdata) AND json_extract(E.extdata, '$.message') IS NOT NULL"""


def calls(reading: Reading) -> Iterator[Summary]:
    """Give the tree as a table, from the top down.

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading)
    front = (RANK, THREAD) if reading.by is By.RANK else DIVISIONS[reading.by] if reading.by else ()
    rows: list[Row] = []
    for key in sorted(trees, key=order_of):
        rows += _rows(key, trees[key], names)
    yield Summary(TABLES["calls"], (*front, *TABLES["calls"].fields), rows, tree=True)


def grown(reading: Reading) -> tuple[Names, dict[Key, Node]]:
    """Read all regions; give one tree per division (by rank: per rank and thread).

    Raises:
        RocpdError: there are no regions.
    """
    names, launched, found = Names(), Names(), 0
    trees: dict[Key, Node] = {}
    unlinked = operations = 0
    for rank in reading.ranks():
        ops = read_ops(reading, rank, launched, stacks=True)
        lost, threads = _threads(reading, rank, names, ops)
        unlinked, operations = unlinked + lost, operations + len(ops)
        for thread, ranges in threads:
            known = None if thread == NULL else thread
            key = (rank.number, known) if reading.by is By.RANK else reading.key(rank)
            grow(trees.setdefault(key, Node()), ranges)
            found += len(ranges)
    if not found:
        raise RocpdError("no regions in the selection")
    if unlinked:
        reading.session.note(f"calls: {unlinked} of {operations} operations were launched by no region that is there")
    return names, trees


def _threads(reading: Reading, rank: Rank, names: Names, ops: Ops) -> tuple[int, list[tuple[int, list[Range]]]]:
    """Give the sorted ranges of each thread of a rank, and how many operations belong to none."""
    stack, start, end, row, thread, name, _ = columns(reading.session, rank.number, _REGIONS, 7)
    good = sound(start, end)
    reading.leave_out("regions", int((~good).sum()))
    codes = names.translate(name, string_texts(reading.session, rank.number, name))
    messages = {number: names.code(text) for number, text in reading.session.rows_in(rank.number, _MESSAGES)}
    if messages:
        codes = np.array([messages.get(r, c) for r, c in zip(row.tolist(), codes.tolist(), strict=True)], np.int64)
    order = np.lexsort((row, stack, -np.where(good, end, 0), start))  # of equal ranges the lower id is outside
    order = order[good[order]]
    gpu, lost = _gpu_of(stack, order, ops)
    found = []
    for tid in np.unique(thread[order]).tolist():
        mine = order[thread[order] == tid]
        lists = (column[mine].tolist() for column in (start, end, codes, gpu))
        found.append((tid, list(zip(*lists, strict=True))))
    return lost, found


def _gpu_of(stack: Ints, order: Ints, ops: Ops) -> tuple[Ints, int]:
    """Add the durations of operations to the region that launched them; also count those without.

    Of several regions with one correlation id the first in `order` counts, which is the outermost.
    """
    gpu = np.zeros(len(stack), np.int64)
    order = order[stack[order] > 0]
    order = order[np.argsort(stack[order], kind="stable")]
    if not len(order):
        return gpu, len(ops)
    place = np.minimum(np.searchsorted(stack[order], ops.stack), len(order) - 1)
    hit = (stack[order][place] == ops.stack) & (ops.stack != NULL)
    np.add.at(gpu, order[place[hit]], ops.duration[hit])
    return gpu, int((~hit).sum())


def _rows(key: Key, tree: Node, names: Names) -> Iterator[Row]:
    whole = sum(node.cpu for node in tree.below.values())
    found = _from_the_top(tree, names)
    gpu = [node.gpu for _, _, _, node in found]
    for place in reversed(range(len(found))):
        parent = found[place][0]
        if parent is not None:
            gpu[parent - 1] += gpu[place]
    for number, (parent, depth, name, node) in enumerate(found, 1):
        share = node.cpu * 100 / whole if whole else None
        times = (node.cpu, node.own, gpu[number - 1], node.gpu)
        yield (*key, number, parent, depth, names.texts[name], node.calls, *times, share)


def _from_the_top(tree: Node, names: Names) -> list[tuple[int | None, int, int, Node]]:
    """Give parent's number, depth, name and node, each below its parent; no recursion: stacks can be deep."""
    found: list[tuple[int | None, int, int, Node]] = []
    waiting: list[tuple[int | None, int, int, Node]] = [(None, 0, *item) for item in reversed(_sorted(tree, names))]
    while waiting:
        found.append(waiting.pop())
        _, depth, _, node = found[-1]
        waiting += [(len(found), depth + 1, *item) for item in reversed(_sorted(node, names))]
    return found


def _sorted(node: Node, names: Names) -> list[tuple[int, Node]]:
    return sorted(node.below.items(), key=lambda item: (-item[1].cpu, names.texts[item[0]] or ""))
