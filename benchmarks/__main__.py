"""Runs all benchmarks, or those named: `python -m benchmarks federation startup`.

`--tiny` runs them on jobs so small that all take seconds: they come to their end, and their figures mean nothing.
`--against COMMIT` prints instead how long things take with an earlier commit and with this one.
"""

from __future__ import annotations

import argparse
import importlib

from benchmarks import against, measure
from benchmarks.results import recorded

BENCHMARKS = (
    "startup",
    "federation",
    "convert",
    "report",
    "timeline",
    "scale",
    "ranks",
    "questions",
    "many",
    "cluster",
    "recorder",
    "summary",
    "imports",
    "index",
    "counters",
    "growth",
)


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all unless given")
    parser.add_argument("--tiny", action="store_true", help="run each once, on tiny jobs: figures mean nothing")
    parser.add_argument("--against", metavar="COMMIT", help="compare with an earlier commit")
    asked = parser.parse_args()
    if unknown := {*asked.names} - {*BENCHMARKS}:
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    if asked.tiny:
        measure.SIZE = measure.TINY
    if asked.against:
        against.run(asked.against)
        return
    for name in asked.names or BENCHMARKS:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}", flush=True)
        with recorded(name):
            print((module.__doc__ or "").splitlines()[0], end="\n\n", flush=True)
            module.run()


main()
