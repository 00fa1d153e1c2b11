"""No damage makes a command crash, hang, change an input or leave half an output.

Sixty cases go through all families of damage and all commands; 20,000 in a soak.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.damage import FAMILIES
from tests.soak import sized

COUNT = sized(30, 200)
"""Cases of a share, which is a process that imports everything."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.soak(7)
@pytest.mark.parametrize("share", range(sized(2, 100)))
def test_cases(share: int) -> None:
    command = [sys.executable, "-m", "tests.hostile.cases", str(share * COUNT), str(COUNT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *misbehaved, counts = map(json.loads, done.stdout.splitlines())
    print(counts)  # the counts of a soak are read with -s or -rA
    assert misbehaved == []
    assert counts["cases"] == COUNT
    assert counts["undamaged"] < 0.1 * COUNT
    assert counts["code 0"] > 0.2 * COUNT
    assert counts["code 3"] > 0.1 * COUNT


def test_there_are_families_enough() -> None:
    assert len(FAMILIES) >= 25
