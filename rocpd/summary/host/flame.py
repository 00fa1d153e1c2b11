"""Owns flame graphs of the call tree and of call stacks: folded stacks (`a;b;c 123`) and speedscope's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rocpd.base.version import __version__
from rocpd.facts.columns import Names
from rocpd.facts.rank import LANES, By, Key
from rocpd.summary.grouping import order_of
from rocpd.summary.host.calls import Node, grown, is_lane, trees_of_rank
from rocpd.summary.host.stacks import all_stacks, read_stacks_of
from rocpd.summary.reading import DIVISIONS, Reading

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_CPU, _GPU = "CPU", "GPU"


class FlameProfile(NamedTuple):
    """One flame graph.

    Args:
        labels: whose it is; the frames below all others in folded stacks.
        unit: of whose time the stacks have some [ns]: CPU or GPU; or `samples`, which they have instead.
        stacks: frames, the outermost first, and what they have of their own.
    """

    labels: list[str]
    unit: str
    stacks: list[tuple[list[str], int]]


def folded(reading: Reading) -> Iterator[str]:
    """Yield one line per path of calls that has CPU time of its own [ns], as flamegraph.pl and similar tools read it.

    Under an agent or stream it is the GPU time of what was launched there.

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading, reading.each(trees_of_rank))
    for key in sorted(trees, key=order_of):
        stacks = [(_texts(names, path), node.cpu_self) for path, node in _paths(trees[key])]
        yield from folded_lines(FlameProfile(_labels(reading, key), _CPU, stacks))


def folded_stacks(reading: Reading) -> Iterator[str]:
    """Yield the same of call stacks: below the division what was recorded, calls, samples or functions.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    for profile in _profiles_of_stacks(reading):
        if profile.unit == _CPU:
            yield from folded_lines(profile)


def speedscope(reading: Reading) -> Iterator[str]:
    """Yield speedscope's JSON: per tree a profile of CPU time and one of GPU time, without what is nested [ns].

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading, reading.each(trees_of_rank))
    profiles = []
    for key in sorted(trees, key=order_of):
        paths = [(_texts(names, path), node) for path, node in _paths(trees[key])]
        labels = _labels(reading, key) or ["all ranks"]
        if not is_lane(reading, key):
            profiles.append(FlameProfile(labels, _CPU, [(path, node.cpu_self) for path, node in paths]))
        profiles.append(FlameProfile(labels, _GPU, [(path, node.gpu) for path, node in paths]))
    yield from speedscope_json("rocpd calls", profiles)


def speedscope_stacks(reading: Reading) -> Iterator[str]:
    """Yield the same of call stacks, kind by kind.

    Raises:
        RocpdError: no call stacks were recorded.
    """
    yield from speedscope_json("rocpd stacks", _profiles_of_stacks(reading))


def _profiles_of_stacks(reading: Reading) -> Iterator[FlameProfile]:
    """Yield the call stacks of each division and kind, with time on the CPU, then with that of what they launched."""
    times, _ = all_stacks(reading.each(read_stacks_of))
    for key, kind in sorted(times, key=lambda pair: (order_of(pair[0]), pair[1])):
        paths = times[key, kind]
        labels = [f"{field.name} {value}" for field, value in zip(DIVISIONS[reading.by], key, strict=True)]
        yield FlameProfile([*labels, kind], _CPU, [(list(path), time.time) for path, time in paths.items()])
        yield FlameProfile([*labels, kind], _GPU, [(list(path), time.gpu) for path, time in paths.items()])


def folded_lines(profile: FlameProfile) -> Iterator[str]:
    """Yield a profile as folded stacks, those that have nothing of their own left out."""
    for path, time in profile.stacks:
        if time:
            yield f"{';'.join((*profile.labels, *map(_word, path)))} {time}\n"


def speedscope_json(name: str, profiles: Iterable[FlameProfile]) -> Iterator[str]:
    """Yield profiles as speedscope's JSON, under a name."""
    frames: dict[str, int] = {}
    shown = []
    for labels, unit, stacks in profiles:
        own = [(path, time) for path, time in stacks if time]
        samples = [[frames.setdefault(text, len(frames)) for text in path] for path, _ in own]
        weights = [time for _, time in own]
        if weights:
            unit_name = "none" if unit == "samples" else "nanoseconds"
            span = {"unit": unit_name, "startValue": 0, "endValue": sum(weights)}
            title = ", ".join(filter(None, (" ".join(labels), unit)))
            shown.append({"type": "sampled", "name": title, **span, "samples": samples, "weights": weights})
    yield json.dumps(
        {
            "$schema": _SCHEMA,
            "exporter": f"rocpd {__version__}",
            "name": name,
            "activeProfileIndex": 0,
            "shared": {"frames": [{"name": text} for text in frames]},
            "profiles": shown,
        },
        ensure_ascii=False,
    )
    yield "\n"


def _paths(tree: Node) -> Iterator[tuple[list[int], Node]]:
    """Yield each node with its path, outer ones first, in the order in which paths were first seen."""
    waiting = [([code], node) for code, node in reversed(tree.below.items())]
    while waiting:
        path, node = waiting.pop()
        yield path, node
        waiting += [([*path, code], below) for code, below in reversed(node.below.items())]


def _labels(reading: Reading, key: Key) -> list[str]:
    if reading.by is By.RANK:
        return [f"rank {key[0]}", "unknown thread" if key[1] is None else f"thread {key[1]}"]
    if reading.by in LANES:
        return [f"rank {key[0]}", f"{reading.by} {key[1]}" if is_lane(reading, key) else _CPU]
    return [str(part) for part in key]


def _texts(names: Names, path: list[int]) -> list[str]:
    return [names.texts[code] or "?" for code in path]


def _word(text: str) -> str:
    return text.replace(";", ":").replace("\n", " ")
