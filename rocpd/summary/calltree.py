"""Nesting: which range lies inside which, on one thread, whatever the ranges look like.

A range is inside the one that started last of those that contain it as a whole. So ranges that only touch are
neighbours, a range without length belongs to what is open around it, of equal ranges the one with the lower correlation
id is outside, and two ranges of which neither contains the other stand side by side: each keeps its own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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
