"""The tree of calls: regions by path, with their CPU time and the GPU time that they launched.

Inclusive GPU time of a region is that of the operations that it launched, directly and through regions inside it:
the sum of their durations. Trees of threads and ranks with equal paths are added up; --by rank keeps threads apart.
--by agent or stream divides GPU time by where it was spent; rows of NULL have CPU time, and GPU time of no known one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.groups import grouped
from rocpd.read.names import Names
from rocpd.summary.calltree import Flat, Node, flat, graft, grow, inclusive_gpu, launching, walk
from rocpd.summary.ops import OperationNames, read_ops
from rocpd.summary.options import LANES, By
from rocpd.summary.reading import DIVISIONS, RANK, Key, RankReading, Reading, order_of
from rocpd.summary.regions import RankRegions, read_regions
from rocpd.summary.result import Field, Summary, TableDefinition
from rocpd.summary.spread import total
from rocpd.trace.launch import launching_regions
from rocpd.types import NULL, Ints, Row

THREAD = Field("thread", "", "OS thread id, NULL where unknown")

TABLES = {
    "calls": TableDefinition(
        "calls",
        "Regions by path, each below the one that it runs in; the longest first.",
        (
            Field("node", "", "number of the row's path, from 1", True),
            Field("parent", "", "node that it runs in, NULL at the top", True),
            Field("depth", "", "how many regions are around it"),
            Field("name", "", "function or message of the marker"),
            Field("calls", "", "regions with this path; NULL, as CPU time, on an agent or stream"),
            Field("cpu_ns", "ns", "their time, regions inside included"),
            Field("cpu_self_ns", "ns", "their time outside of regions inside"),
            Field("gpu_ns", "ns", "operations that they launched, directly or through regions inside"),
            Field("gpu_self_ns", "ns", "operations that they launched themselves", True),
            Field("percent", "%", "cpu_ns (on an agent or stream gpu_ns) by that of all regions at the top"),
        ),
    )
}


def calls(reading: Reading) -> Iterator[Summary]:
    """Return the tree as a table, from the top down.

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading)
    front = (RANK, THREAD) if reading.by is By.RANK else DIVISIONS[reading.by]
    rows: list[Row] = []
    for key in sorted(trees, key=order_of):
        rows += _rows(key, trees[key], names, is_lane(reading, key))
    yield Summary(TABLES["calls"], (*front, *TABLES["calls"].fields), rows, tree=True)


def is_lane(reading: Reading, key: Key) -> bool:
    """Whether a tree is that of an agent or stream: its times are those of what was launched there."""
    return reading.by in LANES and key[-1] is not None


def grown(reading: Reading) -> tuple[Names, dict[Key, Node]]:
    """Read all regions; return one tree per division (by rank: per rank and thread).

    Raises:
        RocpdError: there are no regions.
    """
    names = Names()
    trees: dict[Key, Node] = {}
    unlinked = operations = 0
    for _, rank in reading.each(_of_rank):
        unlinked, operations = unlinked + rank.unlinked, operations + rank.operations
        codes = names.adopt(rank.names)
        for key, rows in rank.trees.items():
            graft(trees.setdefault(key, Node()), rows, codes)
    if not trees:
        raise RocpdError("no regions in the selection")
    if unlinked:
        reading.session.note(
            f"calls: {unlinked} of {operations} operations were launched by no region of the selection"
        )
    return names, trees


class _Rank(NamedTuple):
    """What one rank adds: names, trees by division, operations, and how many of them no region launched."""

    names: list[str | None]
    trees: dict[Key, Flat]
    operations: int
    unlinked: int


def _of_rank(reading: RankReading) -> _Rank:
    """Return the trees of one rank: of all regions, and by agent or stream of those that launched something there."""
    regions, names = read_regions(reading)
    ops = read_ops(reading, OperationNames(), stacks=True)
    launcher = launching_regions(regions.stack, regions.start, regions.end, ops.stack)
    is_linked = launcher >= 0
    lane = np.where(is_linked, ops.lane(reading.options.by), NULL)
    has_lanes = reading.options.by in LANES and bool((lane != NULL).any())
    chosen = np.flatnonzero(is_linked & (lane == NULL)) if has_lanes else np.flatnonzero(is_linked)
    exact = np.int64 if total(ops.duration[chosen]) < 1 << 63 else object
    gpu = np.zeros(len(regions.start), exact)
    np.add.at(gpu, launcher[chosen], ops.duration[chosen])
    grown_trees, nodes = _grown(reading, regions, gpu)
    trees = {key: flat(tree) for key, tree in grown_trees.items()}
    if has_lanes:
        trees |= _by_lane(reading, grown_trees, [nodes[region] for region in launcher.tolist()], ops.duration, lane)
    return _Rank(names.texts, trees, len(ops), int((~is_linked).sum()))


def _grown(reading: RankReading, regions: RankRegions, gpu: Ints) -> tuple[dict[Key, Node], list[Node]]:
    """Return trees of all regions, each of which launched `gpu` ns, and the node of each region."""
    trees: dict[Key, Node] = {}
    nodes = np.empty(len(gpu), object)
    for (thread,), rows in grouped([regions.thread]):
        known = None if thread == NULL else thread
        key = (reading.rank.number, known) if reading.options.by is By.RANK else reading.key(NULL)
        lists = (column[rows].tolist() for column in (regions.start, regions.end, regions.name, gpu))
        nodes[rows] = grow(trees.setdefault(key, Node()), zip(*lists, strict=True))
    return trees, nodes.tolist()


def _by_lane(
    reading: RankReading, trees: dict[Key, Node], launcher: Sequence[Node], duration: Ints, lane: Ints
) -> dict[Key, Flat]:
    """Return the trees of each agent or stream: the part of the whole tree that launched something there.

    Args:
        reading: of the rank.
        trees: the whole tree, of all threads.
        launcher: of each operation, the node of the region that launched it; any one where lane is NULL.
        duration: of each operation [ns].
        lane: its agent or stream, NULL where that or the region is not known.
    """
    (tree,) = trees.values()
    walked = list(walk(tree))
    row_of = {id(node): row for row, (_, _, node) in enumerate(walked)}
    by_lane: dict[Key, Flat] = {}
    for (number,), operations in grouped([lane]):
        if number != NULL:
            launched: Counter[int] = Counter()
            for operation, time in zip(operations.tolist(), duration[operations].tolist(), strict=True):
                launched[row_of[id(launcher[operation])]] += time
            by_lane[reading.key(number)] = launching(walked, launched)
    return by_lane


def _rows(key: Key, tree: Node, names: Names, is_lane: bool) -> Iterator[Row]:
    """Yield the rows of a tree, each after the one above it, the longest first."""
    total_cpu = sum(node.cpu for node in tree.below.values())
    rows = flat(tree, lambda item: (-item[1].cpu, names.texts[item[0]] or ""))
    depths: list[int] = []
    for row, gpu in zip(rows, inclusive_gpu(rows), strict=True):
        above, name, calls, cpu, cpu_self, gpu_self = row
        depths.append(depths[above] + 1 if above >= 0 else 0)
        node = (len(depths), above + 1 or None, depths[-1], names.texts[name])
        on_cpu = (None, None, None) if is_lane else (calls, cpu, cpu_self)
        yield (*key, *node, *on_cpu, gpu, gpu_self, cpu * 100 / total_cpu if total_cpu else None)
