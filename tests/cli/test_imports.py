"""Commands import only what they use: on a small file, importing takes longer than the work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
from rocpd.cli import run
code = run(sys.argv[1:])
sys.stderr.write("".join(f"{name}\\n" for name in sys.modules))
sys.exit(code)
"""
HEAVY = {
    "asyncio",
    "concurrent.futures",
    "decimal",
    "duckdb",
    "email",
    "gzip",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "numpy.ma",
    "msgspec",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich",
    "socket",
    "sqlglot",
    "tempfile",
    "yaml",
}


@pytest.mark.parametrize(
    ("words", "further"),
    [  # what writes files remembers them by their hash
        (("convert", "-f", "pftrace", "-d", "out", "db0.db"), set[str]()),
        (("convert", "-f", "json", "-d", "out", "db0.db"), set[str]()),
        (("convert", "-f", "otf2", "-d", "out", "db0.db"), {"_otf2", "rocpd.facts.short_names"}),
        (("convert", "-f", "csv", "--stats", "-d", "out", "db0.db"), set[str]()),
        (
            ("query", "select count(*) from kernels", "db0.db"),
            {"numpy", "rocpd.summary.reading", "hashlib"},
        ),
        (("schema", "kernels"), {"numpy", "apsw", "hashlib"}),
        (("--version",), {"numpy", "apsw", "hashlib"}),
        (("--help",), {"numpy", "apsw", "hashlib"}),
        (("query", "--help"), {"numpy", "apsw", "hashlib"}),
        (("summary", "--help"), {"numpy", "apsw", "hashlib"}),
    ],
)
def test_what_a_command_imports(words: tuple[str, ...], further: set[str], job: Path) -> None:
    done = subprocess.run([sys.executable, "-c", RUN, *words], cwd=job, capture_output=True, text=True, check=True)
    imported = set(done.stderr.splitlines())
    assert "rocpd.cli" in imported
    assert imported & (HEAVY | further) == set()
