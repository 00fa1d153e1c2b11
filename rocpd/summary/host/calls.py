"""The tree of calls: regions by path, with their CPU time and the GPU time that they launched.

Inclusive GPU time of a region is that of the operations that it launched, directly and through regions inside it:
the sum of their durations. Trees of threads and ranks with equal paths are added up; --by rank keeps threads apart.
--by agent or stream divides GPU time by where it was spent; rows of NULL have CPU time, and GPU time of no known one.

Nesting: which range lies inside which, on one thread, whatever the ranges look like.

A range is inside the one that started last of those that contain it as a whole. So ranges that only touch are
neighbours, a range without length belongs to what is open around it, of equal ranges the one with the lower correlation
id is outside, and two ranges of which neither contains the other stand side by side: each keeps its own time.

Calls and ranges by name, wherever they lie: time with and without what runs inside them.

The tree of `calls`, added up by name. A function that runs inside itself counts its time once: that of the outermost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rocpd.base.types import NULL, Ints, Row
from rocpd.facts.columns import Names, grouped
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import LANES, By, Key, RankReading
from rocpd.facts.regions import RankRegions, read_regions
from rocpd.facts.spread import total
from rocpd.federate.open.identify import Rank
from rocpd.schema.rules.launch import launching_regions
from rocpd.summary.grouping import Sums, in_order, merge, nothing, percent
from rocpd.summary.reading import DIVISIONS, RANK, Reading, Tables
from rocpd.summary.result import Field, Summary, by_name, table_of

THREAD = Field("thread", "", "OS thread id, NULL where unknown")

TABLES = by_name(
    table_of(
        "calls",
        "Regions by path, each below the one that it runs in; the longest first.",
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
    table_of(
        "functions",
        "Calls and ranges by name; the one with most time of its own first.",
        Field("name", "", "function or message of the marker"),
        Field("calls", "", "regions of this name; NULL, as CPU time, on an agent or stream"),
        Field("cpu_ns", "ns", "their time, regions inside included; inside a region of the same name once"),
        Field("cpu_self_ns", "ns", "their time outside of regions inside"),
        Field("gpu_ns", "ns", "operations that they launched, directly or through regions inside"),
        Field("gpu_self_ns", "ns", "operations that they launched themselves"),
        Field("percent", "%", "cpu_self_ns (on an agent or stream gpu_self_ns) by that of all", is_share=True),
    ),
)

Range: TypeAlias = tuple[int, int, int, int]
"""Start and end [ns], number of the name, time of the operations that it launched [ns]."""

Flat: TypeAlias = list[tuple[int, int, int, int, int, int]]
"""A tree as rows, each after the one above it: number of that row (-1: none), name, and what a `Node` holds."""


@dataclass(slots=True)
class Node:
    """All ranges with one path of names.

    Args:
        calls: ranges.
        cpu: their time, that of ranges inside included [ns].
        cpu_self: their time outside of ranges inside them [ns].
        gpu: time of the operations that they launched themselves [ns].
    """

    calls: int = 0
    cpu: int = 0
    cpu_self: int = 0
    gpu: int = 0
    below: dict[int, Node] = field(default_factory=dict)

    def child(self, name: int) -> Node:
        """Return the node below with a name; a new one is made."""
        node = self.below.get(name)
        if node is None:
            node = self.below[name] = Node()
        return node


@dataclass(slots=True)
class _Open:
    """A range that has started: its node, its end [ns], how far ranges inside cover it [ns]."""

    node: Node
    end: int
    covered: int


def grow(root: Node, ranges: Iterable[Range]) -> list[Node]:
    """Add the ranges of one thread to a tree, and return the node of each.

    Args:
        root: the tree.
        ranges: outer ones first: sorted by start, then the longest first.
    """
    nodes: list[Node] = []
    opened: list[_Open] = []
    crossed = False
    for start, end, name, gpu in ranges:
        while opened and opened[-1].end <= start:
            opened.pop()
        if crossed:  # badly nested ranges end in any order
            opened = [item for item in opened if item.end > start]
            crossed = len(opened) > 1
        outer = opened[-1] if opened else None
        if outer is not None and outer.end < end:
            crossed = True
            outer = next((item for item in reversed(opened) if item.end >= end), None)
        node = (outer.node if outer is not None else root).child(name)
        length = end - start
        node.calls += 1
        node.cpu += length
        node.cpu_self += length
        node.gpu += gpu
        if outer is not None and end > outer.covered:
            # Neighbours may overlap each other: time that both cover is taken from the outer range once.
            outer.node.cpu_self -= end - max(start, outer.covered)
            outer.covered = end
        if length:
            opened.append(_Open(node, end, start))
        nodes.append(node)
    return nodes


def walk(root: Node, order: Callable[[tuple[int, Node]], Any] | None = None) -> Iterator[tuple[int, int, Node]]:
    """Yield the nodes of a tree, each after the one above it: number of that one (-1: none), name, node.

    Args:
        root: the tree.
        order: sort key of (name, node) among the children of a node; None: as they came.
    """
    count = 0
    waiting = [(-1, -1, root)]
    while waiting:
        above, name, node = waiting.pop()
        if node is not root:
            yield above, name, node
            count += 1
        children = sorted(node.below.items(), key=order) if order else list(node.below.items())
        waiting += [(count - 1, name, below) for name, below in reversed(children)]


def flat(root: Node, order: Callable[[tuple[int, Node]], Any] | None = None) -> Flat:
    """Return a tree as rows, which can be pickled however deep it is; arguments as of `walk`."""
    return [(above, name, node.calls, node.cpu, node.cpu_self, node.gpu) for above, name, node in walk(root, order)]


def inclusive_gpu(rows: Flat) -> list[int]:
    """Return for each row of a tree the time of the operations launched by it and by those below [ns]."""
    times = [gpu for *_, gpu in rows]
    for row in reversed(range(len(rows))):
        if rows[row][0] >= 0:
            times[rows[row][0]] += times[row]
    return times


def graft(root: Node, rows: Flat, codes: Sequence[int]) -> None:
    """Add a tree that became rows to another; `codes` are the other's numbers of its names."""
    nodes: list[Node] = []
    for above, name, calls, cpu, cpu_self, gpu in rows:
        node = (root if above < 0 else nodes[above]).child(codes[name])
        node.calls += calls
        node.cpu += cpu
        node.cpu_self += cpu_self
        node.gpu += gpu
        nodes.append(node)


def launching(nodes: Sequence[tuple[int, int, Node]], launched: Mapping[int, int]) -> Flat:
    """Return the part of a tree that launched operations, directly or below; times are those of the operations.

    Args:
        nodes: the tree, as `walk` yields it.
        launched: row of a node -> time of the operations that it launched itself [ns], for those that launched some.
    """
    times: dict[int, int] = {}
    for row, gpu in launched.items():
        while row >= 0:
            times[row] = times.get(row, 0) + gpu
            row, *_ = nodes[row]
    part: Flat = []
    numbers = {-1: -1}
    for row in sorted(row for row, gpu in times.items() if gpu):
        above, name, _ = nodes[row]
        numbers[row] = len(part)
        own = launched.get(row, 0)
        part.append((numbers[above], name, 0, times[row], own, own))
    return part


def calls(reading: Reading) -> Tables:
    """Return the tree as a table, from the top down.

    Raises:
        RocpdError: there are no regions.
    """
    yield (answers := reading.each(trees_of_rank))
    names, trees = grown(reading, answers)
    front = (RANK, THREAD) if reading.by is By.RANK else DIVISIONS[reading.by]
    rows: list[Row] = []
    for key, tree in in_order(trees):
        rows += _rows(key, tree, names, is_lane(reading, key))
    yield Summary(TABLES["calls"], (*front, *TABLES["calls"].fields), rows, tree=True)


def is_lane(reading: Reading, key: Key) -> bool:
    """Whether a tree is that of an agent or stream: its times are those of what was launched there."""
    return reading.by in LANES and key[-1] is not None


def grown(reading: Reading, answers: Iterable[tuple[Rank, RankTrees]]) -> tuple[Names, dict[Key, Node]]:
    """Return one tree per division (by rank: per rank and thread) of the trees of ranks.

    Raises:
        RocpdError: there are no regions.
    """
    names = Names()
    trees: dict[Key, Node] = {}
    unlinked = operations = 0
    for _, rank in answers:
        unlinked, operations = unlinked + rank.unlinked, operations + rank.operations
        codes = names.adopt(rank.names)
        for key, rows in rank.trees.items():
            graft(trees.setdefault(key, Node()), rows, codes)
    if not trees:
        raise nothing("regions")
    if unlinked:
        reading.session.note(
            f"calls: {unlinked} of {operations} operations were launched by no region of the selection"
        )
    return names, trees


class RankTrees(NamedTuple):
    """What one rank adds: names, trees by division, operations, and how many of them no region launched."""

    names: list[str | None]
    trees: dict[Key, Flat]
    operations: int
    unlinked: int


def trees_of_rank(reading: RankReading) -> RankTrees:
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
    return RankTrees(names.texts, trees, len(ops), int((~is_linked).sum()))


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
        yield (*key, *node, *on_cpu, gpu, gpu_self, percent(cpu, total_cpu))


def functions(reading: Reading) -> Tables:
    """Return regions by name.

    Raises:
        RocpdError: there are no regions.
    """
    yield (answers := reading.each(trees_of_rank))
    names, trees = grown(reading, answers)
    sums: dict[Key, dict[int, Sums]] = {}
    lanes: dict[Key, bool] = {}
    for key, tree in trees.items():
        merged = key[:1] if reading.by is By.RANK else key  # by rank the trees of threads are apart
        lanes[merged] = is_lane(reading, key)
        _add(sums.setdefault(merged, {}), tree)
    rows = [row for key, of_key in in_order(sums) for row in _function_rows(key, of_key, names.texts, lanes[key])]
    fields = (*DIVISIONS[reading.by], *TABLES["functions"].fields)
    yield Summary(TABLES["functions"], fields, rows)


def _add(sums: dict[int, Sums], tree: Node) -> None:
    """Add the nodes of a tree to the sums of their names: calls, and times [ns], on the CPU, then on the GPU."""
    rows = flat(tree)
    for row, gpu in zip(rows, inclusive_gpu(rows), strict=True):
        above, name, calls, cpu, cpu_self, gpu_self = row
        cpu, gpu = (0, 0) if _is_inside(rows, above, name) else (cpu, gpu)
        merge(sums, {name: Sums((calls, cpu, cpu_self, gpu, gpu_self))})


def _is_inside(rows: Flat, above: int, name: int) -> bool:
    """Whether a node of a name is above, or is the node `above`."""
    while above >= 0:
        if rows[above][1] == name:
            return True
        above = rows[above][0]
    return False


def _function_rows(key: Key, sums: Mapping[int, Sums], texts: list[str | None], is_lane: bool) -> Iterator[Row]:
    """Yield the rows of a division."""
    own = {name: of_name[4 if is_lane else 2] for name, of_name in sums.items()}
    total = sum(own.values())
    for name in sorted(sums, key=lambda name: (-own[name], texts[name] or "")):
        times = (None, None, None, *sums[name][3:]) if is_lane else sums[name]
        yield (*key, texts[name], *times, percent(own[name], total))
