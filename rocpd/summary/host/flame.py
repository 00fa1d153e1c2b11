"""Flame graphs of the call tree and of call stacks: as charts, folded stacks (`a;b;c 123`) and speedscope's JSON."""

from __future__ import annotations

import functools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

from rocpd.base.version import __version__
from rocpd.base.visible import visible
from rocpd.chart.model import FlameFrame, Flames
from rocpd.facts.frames import frame_of
from rocpd.facts.rank import LANES, By, Key
from rocpd.schema.rules.steps import folded as folded_text
from rocpd.summary.grouping import in_order, order_of
from rocpd.summary.host.calls import grown, is_lane, trees_of_rank
from rocpd.summary.host.stacks import GPU, TIME, all_stacks, read_stacks_of
from rocpd.summary.reading import DIVISIONS, Reading

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_CPU, _GPU = "CPU", "GPU"
SAMPLES = "samples"
"""The unit of profiles that have no times."""


class FlameProfile(NamedTuple):
    """One flame graph.

    Args:
        labels: whose it is; the frames below all others in folded stacks.
        unit: of whose time the stacks have some [ns]: CPU or GPU; or `SAMPLES`, which they have instead.
        stacks: frames, the outermost first, and what they have of their own.
    """

    labels: list[str]
    unit: str
    stacks: Sequence[tuple[Sequence[str], int]]


Profiles: TypeAlias = Callable[[Reading], Iterator[FlameProfile]]
"""Of an analysis; those with the same labels come one after the other."""

Charts: TypeAlias = Callable[[Reading], Iterator[Flames]]
"""Of an analysis."""


def folded_of(profiles: Profiles, reading: Reading) -> Iterator[str]:
    """Yield one line per stack that has something of its own, as flamegraph.pl and similar tools read it.

    Of several profiles with the same labels it is the first. Raises what `profiles` raises.
    """
    for _, (profile, *_) in groupby(profiles(reading), key=lambda profile: profile.labels):
        for path, time in profile.stacks:
            if time:
                yield f"{';'.join((*profile.labels, *map(_word, path)))} {time}\n"


def speedscope_of(profiles: Profiles, name: str, reading: Reading) -> Iterator[str]:
    """Yield profiles as speedscope's JSON, under a name; raises what `profiles` raises."""
    frames: dict[str, int] = {}
    shown = []
    for labels, unit, stacks in profiles(reading):
        own = [(path, time) for path, time in stacks if time]
        samples = [[frames.setdefault(text, len(frames)) for text in path] for path, _ in own]
        weights = [time for _, time in own]
        if weights:
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


_LEAST = 1 / 2000  # of all: narrower frames are not drawn
_FUNCTIONS = 200


def charts_of(profiles: Profiles, reading: Reading, merged: Callable[[str], str] = folded_text) -> Iterator[Flames]:
    """Yield a chart of each profile that has anything; raises what `profiles` raises. `merged` as of `chart_of`."""
    for labels, unit, stacks in profiles(reading):
        title = ", ".join([*labels, *([f"{unit} time"] if unit != SAMPLES else [])])
        chart = chart_of(title, stacks, unit, merged=merged)
        if chart.total:
            yield chart


def by_function(stacks: Iterable[tuple[Sequence[str], int]]) -> list[tuple[Sequence[str], int]]:
    """Return call stacks with the functions of frames and the names of their files, but no lines.

    >>> by_function([(("/src/app.py(88): main", "__pthread_create_2_1"), 7)])
    [(['main · app.py', '__pthread_create_2_1'], 7)]
    """
    return [([*map(_function, path)], time) for path, time in stacks]


@functools.lru_cache(maxsize=1 << 14)
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
    """Return stacks as a flame graph: each frame as wide as what it and all above it have, the widest first.

    Args:
        title: of the chart.
        stacks: frames, the outermost first, and what they have of their own.
        unit: of profiles.
        least: frames that have a smaller share of all are left out.
        merged: frames around which the same ones are and of which it returns the same are one, of that name: those of
            calls that differ in numbers only, as steps do.
    """
    rows: dict[tuple[int, str], int] = {}
    names: list[str] = []
    own: Counter[int] = Counter()
    for path, value in stacks:
        row = -1
        for name in path:
            row = rows.setdefault((row, merged(name)), len(rows))
            if row == len(names):
                names.append(name)
            elif names[row] != name:
                names[row] = merged(name)
        own[row] += value
    every, above = [own[row] for row in range(len(rows))], [row for row, _ in rows]
    for row in range(len(rows) - 1, -1, -1):
        if above[row] >= 0:
            every[above[row]] += every[row]
    below = defaultdict(list)
    for row in range(len(rows)):
        below[above[row]].append(row)
    total = sum(every[row] for row in below[-1])
    frames, waiting = [], [(row, 0, start) for row, start in _placed(below[-1], every, 0)]
    while waiting:
        row, depth, start = waiting.pop()
        if every[row] > total * least:
            frames.append(FlameFrame(visible(names[row]), depth, start, every[row], own[row]))
            waiting += [(inner, depth + 1, at) for inner, at in reversed(list(_placed(below[row], every, start)))]
    functions = _functions(names, above, every, own)
    return Flames(title, "" if unit == SAMPLES else "ns", total, tuple(frames), functions, unit == _GPU)


def _placed(rows: Sequence[int], values: Sequence[int], start: int) -> Iterator[tuple[int, int]]:
    """Yield rows side by side, the largest first, each with its start."""
    for row in sorted(rows, key=lambda row: -values[row]):
        yield row, start
        start += values[row]


def _functions(
    names: Sequence[str], above: Sequence[int], every: Sequence[int], own: Counter[int]
) -> tuple[tuple[str, int, int], ...]:
    """Return names with most of their own: all that they have, what is recursive once, and their own."""
    around: list[frozenset[str]] = []
    with_inner: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    for row, name in enumerate(names):
        outer = around[above[row]] if above[row] >= 0 else frozenset()
        around.append(outer if name in outer else outer | {name})
        alone[name] += own[row]
        with_inner[name] += 0 if name in outer else every[row]
    return tuple((visible(name), with_inner[name], value) for name, value in alone.most_common(_FUNCTIONS))


def labels_of(reading: Reading, key: Key) -> list[str]:
    """Return the values of a division with the names of its columns."""
    return [f"{field.name} {value}" for field, value in zip(DIVISIONS[reading.by], key, strict=True)]


def _profiles_of_calls(reading: Reading) -> Iterator[FlameProfile]:
    """Yield per tree a profile of CPU time and one of GPU time, without what is nested [ns].

    That of an agent or stream has the GPU time of what was launched there, alone.

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading, reading.each(trees_of_rank))
    for key, tree in in_order(trees):
        paths: dict[int, list[str]] = {-1: []}
        for row, (above, name) in enumerate(tree.paths):
            paths[row] = [*paths[above], names.texts[name] or "?"]
        for unit, place in ((_GPU, 3),) if is_lane(reading, key) else ((_CPU, 2), (_GPU, 3)):
            yield FlameProfile(
                _labels(reading, key), unit, [(paths[row], tree.sums[row][place]) for row in tree.walk()]
            )


def _profiles_of_stacks(reading: Reading) -> Iterator[FlameProfile]:
    """Yield the call stacks of each division and kind, with time on the CPU, then with that of what they launched.

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
"""CPU time of calls; under an agent or stream the GPU time of what was launched there."""

speedscope = partial(speedscope_of, _profiles_of_calls, "rocpd calls")
"""CPU and GPU time of calls."""

folded_stacks = partial(folded_of, _profiles_of_stacks)
"""CPU time of call stacks: below the division what was recorded, calls, samples or functions."""

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
