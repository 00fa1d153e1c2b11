"""Tables on a terminal: they fit, or become blocks."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import Row
from rocpd.table.cell import shorten
from rocpd.table.human import write_console
from rocpd.table.palette import Screen

LONG = "void ck::kernel_gemm_xdl_cshuffle_v1<ck::GridwiseGemm<float, 256, 128>>(Argument)"


def shown(columns: Sequence[str], rows: Sequence[Row], width: int) -> list[str]:
    out = io.StringIO()
    write_console(columns, iter(rows), out, screen=Screen(width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_table_that_fits() -> None:
    lines = shown(("name", "calls", "ms"), [("gemm", 10, 0.5), ("relu", 9, None), ("[b]x[/b]", 1, 1 / 3)], 80)
    assert [line.split() for line in lines if line and "─" not in line] == [
        ["name", "calls", "ms"],
        ["gemm", "10", "0.5000"],
        ["relu", "9", "NULL"],
        ["[b]x[/b]", "1", "0.3333"],
    ]
    assert set(lines[2].strip()) == {"─"}
    ends = [
        line.rindex(number) + len(number) for line, number in zip(lines[3:6], ("0.5000", "NULL", "0.3333"), strict=True)
    ]
    assert len(set(ends)) == 1


def test_long_names_lose_their_middle() -> None:
    lines = shown(("name", "calls"), [(LONG, 10)], 60)
    row = next(line for line in lines if "void" in line)
    assert len(row) <= 60
    name = row.split("  ")[1].strip()
    head, tail = name.split("…")
    assert LONG.startswith(head)
    assert LONG.endswith(tail)
    assert row.rstrip().endswith("10")


def test_too_many_columns_become_blocks() -> None:
    columns = [f"column_{i}" for i in range(12)]
    lines = shown(columns, [tuple(range(12)), (LONG, *range(11))], 60)
    assert [line.split()[:3] for line in lines if line.startswith("──")] == [["──", "row", "1"], ["──", "row", "2"]]
    assert [line.split() for line in lines[1:13]] == [[name, str(i)] for i, name in enumerate(columns)]
    assert max(map(len, lines)) <= 60
    assert "…" in lines[14]


def test_a_pipe_shortens_nothing() -> None:
    out = io.StringIO()
    write_console(("name", "x"), iter([(LONG, 1 / 3)]), out)
    assert out.getvalue().splitlines()[2].split("  ") == [LONG, str(1 / 3)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00001, "1e-05"), (0.0, "0.0"), (1e18, "1e+18"), (12345.678901, "12345.6789"), (-2.5, "-2.5000")],
)
def test_reals_for_eyes(value: float, text: str) -> None:
    assert text in shown(("x",), [(value,)], 80)[3]


@given(
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=90), min_size=1, max_size=6),
    st.integers(30, 200),
)
def test_never_wider_than_the_terminal(cells: list[str], width: int) -> None:
    columns = [f"c{i}" for i in range(len(cells))]
    assert max(map(len, shown(columns, [tuple(cells)], width))) <= width


@given(st.text(max_size=40), st.integers(0, 50))
def test_shorten(text: str, width: int) -> None:
    short = shorten(text, width)
    assert len(short) == min(len(text), width)
    assert short == text or width < 2 or "…" in short
