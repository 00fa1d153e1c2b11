"""How long a command takes to start, against importing what it stands on."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import cpu_seconds, job, medians


def run() -> None:
    """Print `rocpd --help` against `import typer`, and one query against importing its libraries."""
    file = job(1, 3000)[0]
    rocpd = str(Path(sys.executable).with_name("rocpd"))
    actions = {
        "import typer": _process(sys.executable, "-c", "import typer"),
        "rocpd --help": _process(rocpd, "--help"),
        "import typer, apsw, sqlglot": _process(sys.executable, "-c", "import typer, apsw, sqlglot"),
        "rocpd query": _process(rocpd, "query", "select * from top_kernels", str(file)),
    }
    times = medians(actions, runs=9)
    for name, value in times.items():
        print(f"{name:30} {value * 1000:7.1f} ms")
    print(f"--help is {times['rocpd --help'] / times['import typer']:.2f} x `import typer` (bar: 2)")
    base = times["import typer, apsw, sqlglot"]
    print(f"query is {times['rocpd query'] / base:.2f} x `import typer, apsw, sqlglot` (bar: 2)")
    _small_file(rocpd, str(file))


def _small_file(rocpd: str, file: str) -> None:
    """Print commands on one small file against importing what they stand on."""
    base = "import typer, apsw, numpy"
    with tempfile.TemporaryDirectory() as out:
        formats = {name: ("convert", "-f", name, "-d", out, "--force") for name in ("csv", "pftrace", "otf2")}
        words = {"query": ("query", "select * from top_kernels"), **formats}
        commands = {name: _process(rocpd, *given, file) for name, given in words.items()}
        times = medians({base: _process(sys.executable, "-c", base), **commands}, 9, cpu_seconds)
    print(f"\nCPU of one file of 3,000 events; `{base}` takes {times[base] * 1000:.1f} ms")
    for name in commands:
        print(f"{name:30} {times[name] * 1000:7.1f} ms, {times[name] / times[base]:.2f} x that (bar: 1.5)")


def _process(*command: str) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)
