"""Calls and ranges, by path or by name, with their CPU time and the GPU time that they launched; and flame graphs.

The GPU time of a region, inclusive, is the sum of the durations of the operations that it launched, directly and
through regions inside it. --by agent or stream divides it by where it was spent; rows with NULL have CPU time, and the
GPU time of no known agent or stream. By name, a function that runs inside itself counts its time once: the outermost.

A range is inside the latest-started range that contains all of it. So ranges that only touch are neighbours, a range
without length belongs to the range open around it, of equal ranges the one with the lower correlation id is outside,
and two ranges of which neither contains the other stand side by side: each keeps its own time.

In trees, markers whose numbers follow the steps have one name, with # for the number: a thousand steps are one row.
These differ only in numbers, and none comes twice on its thread, as `layer 2` does in each step.
"""

from __future__ import annotations

import json
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rocpd.base import NULL, Ints, Row, by_key
from rocpd.base.texts import visible
from rocpd.base.version import __version__
from rocpd.chart.model import FlameFrame, Flames
from rocpd.facts.columns import Names, different, distinct, grouped, numbered
from rocpd.facts.operations import OperationNames, read_ops
from rocpd.facts.rank import LANES, By, Key, RankReading
from rocpd.facts.regions import (
    RankRegions,
    are_markers,
    depths,
    form_of,
    forms_of_steps,
    frame_of,
    nest_times,
    own_times,
    read_regions,
)
from rocpd.facts.spread import total
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact
from rocpd.schema.rules.launch import launching_regions
from rocpd.schema.rules.steps import folded as folded_text
from rocpd.schema.rules.steps import is_step, without_call
from rocpd.summary.grouping import Sums, in_order, merge, nothing, order_of, percent
from rocpd.summary.host.stacks import GPU, TIME, all_stacks, read_stacks_of
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
        Field("name", "", "function or message of the marker, with # for numbers that follow the steps"),
        Field("calls", "", "regions with this path; NULL, as CPU time, on an agent or stream"),
        Field("cpu_ns", "ns", "their time, regions inside included"),
        Field("cpu_self_ns", "ns", "their time outside of regions inside"),
        Field("gpu_ns", "ns", "operations that they launched, directly or through regions inside"),
        Field("gpu_self_ns", "ns", "operations that they launched themselves", True),
        Field("percent", "%", "cpu_ns (on an agent or stream gpu_ns) by that of all regions at the top"),
        chart="rocpd.summary.plots:calls",
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


class CallTree:
    """Ranges by path: the names of the ranges around them, then their own.

    Attributes:
        paths: row of the path above (-1: none) and name -> row; in the order of their first occurrence.
        sums: for each row, the number of its ranges; their time, the part outside of ranges inside them, and the time
            of the operations that they launched themselves [ns].
    """

    def __init__(self, above: Sequence[int] = (), name: Sequence[int] = (), *sums: Sequence[int]) -> None:
        self.paths = {path: row for row, path in enumerate(zip(above, name, strict=True))}
        self.sums: list[Sequence[int]] = [*zip(*sums, strict=True)]

    def parts(self) -> tuple[list[int], ...]:
        """Return the arguments that make an equal one, as columns, which take a tenth of the bytes of rows."""
        return tuple(map(list, (*zip(*self.paths, strict=True), *zip(*self.sums, strict=True))))

    def add(self, above: int, name: int, values: Sequence[int]) -> int:
        """Add the values of ranges of a path to its sums, and return its row."""
        sums = self.sums
        row = self.paths.setdefault((above, name), len(sums))
        if row == len(sums):
            sums.append(values)
        else:
            sums[row] = tuple(map(operator.add, sums[row], values))
        return row

    def graft(self, other: CallTree, codes: Sequence[int]) -> None:
        """Add another tree; `codes`: numbers of its names in this tree."""
        rows: list[int] = []
        for (above, name), values in zip(other.paths, other.sums, strict=True):
            rows.append(self.add(rows[above] if above >= 0 else -1, codes[name], values))

    def walk(self, order: Callable[[int], Any] | None = None) -> Iterator[int]:
        """Yield all rows, each after the one above it; siblings by a sort key, else in the order of their rows."""
        below = by_key((above, row) for row, (above, _) in enumerate(self.paths))
        waiting = [-1]
        while waiting:
            row = waiting.pop()
            if row >= 0:
                yield row
            waiting += sorted(below.get(row, ()), key=order)[::-1]

    def inclusive_gpu(self) -> list[int]:
        """Return for each row the time of the operations launched by it and by the rows below [ns]."""
        times = [gpu for *_, gpu in self.sums]
        for row, (above, _) in reversed([*enumerate(self.paths)]):
            if above >= 0:
                times[above] += times[row]
        return times

    def launching(self, launched: Mapping[int, int]) -> CallTree:
        """Return the part of the tree that launched operations, directly or below, with the times of these operations.

        Args:
            launched: row -> time of the operations that it launched itself [ns], for rows that launched some.
        """
        paths, part, numbers = [*self.paths], CallTree(), {-1: -1}
        times: Counter[int] = Counter()
        for row, gpu in launched.items():
            while row >= 0:
                times[row] += gpu
                row, _ = paths[row]
        for row in sorted(row for row, gpu in times.items() if gpu):
            (above, name), directly = paths[row], launched.get(row, 0)
            numbers[row] = part.add(numbers[above], name, (0, times[row], directly, directly))
        return part


def calls(reading: Reading) -> Tables:
    """Return the tree as a table, from the top down; or regions by name, wherever they are.

    Raises:
        RocpdError: there are no regions.
    """
    if reading.options.flat:
        yield from functions(reading, "calls")
        return
    yield (answers := reading.each(_read_trees, _TREES).adding(_all_grown))
    _, names, trees, *_ = grown(reading, answers)
    front = (RANK, THREAD) if reading.by is By.RANK else DIVISIONS[reading.by]
    rows = (row for key, tree in in_order(trees) for row in _rows(key, tree, names, is_lane(reading, key)))
    yield Summary(TABLES["calls"], (*front, *TABLES["calls"].fields), rows, tree=True)


def is_lane(reading: Reading, key: Key) -> bool:
    """Whether a tree is that of an agent or stream: its times are those of the operations there."""
    return reading.by in LANES and key[-1] is not None


def grown(reading: Reading, answers: Iterable[tuple[Rank, RankTrees]]) -> RankTrees:
    """Return the trees of all ranks, one per division (by rank: per rank and thread).

    Raises:
        RocpdError: there are no regions.
    """
    every = _all_grown([of_rank for _, of_rank in answers])
    if not every.trees:
        raise nothing("regions")
    _note_unlinked(reading, every.operations, every.unlinked)
    return every


def _note_unlinked(reading: Reading, operations: int, unlinked: int) -> None:
    if unlinked:
        launched = f"{unlinked} of {operations} operations were launched"
        reading.session.note(f"calls: {launched} by no region of the selection")


class RankTrees(NamedTuple):
    """The answer of one rank.

    Args:
        names: names in the trees, with # for numbers of steps.
        texts: what each name stands for: one recorded text, or the name where texts differ.
        trees: trees by division.
        operations: number of operations.
        unlinked: number of those that no region launched.
    """

    names: list[str | None]
    texts: list[str | None]
    trees: dict[Key, CallTree]
    operations: int
    unlinked: int


def _all_grown(ranks: Sequence[RankTrees]) -> RankTrees:
    """Return the trees of several ranks as one answer."""
    names = Names()
    texts: list[str | None] = []
    trees: dict[Key, CallTree] = {}
    forms = {name for rank in ranks for name in rank.names if name and "#" in name}
    for rank in ranks:
        # A rank with one step has no numbers that follow steps: it has the names of the others.
        codes = names.adopt(form if (form := form_of(name or "")) in forms else name for name in rank.names)
        _join(texts, names.texts, codes, rank.texts)
        for key, tree in rank.trees.items():
            trees.setdefault(key, CallTree()).graft(tree, codes)
    operations, unlinked = sum(rank.operations for rank in ranks), sum(rank.unlinked for rank in ranks)
    return RankTrees(names.texts, texts, trees, operations, unlinked)


def _join(
    texts: list[str | None], names: Sequence[str | None], codes: Iterable[int], others: Iterable[str | None]
) -> None:
    """Add other texts with the numbers of their names: of a name with several texts its own remains."""
    for code, text in zip(codes, others, strict=True):
        if code == len(texts):
            texts.append(text)
        elif texts[code] != text:
            texts[code] = names[code]


_TREES = Fact("call trees", 3, (RankTrees, CallTree))


def _read_trees(reading: RankReading) -> RankTrees:
    """Return the trees of one rank, in which markers have one name in all steps."""
    regions, names, texts = _of_all_steps(reading, *read_regions(reading))
    return RankTrees(names, texts, *_trees_of(reading, regions))


def _trees_of(reading: RankReading, regions: RankRegions) -> tuple[dict[Key, CallTree], int, int]:
    """Return the trees of regions, and for each agent or stream that of the regions that launched there.

    Also the number of operations, and of those that none of the regions launched.
    """
    ops = read_ops(reading, OperationNames(), stacks=True)
    launcher = launching_regions(regions.stack, regions.start, regions.end, ops.stack)
    lane = np.where(launcher >= 0, ops.lane(reading.options.by), NULL)
    has_lanes = reading.options.by in LANES and bool((lane != NULL).any())
    chosen = ((launcher >= 0) & (lane == NULL)).nonzero()[0] if has_lanes else (launcher >= 0).nonzero()[0]
    exact = np.int64 if total(ops.duration[chosen]) < 1 << 63 else object
    gpu = np.zeros(len(regions.start), exact)
    np.add.at(gpu, launcher[chosen], ops.duration[chosen])
    trees, rows = _grown(reading, regions, gpu)
    if has_lanes:
        (tree,) = trees.values()  # built once, however many lanes there are
        for (number,), of_lane in grouped([lane]):
            launched: Counter[int] = Counter()
            for region, time in zip(launcher[of_lane].tolist(), ops.duration[of_lane].tolist(), strict=True):
                launched[int(rows[region])] += time
            if number != NULL:
                trees[reading.key(number)] = tree.launching(launched)
    return trees, len(ops), int((launcher < 0).sum())


def _of_all_steps(
    reading: RankReading, regions: RankRegions, names: Names
) -> tuple[RankRegions, list[str | None], list[str | None]]:
    """Return regions whose markers have one name in all steps; these names, and the texts as in `RankTrees`."""
    pattern, merged, shown = is_step(reading.options.step_marker), Names(), list[str | None]()
    markers = regions.name[are_markers(regions, names)]
    forms, texts = forms_of_steps(reading.reader, pattern), [*names.texts]
    for code in distinct(markers).tolist():
        if text := texts[code]:
            texts[code] = form if (form := form_of(text)) in forms else without_call(text)
    codes = merged.adopt(texts)
    _join(shown, merged.texts, codes, names.texts)
    return regions._replace(name=np.array(codes, np.int64)[regions.name]), merged.texts, shown


def _grown(reading: RankReading, regions: RankRegions, gpu: Ints) -> tuple[dict[Key, CallTree], Ints]:
    """Return trees of all regions, with `gpu`: time that each launched [ns]; and the row of each region in its tree."""
    around = nest_times(regions.start, regions.end, regions.thread).around
    length, own_time = regions.end - regions.start, own_times(regions.start, regions.end, around)
    threads, which = different(regions.thread)
    has_trees = reading.options.by is By.RANK  # of threads
    keys = [(reading.rank.number, None if thread == NULL else thread) for thread in threads.tolist()]
    tree = which if has_trees else np.zeros_like(which)
    path, head = _paths(around, tree, regions.name, which)
    exact = np.int64 if total(length) < 1 << 63 and gpu.dtype == np.int64 else object
    sums = np.zeros((4, len(head)), exact)
    for of_paths, values in zip(sums, (np.ones_like(length), length, own_time, gpu), strict=True):
        np.add.at(of_paths, path, values.astype(exact, copy=False))
    above = np.where(around[head] >= 0, path[around[head]], -1)
    trees, row_of = {}, path
    for (number,), rows in grouped([tree[head]]):
        first = int(rows[0])  # the paths of a tree stand together
        columns = (np.maximum(above[rows] - first, -1), regions.name[head[rows]], *sums[:, rows])
        trees[keys[number] if has_trees else reading.key(NULL)] = CallTree(*(column.tolist() for column in columns))
        row_of = np.where(tree == number, path - first, row_of)
    return trees, row_of


def _paths(around: Ints, tree: Ints, name: Ints, thread: Ints) -> tuple[Ints, Ints]:
    """Return the path of each region, numbered by first occurrence thread by thread, and the first region of each."""
    depth, path, count = depths(around), np.zeros(len(around), np.int64), 0
    for _, rows in grouped([depth]):
        outer = around[rows]
        path[rows] = numbered(np.where(outer >= 0, path[outer], tree[rows]), name[rows]) + count
        count = int(path[rows].max()) + 1
    place = np.empty(len(path), np.int64)
    order = np.argsort(thread, kind="stable")
    place[order] = np.arange(len(order))
    first = np.full(count, len(order))
    np.minimum.at(first, path, place)
    number = np.empty(count, np.int64)
    come = np.argsort(first)
    number[come] = np.arange(count)
    return number[path], order[first[come]]


def _rows(key: Key, tree: CallTree, names: list[str | None], is_lane: bool) -> Iterator[Row]:
    """Yield the rows of a tree, each after the one above it, the longest first."""
    paths, gpus = [*tree.paths], tree.inclusive_gpu()
    total_cpu = sum(cpu for (above, _), (_, cpu, *_) in zip(paths, tree.sums, strict=True) if above < 0)
    places: dict[int, tuple[int | None, int]] = {-1: (None, -1)}  # number and depth
    for row in tree.walk(lambda row: (-tree.sums[row][1], names[paths[row][1]] or "")):
        (above, name), (calls, cpu, cpu_self, gpu_self) = paths[row], tree.sums[row]
        parent, depth = places[above]
        places[row] = len(places), depth + 1
        on_cpu = (None, None, None) if is_lane else (calls, cpu, cpu_self)
        node = (len(places) - 1, parent, depth + 1, names[name])
        yield (*key, *node, *on_cpu, gpus[row], gpu_self, percent(cpu, total_cpu))


def functions(reading: Reading, name: str = "functions") -> Tables:
    """Return regions by name, in a table called `name`.

    Raises:
        RocpdError: there are no regions.
    """
    sums, counts = yield from reading.summed(_functions_of_rank, _SUMS, what="regions")
    _note_unlinked(reading, *counts[_OPERATIONS])
    rows = [row for key, of_key in in_order(sums) for row in _function_rows(key, of_key, is_lane(reading, key))]
    fields = (*DIVISIONS[reading.by], *TABLES["functions"].fields)
    yield Summary(replace(TABLES["functions"], name=name), fields, rows)


_SUMS = Fact("functions", 2, (Sums,))
_OPERATIONS = "operations"

_OfNames = tuple[dict[Key, dict[str | None, Sums]], dict[str, Sums]]
"""Sums of one rank by division and name; and of its operations the number, and that of those no region launched."""


def _functions_of_rank(reading: RankReading) -> _OfNames:
    regions, names = read_regions(reading)
    trees, operations, unlinked = _trees_of(reading, regions)
    sums: dict[Key, dict[str | None, Sums]] = {}
    for key, tree in trees.items():
        division = key[:1] if reading.options.by is By.RANK else key  # by rank, each thread has a tree
        merge(sums, {division: {names.texts[code]: of_name for code, of_name in _by_name(tree).items()}})
    return sums, {_OPERATIONS: Sums((operations, unlinked))}


def _by_name(tree: CallTree) -> dict[int, Sums]:
    """Return the sums of the paths of a tree by name: calls, then times on the CPU, then on the GPU [ns]."""
    if not tree.paths:
        return {}
    above, name = np.array([*tree.paths], np.int64).T
    calls, cpu, cpu_self, gpu_self = np.array(tree.sums).T
    is_inside = np.zeros(len(name), bool)  # of a row above it with the same name
    outer = above
    while (outer >= 0).any():
        is_inside |= (outer >= 0) & (name[outer] == name)
        outer = np.where(outer >= 0, above[outer], -1)
    names, which = different(name)
    gpu = np.array(tree.inclusive_gpu())
    sums = np.zeros((5, len(names)), np.result_type(cpu, gpu))
    columns = (calls, np.where(is_inside, 0, cpu), cpu_self, np.where(is_inside, 0, gpu), gpu_self)
    for of_names, values in zip(sums, columns, strict=True):
        np.add.at(of_names, which, values)
    return dict(zip(names.tolist(), map(Sums, zip(*sums.tolist(), strict=True)), strict=True))


def _function_rows(key: Key, sums: Mapping[str | None, Sums], is_lane: bool) -> Iterator[Row]:
    """Yield the rows of a division."""
    self_times = {name: of_name[4 if is_lane else 2] for name, of_name in sums.items()}
    total = sum(self_times.values())
    for name in sorted(sums, key=lambda name: (-self_times[name], name or "")):
        times = (None, None, None, *sums[name][3:]) if is_lane else sums[name]
        yield (*key, name, *times, percent(self_times[name], total))


_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_CPU, _GPU = "CPU", "GPU"
SAMPLES = "samples"
"""The unit of profiles without times."""


class FlameProfile(NamedTuple):
    """One flame graph.

    Args:
        labels: labels of its division; the lowest frames in folded stacks.
        unit: kind of the stacks' time: CPU or GPU [ns]; or `SAMPLES`, if they count samples instead.
        stacks: frames, the outermost first, and the own value of each stack.
    """

    labels: list[str]
    unit: str
    stacks: Sequence[tuple[Sequence[str], int]]


Profiles: TypeAlias = Callable[[Reading], Iterator[FlameProfile]]
"""Profiles of an analysis; those with the same labels come one after the other."""

Charts: TypeAlias = Callable[[Reading], Iterator[Flames]]
"""Charts of an analysis."""


def folded_of(profiles: Profiles, reading: Reading) -> Iterator[str]:
    """Yield one line per stack with an own value, as flamegraph.pl and similar tools read it.

    Of several profiles with the same labels, only the first is written. Raises the errors of `profiles`.
    """
    for _, (profile, *_) in groupby(profiles(reading), key=lambda profile: profile.labels):
        for path, time in profile.stacks:
            if time:
                yield f"{';'.join((*profile.labels, *map(_word, path)))} {time}\n"


def speedscope_of(profiles: Profiles, name: str, reading: Reading) -> Iterator[str]:
    """Yield profiles as speedscope's JSON, under a name; raises the errors of `profiles`."""
    frames: dict[str, int] = {}
    shown = []
    for labels, unit, stacks in profiles(reading):
        timed = [(path, time) for path, time in stacks if time]
        samples = [[frames.setdefault(text, len(frames)) for text in path] for path, _ in timed]
        if weights := [time for _, time in timed]:
            has_times = unit != SAMPLES
            span = {"unit": "nanoseconds" if has_times else "none", "startValue": 0, "endValue": sum(weights)}
            whose = " ".join(labels) or ("all ranks" if has_times else "")
            title = ", ".join(filter(None, (whose, unit)))
            shown.append({"type": "sampled", "name": title, **span, "samples": samples, "weights": weights})
    document = {
        "$schema": _SCHEMA,
        "exporter": f"rocpd {__version__}",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": text} for text in frames]},
        "profiles": shown,
    }
    yield json.dumps(document, ensure_ascii=False)
    yield "\n"


_LEAST = 1 / 2000  # share of all below which frames are not drawn
_FUNCTIONS = 200


def charts_of(profiles: Profiles, reading: Reading, merged: Callable[[str], str] = folded_text) -> Iterator[Flames]:
    """Yield a chart of each profile that is not empty; raises the errors of `profiles`. `merged` as in `chart_of`."""
    for labels, unit, stacks in profiles(reading):
        title = ", ".join([*labels, *([f"{unit} time"] if unit != SAMPLES else [])])
        chart = chart_of(title, stacks, unit, merged=merged)
        if chart.total:
            yield chart


def by_function(stacks: Iterable[tuple[Sequence[str], int]]) -> list[tuple[Sequence[str], int]]:
    """Return call stacks with the functions of frames and the names of their files, without lines.

    >>> by_function([(("/src/app.py(88): main", "__pthread_create_2_1"), 7)])
    [(['main · app.py', '__pthread_create_2_1'], 7)]
    """
    return [([*map(_function, path)], time) for path, time in stacks]


@lru_cache(maxsize=1 << 14)
def _function(text: str) -> str:
    function, file, _ = frame_of(text)
    return f"{function} · {file.rpartition('/')[2]}" if file else function


def chart_of(
    title: str,
    stacks: Sequence[tuple[Sequence[str], int]],
    unit: str,
    least: float = _LEAST,
    merged: Callable[[str], str] = folded_text,
) -> Flames:
    """Return stacks as a flame graph: a frame is as wide as its value and those of all frames above it, widest first.

    Args:
        title: title of the chart.
        stacks: frames, the outermost first, and the own value of each stack.
        unit: unit of profiles.
        least: share of all below which frames are left out.
        merged: returns a name; frames with the same surroundings and the same such name become one: those of calls that
            differ only in numbers, as steps do.
    """
    rows: dict[tuple[int, str], int] = {}
    names: list[str] = []
    own_values: Counter[int] = Counter()
    for path, value in stacks:
        row = -1
        for name in path:
            row = rows.setdefault((row, merged(name)), len(rows))
            if row == len(names):
                names.append(name)
            elif names[row] != name:
                names[row] = merged(name)
        own_values[row] += value
    totals, above = [own_values[row] for row in range(len(rows))], [row for row, _ in rows]
    for row in range(len(rows) - 1, -1, -1):
        if above[row] >= 0:
            totals[above[row]] += totals[row]
    below = defaultdict(list, by_key((outer, row) for row, outer in enumerate(above)))
    total = sum(totals[row] for row in below[-1])
    frames, waiting = [], [(row, 0, start) for row, start in _placed(below[-1], totals, 0)]
    while waiting:
        row, depth, start = waiting.pop()
        if totals[row] > total * least:
            frames.append(FlameFrame(visible(names[row]), depth, start, totals[row], own_values[row]))
            waiting += [(inner, depth + 1, at) for inner, at in reversed(list(_placed(below[row], totals, start)))]
    functions = _functions(names, above, totals, own_values)
    return Flames(title, "" if unit == SAMPLES else "ns", total, tuple(frames), functions, unit == _GPU)


def _placed(rows: Sequence[int], values: Sequence[int], start: int) -> Iterator[tuple[int, int]]:
    """Yield rows side by side, the largest first, each with its start."""
    for row in sorted(rows, key=lambda row: -values[row]):
        yield row, start
        start += values[row]


def _functions(
    names: Sequence[str], above: Sequence[int], totals: Sequence[int], own_values: Counter[int]
) -> tuple[tuple[str, int, int], ...]:
    """Return the names with the largest own values: total, with recursion counted once, and own value."""
    around: list[frozenset[str]] = []
    with_inner: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for row, name in enumerate(names):
        outer = around[above[row]] if above[row] >= 0 else frozenset()
        around.append(outer if name in outer else outer | {name})
        alone[name] += own_values[row]
        with_inner[name] += 0 if name in outer else totals[row]
    return tuple((visible(name), with_inner[name], value) for name, value in alone.most_common(_FUNCTIONS))


def labels_of(reading: Reading, key: Key) -> list[str]:
    """Return the values of a division with the names of its columns."""
    return [f"{field.name} {value}" for field, value in zip(DIVISIONS[reading.by], key, strict=True)]


def _profiles_of_calls(reading: Reading) -> Iterator[FlameProfile]:
    """Yield for each tree a profile of CPU time and one of GPU time, each without nested time [ns].

    The tree of an agent or stream has only the GPU time of operations launched there.

    Raises:
        RocpdError: there are no regions.
    """
    _, names, trees, *_ = grown(reading, reading.each(_read_trees, _TREES))
    for key, tree in in_order(trees):
        paths: dict[int, list[str]] = {-1: []}
        for row, (above, name) in enumerate(tree.paths):
            paths[row] = [*paths[above], names[name] or "?"]
        for unit, place in ((_GPU, 3),) if is_lane(reading, key) else ((_CPU, 2), (_GPU, 3)):
            stacks = [(paths[row], tree.sums[row][place]) for row in tree.walk()]
            yield FlameProfile(_labels(reading, key), unit, stacks)


def _profiles_of_stacks(reading: Reading) -> Iterator[FlameProfile]:
    """Yield the call stacks of each division and kind, with CPU time, then with the time of launched operations.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    times, _ = all_stacks(reading.each(read_stacks_of))
    for key, kind in sorted(times, key=lambda pair: (order_of(pair[0]), pair[1])):
        paths = times[key, kind].items()
        for unit, place in ((_CPU, TIME), (_GPU, GPU)):
            yield FlameProfile([*labels_of(reading, key), kind], unit, [(path, sums[place]) for path, sums in paths])


def _profiles_of_functions(reading: Reading) -> Iterator[FlameProfile]:
    return (profile._replace(stacks=by_function(profile.stacks)) for profile in _profiles_of_stacks(reading))


charts = partial(charts_of, _profiles_of_calls)
"""Charts of CPU and GPU time of calls."""

charts_of_stacks = partial(charts_of, _profiles_of_functions, merged=str)
"""Charts of CPU and GPU time of call stacks by function, kind by kind."""

folded = partial(folded_of, _profiles_of_calls)
"""CPU time of calls; for an agent or stream, the GPU time of operations launched there."""

speedscope = partial(speedscope_of, _profiles_of_calls, "rocpd calls")
"""CPU and GPU time of calls."""

folded_stacks = partial(folded_of, _profiles_of_stacks)
"""CPU time of call stacks, by division, then by kind: calls, samples or functions."""

speedscope_stacks = partial(speedscope_of, _profiles_of_stacks, "rocpd stacks")
"""CPU and GPU time of call stacks, kind by kind."""


def _labels(reading: Reading, key: Key) -> list[str]:
    if reading.by is By.RANK:
        return [f"rank {key[0]}", "unknown thread" if key[1] is None else f"thread {key[1]}"]
    if reading.by in LANES:
        return [f"rank {key[0]}", f"{reading.by} {key[1]}" if is_lane(reading, key) else _CPU]
    return [str(part) for part in key]


def _word(text: str) -> str:
    return text.replace(";", ":").replace("\n", " ")
