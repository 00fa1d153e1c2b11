"""Runs all benchmarks, or those named: `python -m benchmarks federation startup`."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = (
    "startup",
    "federation",
    "convert",
    "report",
    "scale",
    "cluster",
    "recorder",
    "summary",
    "imports",
    "index",
    "counters",
)


def main(names: list[str]) -> None:
    """Run the benchmarks in `names`, or all."""
    for name in names or BENCHMARKS:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        module.run()


main(sys.argv[1:])
