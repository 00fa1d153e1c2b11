"""Lines of CSV are those that Arrow's writer makes of the same columns."""

from __future__ import annotations

import csv
import io
import struct

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv as arrow_csv

from rocpd.base import NULL
from rocpd.convert.formats.csv_lines import cells_of, lines, real
from rocpd.convert.view_reader import Coded, Values, listed, missing, texts

WHOLE = st.one_of(st.integers(0, 2), st.integers(-(1 << 62), 1 << 62), st.integers(5000, 9000), st.just(NULL))
REALS = st.floats(allow_nan=True, allow_infinity=True)
WORDS = st.one_of(st.sampled_from(["", "a", 'say "x"', "one, two", "é\n"]), st.text(st.characters(codec="utf-8")))


@st.composite
def columns(draw: st.DrawFn) -> list[Values]:
    count = draw(st.integers(1, 40))
    made: list[Values] = []
    for kind in draw(st.lists(st.sampled_from("ifoc"), min_size=1, max_size=8)):
        if kind == "i":
            some = draw(st.lists(WHOLE, min_size=1, max_size=4))
            made.append(np.array(draw(st.lists(st.sampled_from(some), min_size=count, max_size=count)), np.int64))
        elif kind == "f":
            made.append(np.array(draw(st.lists(REALS, min_size=count, max_size=count))))
        else:
            words = texts(draw(st.lists(WORDS, min_size=count, max_size=count)))
            made.append(words if kind == "o" else Coded.of(words))
    return made


def by_arrow(column: Values) -> pa.Array:
    if isinstance(column, np.ndarray):
        return pa.array(column, mask=missing(column))
    return pa.array(listed(column), pa.string())


@given(columns())
def test_lines_are_those_of_arrow(made: list[Values]) -> None:
    out = pa.BufferOutputStream()
    table = pa.Table.from_arrays([by_arrow(column) for column in made], [str(i) for i in range(len(made))])
    arrow_csv.write_csv(table, out, arrow_csv.WriteOptions(include_header=False))
    numbers = [isinstance(column, np.ndarray) for column in made]
    assert lines(made, numbers) == out.getvalue().to_pybytes()


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3, st.integers()), min_size=100, max_size=300))
def test_columns_that_repeat_together(rows: list[tuple[int, ...]]) -> None:
    one, two, three, many = zip(*rows, strict=True)
    made: list[Values] = [Coded.of(map(str, one)), np.array(two), np.array(three)]
    made += [texts([str(number) for number in many]), *made]
    read = csv.reader(io.StringIO(lines(made, [False, True, True] * 2 + [True]).decode()))
    assert [tuple(map(int, row)) for row in read] == [(*row, *row[:3]) for row in rows]


@given(
    st.one_of(
        st.integers(0, (1 << 64) - 1).map(lambda bits: struct.unpack("d", struct.pack("Q", bits))[0]),
        st.builds(lambda digits, power: float(f"{digits}e{power}"), st.integers(-99_999, 99_999), st.integers(-15, 20)),
    )
)
def test_reals_read_back_the_same(value: float) -> None:
    (shown,) = pa.array([value]).cast(pa.string()).to_pylist()
    assert real(value) == ("" if value != value else shown)
    assert value != value or float(real(value)) == value


def test_texts_where_numbers_belong() -> None:
    odd = texts(["7", "-7", None, "seven", 'a"'])
    assert list(cells_of(odd)) == ["7", "-7", "", '"seven"', '"a"""']
    assert lines([Coded.of(odd), odd], [True, False]).decode().splitlines() == [
        '7,"7"',
        '-7,"-7"',
        ',""',
        '"seven","seven"',
        '"a""","a"""',
    ]
