"""No damage makes a command crash, hang, change an input or leave half an output.

A few hundred cases, which go through all families of damage and all commands; 20,000 with ROCPD_SOAK.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.damage import FAMILIES

SHARES = 2  # each is a process that imports everything
COUNT = 20_000 if os.environ.get("ROCPD_SOAK") else 200
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("share", range(SHARES))
def test_cases(share: int) -> None:
    count = COUNT // SHARES
    command = [sys.executable, "-m", "tests.hostile.cases", str(share * count), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *misbehaved, counts = map(json.loads, done.stdout.splitlines())
    print(counts)  # the counts of a soak are read with -s or -rA
    assert misbehaved == []
    assert counts["cases"] == count
    assert counts["undamaged"] < 0.1 * count
    assert counts["code 0"] > 0.2 * count
    assert counts["code 3"] > 0.1 * count


def test_there_are_families_enough() -> None:
    assert len(FAMILIES) >= 25
