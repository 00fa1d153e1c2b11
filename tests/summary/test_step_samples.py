"""Means of samples in steps: each value by how much of the step it holds."""

from __future__ import annotations

from rocpd.summary.samples import SampledValue, _means_in_steps


def _values(*pairs: tuple[int, float]) -> list[SampledValue]:
    return [SampledValue(at, None, None, value) for at, value in pairs]


def test_values_hold_until_the_next_one() -> None:
    values = _values((0, 1.0), (10, 4.0), (30, 2.0))
    steps = {1: (0, 20), 2: (20, 30), 3: (-9, 5), 4: (30, 90), 5: (-9, 0)}
    assert _means_in_steps(values, steps) == {1: 2.5, 2: 4.0, 3: 1.0}


def test_parts_of_a_step_add_up() -> None:
    values = _values(*((at, float(at % 7)) for at in range(0, 1000, 13)))
    whole = _means_in_steps(values, {0: (100, 900)})[0]
    parts = _means_in_steps(values, {number: (number, number + 50) for number in range(100, 900, 50)})
    assert abs(sum(parts.values()) * 50 - whole * 800) < 1e-6


def test_no_values() -> None:
    assert _means_in_steps([], {1: (0, 9)}) == {}
