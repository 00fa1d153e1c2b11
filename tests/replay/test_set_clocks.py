"""Clocks that were set ahead show in steps that one clock alone has longer."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.base import Ints
from rocpd.federate.select.align import Shift
from rocpd.replay.set_clocks import jumps

STEP, JUMP = 1_000_000, 300_000
SECOND = 77_000_000
"""What the second clock shows at time 0 [ns]."""


def _found(late: dict[int, int], others: dict[int, int], *, is_idle: bool = True) -> dict[int, Shift]:
    """Return the jumps of two ranks on a clock each; `late`, `others`: step -> its extra time on each [ns]."""
    begins: dict[int, dict[int | None, int]] = {}
    for rank, (first, longer) in enumerate([(0, late), (SECOND, others)]):
        lasts = np.array([STEP + longer.get(step, 0) + step % 3 * 100 for step in range(10)])
        begins[rank] = dict(enumerate((first + np.cumsum(lasts) - lasts).tolist()))

    def events(rank: int) -> Ints:
        times = [np.linspace(begin, begin + STEP * 0.6, 50) for begin in begins[rank].values()]
        busy = [] if is_idle else [np.arange(begins[rank][0], begins[rank][9], STEP // 20)]
        return np.concatenate([*times, *busy]).astype(np.int64)

    return jumps(begins, {0: 0, 1: 1}, events)


def test_a_step_that_is_longer_by_one_clock_alone_is_a_jump() -> None:
    (rank, shift), *others = _found({4: JUMP}, {}).items()
    assert not others
    assert rank == 0
    assert shift.jump == pytest.approx(JUMP, rel=0.01)
    assert 4 * STEP < shift.since <= 5 * STEP + JUMP + 1000


@pytest.mark.parametrize(
    ("late", "others", "is_idle"),
    [
        ({4: JUMP}, {4: JUMP}, True),  # the others wait for it
        ({4: JUMP, 5: -JUMP}, {}, True),  # it was ahead, and is no longer
        ({4: JUMP}, {}, False),  # it works all the time
        ({}, {}, True),
    ],
)
def test_a_stall_is_no_jump(late: dict[int, int], others: dict[int, int], is_idle: bool) -> None:
    assert not _found(late, others, is_idle=is_idle)


def test_without_steps_no_jump_is_seen() -> None:
    """As of a job in which no rank marks any, on clocks that do not compare."""
    assert not jumps({}, {0: 0, 1: 1}, lambda _: np.empty(0, np.int64))
