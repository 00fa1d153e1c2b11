"""No damage makes a command crash, hang, change an input or leave half an output.

A few cases go through families of damage and commands, and through kinds of traces, with those that misbehaved once;
20,000 and 5,000 in a soak.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.damage import FAMILIES
from tests.soak import sized

COUNT = sized(5, 200)
"""Cases of a share, which is a process that imports everything."""
FOUND = ("6285", "8137", "9785", "12860", "14445", "17904")
FOUND_IN_TRACES = ("2138",)
"""Cases that misbehaved once, each in another way."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.soak(15)
@pytest.mark.parametrize("share", range(sized(1, 100)))
def test_cases(share: int) -> None:
    counts = run(share * COUNT, *(("--also", *FOUND) if share == 0 else ()))
    assert counts["undamaged"] < 0.1 * COUNT
    assert counts["code 0"] > 0.2 * COUNT
    assert counts["code 3"] > 0.1 * COUNT


@pytest.mark.soak(15)
@pytest.mark.parametrize("share", range(sized(1, 25)))
def test_traces(share: int) -> None:
    counts = run(share * COUNT, "--traces", *(("--also", *FOUND_IN_TRACES) if share == 0 else ()))
    assert counts["undamaged"] < 0.2 * COUNT
    assert counts["code 0"] > 0.1 * COUNT
    assert counts["code 3"] > 0.1 * COUNT


def run(first: int, *options: str) -> dict[str, int]:
    """Run COUNT cases, none of which may misbehave; return what became of them."""
    command = [sys.executable, "-m", "tests.hostile.cases", str(first), str(COUNT), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *misbehaved, counts = map(json.loads, done.stdout.splitlines())
    print(counts)  # the counts of a soak are read with -s or -rA
    assert misbehaved == []
    assert counts["cases"] == COUNT + sum(map(str.isdigit, options))
    return dict(counts)


def test_there_are_families_enough() -> None:
    assert len(FAMILIES) >= 25
