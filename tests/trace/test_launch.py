"""Which region launched an operation: innermost, ties, damaged times."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest

from rocpd.base import NULL
from rocpd.schema.rules.launch import launches, launching_regions

Regions: TypeAlias = list[tuple[int, int, int]]
"""Stack id, start, end."""


@pytest.mark.parametrize(
    ("regions", "launching"),
    [
        ([(7, 10, 20)], 0),
        ([(7, 10, 50), (7, 20, 40), (7, 30, 35)], 2),
        ([(7, 30, 35), (7, 20, 40), (7, 10, 50)], 0),
        ([(7, 10, 50), (7, 10, 40)], 1),
        ([(7, 10, 40), (7, 10, 50)], 0),
        ([(7, 10, 40), (7, 10, 40), (7, 10, 40)], 2),
        ([(7, 10, 40), (7, 30, 60)], 1),
        ([(7, 10, 40), (7, 20, 20)], 1),
        ([(7, 10, 40), (7, 20, 19)], 1),
        ([(7, 10, 40), (7, 20, NULL)], 1),
        ([(7, 10, NULL), (7, 10, 30)], 0),
        ([(7, 10, 40), (7, 0, 30)], 0),
        ([(7, 10, 40), (7, NULL, 30)], 0),
        ([(7, 0, 30)], -1),
        ([(8, 10, 40)], -1),
        ([], -1),
    ],
)
def test_which_region_launches(regions: Regions, launching: int) -> None:
    stack, start, end = np.array(regions, np.int64).reshape(-1, 3).T
    assert launching_regions(stack, start, end, np.array([7, 7])).tolist() == [launching] * 2
    assert np.flatnonzero(launches(stack, start, end) & (stack == 7)).tolist() == (
        [launching] if launching >= 0 else []
    )


@pytest.mark.parametrize("nothing", [0, -1, NULL])
def test_what_has_no_stack_id_is_launched_by_nothing(nothing: int) -> None:
    stack, start, end = np.array([(nothing, 10, 20), (7, 10, 20)], np.int64).T
    assert launching_regions(stack, start, end, np.array([nothing])).tolist() == [-1]
