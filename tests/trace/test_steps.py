"""Which marker ranges are steps, in the markers of real programs."""

from __future__ import annotations

import re

import pytest

from rocpd.schema.rules.steps import STEP_MARKER, MarkerRange, find_steps

Found = list[tuple[str, int | None]]


def steps(*ranges: tuple[str, int, int] | tuple[str, int, int, int], pattern: str = STEP_MARKER) -> Found:
    every = [MarkerRange(*values) for values in ranges]
    return [(every[step.row].text, step.number) for step in find_steps(every, re.compile(pattern))]


@pytest.mark.parametrize(
    "text",
    ["step 5", "ProfilerStep#5", "Step: 5", "[iteration 5/100]", "train_step", "iter_5", "Training step 5",
     "time step 5", "global_step=5", "batch 5", "mini-batch 5", "epoch 5", "step 5 of 7", "Iteration", "cycle 5"],
)  # fmt: skip
def test_what_names_a_step(text: str) -> None:
    assert re.search(STEP_MARKER, text)


@pytest.mark.parametrize(
    "text",
    ["Optimizer.step#AdamW.step", "optimizer step", "step 5 forward", "begin of step 5", "lr_scheduler.step()",
     "stepping", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "load batch 5", "steps", "5"],
)  # fmt: skip
def test_what_does_not(text: str) -> None:
    assert not re.search(STEP_MARKER, text)


def test_the_optimizer_of_pytorch_is_no_step() -> None:
    ranges = [
        (text, 100 * n + at, 100 * n + at + length)
        for n in range(3)
        for text, at, length in ((f"ProfilerStep#{n + 7}", 0, 90), ("Optimizer.step#AdamW.step", 60, 20))
    ]
    assert steps(*ranges) == [("ProfilerStep#7", 7), ("ProfilerStep#8", 8), ("ProfilerStep#9", 9)]


def test_the_outermost_of_several_and_no_epoch() -> None:
    ranges = [("epoch 0", 0, 200), ("epoch 1", 200, 400)]
    for n in range(4):
        ranges += [(f"step {n}", 100 * n, 100 * n + 90), ("batch 0", 100 * n, 100 * n + 40)]
    assert steps(*ranges) == [(f"step {n}", n) for n in range(4)]
    assert steps(*ranges[:2]) == [("epoch 0", 0), ("epoch 1", 1)]


def test_steps_in_emit_nvtx_of_pytorch_keep_their_numbers() -> None:
    """Texts as PyTorch 2.14 writes them: each call has a number, with shapes those of its inputs."""
    texts = [
        "step 4, op_id = 1",
        "step 5, seq = 12, op_id = 110, sizes = [[8, 1], []], input_op_ids = [(10,0), (0,-1)]",
    ]
    inner = "aten::mm, op_id = 44, sizes = [[8, 1], [1, 128]], input_op_ids = [(37,0), (41,0)]"
    ranges = [(texts[0], 0, 90), (inner, 5, 9), (texts[1], 100, 190), (inner, 105, 109)]
    assert steps(*ranges) == [(texts[0], 4), (texts[1], 5)]
    named = [(f"train_step, op_id = {100 * n + 7}", 100 * n, 100 * n + 90) for n in range(2)]
    assert [number for _, number in steps(*named)] == [0, 1]


def test_one_around_all_is_none() -> None:
    assert steps(("training", 0, 90), ("iteration", 0, 80), ("step", 1, 9), ("step", 11, 19)) == [
        ("step", 0),
        ("step", 1),
    ]
    assert steps(("iteration", 0, 80)) == [("iteration", 0)]


def test_numbers_that_come_again_are_not_used() -> None:
    """A second epoch counts from 0 again."""
    again = [("step 0", 0, 9), ("step 1", 10, 19), ("step 0", 20, 29), ("step 1", 30, 39)]
    assert [number for _, number in steps(*again)] == [0, 1, 2, 3]


def test_other_kinds_have_no_number() -> None:
    kinds = [("train step 4", 0, 9), ("train step 5", 10, 19), ("train step 6", 20, 29), ("eval step 0", 30, 35)]
    assert steps(*kinds, ("eval step 1", 36, 39)) == [
        ("train step 4", 4), ("train step 5", 5), ("train step 6", 6), ("eval step 0", None), ("eval step 1", None),
    ]  # fmt: skip


def test_threads_go_through_steps_by_themselves() -> None:
    assert steps(("step 0", 0, 9, 1), ("step 0", 1, 8, 2), ("step 1", 10, 19, 1), ("step 1", 11, 18, 2)) == [
        ("step 0", 0), ("step 0", 0), ("step 1", 1), ("step 1", 1),
    ]  # fmt: skip


def test_what_the_user_asks_for() -> None:
    assert steps(("tick 3", 0, 9), ("tick 4", 10, 19), pattern="^tick") == [("tick 3", 3), ("tick 4", 4)]
