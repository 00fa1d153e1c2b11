"""Owns the call tree as flame graphs: folded stacks (`a;b;c 123`) and speedscope's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rocpd.read.names import Names
from rocpd.summary.calls import grown, is_lane
from rocpd.summary.calltree import Node
from rocpd.summary.options import LANES, By
from rocpd.summary.reading import Key, Reading, order_of
from rocpd.version import __version__

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def folded(reading: Reading) -> Iterator[str]:
    """Yield one line per path that has CPU time of its own [ns], as flamegraph.pl and similar tools read it.

    Under an agent or stream it is the GPU time of what was launched there.

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading)
    for key in sorted(trees, key=order_of):
        for path, node in _paths(trees[key]):
            if node.cpu_self:
                words = [*_labels(reading, key), *(_word(names, code) for code in path)]
                yield f"{';'.join(words)} {node.cpu_self}\n"


def speedscope(reading: Reading) -> Iterator[str]:
    """Yield speedscope's JSON: per tree a profile of CPU time and one of GPU time, without what is nested [ns].

    Raises:
        RocpdError: there are no regions.
    """
    names, trees = grown(reading)
    profiles = []
    for key in sorted(trees, key=order_of):
        label = " ".join(_labels(reading, key)) or "all ranks"
        kinds = ("GPU",) if is_lane(reading, key) else ("CPU", "GPU")
        all_kinds = [_profile(trees[key], f"{label}, {kind}", kind == "GPU") for kind in kinds]
        profiles += [profile for profile in all_kinds if profile["samples"]]
    frames = [{"name": "?" if text is None else text} for text in names.texts]
    yield json.dumps(
        {
            "$schema": _SCHEMA,
            "exporter": f"rocpd {__version__}",
            "name": "rocpd calls",
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": profiles,
        },
        ensure_ascii=False,
    )
    yield "\n"


def _profile(tree: Node, name: str, gpu: bool) -> dict[str, object]:
    samples, weights = [], []
    for path, node in _paths(tree):
        weight = node.gpu if gpu else node.cpu_self
        if weight:
            samples.append(path)
            weights.append(weight)
    span = {"type": "sampled", "name": name, "unit": "nanoseconds", "startValue": 0, "endValue": sum(weights)}
    return {**span, "samples": samples, "weights": weights}


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
        return [f"rank {key[0]}", f"{reading.by} {key[1]}" if is_lane(reading, key) else "CPU"]
    return [str(part) for part in key]


def _word(names: Names, code: int) -> str:
    return (names.texts[code] or "?").replace(";", ":").replace("\n", " ")
