"""Pictures fit the screen, show every value that is not 0, and say the same with and without colours."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rocpd.table.human import Curve, Shade, bar, columns, curves, heat_map, matrix, parts, shade, spark
from rocpd.table.palette import BLUE, FEW, MANY, RED, Screen

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_SHARES = st.floats(0, 1)
_VALUES = st.integers(0, 10**15).map(float)


@given(st.lists(_SHARES, min_size=2, max_size=200), st.integers(30, 200), st.sampled_from([0, FEW, MANY]))
def test_a_heat_map_fits_with_and_without_colours(shares: list[float], width: int, colours: int) -> None:
    lines = [("rank 0", [Shade(s, RED) for s in shares]), ("rank 1", [Shade(1 - s, BLUE) for s in shares])]
    drawn = list(heat_map(lines, ("0 ns", "63.0 ms"), Screen(width, colours)))
    plain = [_ESCAPES.sub("", line) for line in drawn]
    without = heat_map(lines, ("0 ns", "63.0 ms"), Screen(width))
    assert [line.rstrip() for line in plain] == [line.rstrip() for line in without]
    assert max(map(len, plain)) <= width
    assert (drawn == plain) == (not colours)


@given(st.lists(_VALUES, min_size=1, max_size=300), st.integers(1, 40), st.integers(30, 200))
def test_curves_fit_and_the_highest_touches_the_top(values: list[float], count: int, width: int) -> None:
    lines = [Curve(f"rank {number}", values, "9.99 GiB") for number in range(count)]
    drawn = list(curves(lines, ("0 ns", "63.0 ms"), Screen(width), BLUE))
    assert max(map(len, drawn)) <= width
    assert ("█" in "".join(drawn)) == any(values)
    assert sum("9.99 GiB" in line for line in drawn) == count


@given(
    st.integers(1, 12).flatmap(lambda n: st.lists(st.lists(_VALUES, min_size=n, max_size=n), min_size=n, max_size=n))
)
def test_a_matrix_has_a_sign_where_a_value_is(values: list[list[float]]) -> None:
    labels = [f"{number:>2}" for number in range(len(values))]
    _, *rows = matrix(labels, values, "", Screen(200))
    signs = [[bool(row[2 + 3 * at : 5 + 3 * at].strip()) for at in range(len(values))] for row in rows]
    assert signs == [[value > 0 for value in row] for row in values]


@given(st.lists(_VALUES, max_size=50))
def test_sparks_are_as_long_as_the_values_and_show_what_is_not_0(values: list[float]) -> None:
    assert [character != " " for character in spark(values)] == [value > 0 for value in values]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50), st.integers(1, 6))
def test_columns_stand_on_the_ground(values: list[int], height: int) -> None:
    rows = columns(values, max(values), height)
    assert len(rows) == height
    for column, value in zip(zip(*rows, strict=True), values, strict=True):
        text = "".join(column)
        assert text.strip() == text.lstrip()  # no gap below
        assert bool(text.strip()) == (value > 0)


@given(st.lists(_SHARES, min_size=2))
def test_more_is_never_shown_as_less(shares: list[float]) -> None:
    order = " ·░▒▓█"
    dark = [order.index(shade(share)) for share in sorted(shares)]
    lengths = [len(bar(share, 40)) for share in sorted(shares)]
    assert dark == sorted(dark)
    assert lengths == sorted(lengths)


@given(st.lists(st.integers(), min_size=1), st.integers(1, 30))
def test_parts_hold_everything_once_in_order(values: list[int], count: int) -> None:
    every = list(parts(values, count))
    assert [value for part in every for value in part] == values
    assert all(every)
    assert len(every) == min(count, len(values))
