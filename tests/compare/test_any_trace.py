"""Laws on traces as they come: two GPUs a rank, kernels that overlap and reach over edges of steps, gaps, copies."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocpd.compare.comparison import compare
from rocpd.compare.options import DiffOptions
from rocpd.compare.run_profile import RunProfile
from tests.build import GPU, GPU2, TraceBuilder
from tests.compare.test_diff import profile_of
from tests.soak import sized

STEPS, LENGTH = 4, 1000
KERNELS = ("gemm", "add", "ncclDevKernel_Generic_1")

operation = st.fixed_dictionaries(
    {
        "what": st.sampled_from((*KERNELS, "copy")),
        "start": st.integers(900, LENGTH * (STEPS + 1) + 100),
        "length": st.integers(1, 700),
        "agent": st.sampled_from((GPU, GPU, GPU2)),
        "grid": st.sampled_from(((1024, 1, 1), (2048, 1, 1))),
        "launched": st.booleans(),
    }
)
ranks = st.lists(st.lists(operation, min_size=1, max_size=14), min_size=1, max_size=2)


def traced(operations: list[dict[str, Any]], number: int, folder: Path) -> Path:
    """Write a rank: steps of equal length, the last of which ends where the marker does."""
    rank = TraceBuilder(number)
    for step in range(STEPS):
        rank.region("roctxRangePushA", LENGTH * (step + 1), LENGTH * (step + 2) - 50, message=f"step {step}")
    for stack, each in enumerate(operations, 1):
        end, call = each["start"] + each["length"], each["start"] - 30
        if each["launched"]:
            rank.region("hipLaunchKernel", call, call + 20, stack=stack)
        if each["what"] == "copy":
            rank.copy(each["start"], end, dst=each["agent"], stack=stack)
        else:
            rank.kernel(each["what"], each["start"], end, agent=each["agent"], grid=each["grid"], stack=stack)
    return rank.write(folder / f"{number}.db")


def run(job: list[list[dict[str, Any]]]) -> RunProfile:
    with tempfile.TemporaryDirectory() as folder:
        return profile_of(*(traced(operations, number, Path(folder)) for number, operations in enumerate(job)))


@pytest.mark.soak(40)
@settings(max_examples=sized(5, 200))
@given(ranks, ranks)
def test_parts_are_the_whole_and_changes_add_up(first: list[list[dict[str, Any]]], second: Any) -> None:
    base, new = run(first), run(second)
    for profile in (base, new):
        parts = sum(sum(use.exposed.values()) for use in profile.uses) + sum(profile.idle.values())
        assert parts == round(sum(profile.samples["step"]) * profile.scale)
        assert all(time >= 0 for use in profile.uses for time in use.exposed.values())
        assert profile.samples["step"][0] in (LENGTH, LENGTH - 50)
    there, back = compare([base], [new], DiffOptions()), compare([new], [base], DiffOptions())
    found = there.attribution
    idle = sum(part.change for name, part in found.parts.items() if name.startswith("idle"))
    assert sum(part.change for part in found.parts.values()) == found.unit.change == -back.attribution.unit.change
    assert sum(kernel.change for kernel in found.kernels) == found.unit.change - idle
    for kernel in found.kernels:
        assert kernel.calls + kernel.work + kernel.speed + kernel.overlap + kernel.waiting == kernel.change
