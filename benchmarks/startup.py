"""How long a command takes to start, against importing what it stands on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import job, medians


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


def _process(*command: str) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)
