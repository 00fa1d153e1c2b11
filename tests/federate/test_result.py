"""Results: rows as they are stored, to the last digit and byte, in every form."""

from __future__ import annotations

import math

import pandas
import pyarrow
import pytest

import rocpd
from tests.build import TraceBuilder
from tests.conftest import OpenJob

BIG, SMALL = 2**63 - 1, -(2**63)


@pytest.fixture
def session(open_job: OpenJob) -> rocpd.Session:
    return open_job(TraceBuilder(0).kernel("a", 1, 2).kernel("b", 3, 5), TraceBuilder(1).kernel("c", 4, 9))


def test_a_result_can_be_read_again(session: rocpd.Session) -> None:
    result = session.sql("SELECT name FROM kernels ORDER BY name")
    rows = [("a",), ("b",), ("c",)]
    assert [list(result), list(result), result.fetchall(), result.fetchall(), list(result)] == [rows] * 5


def test_a_result_half_read_starts_again(session: rocpd.Session) -> None:
    result = session.sql("SELECT name FROM kernels ORDER BY name")
    assert next(iter(result)) == ("a",)
    assert result.fetchall() == [("a",), ("b",), ("c",)]


def test_columns_are_known_before_rows_are_read(session: rocpd.Session) -> None:
    assert session.sql('SELECT name, 1 + 1, start AS "two words" FROM kernels').columns == (
        "name",
        "1 + 1",
        "two words",
    )
    assert session.sql("CREATE TEMP TABLE t (a)").columns == ()


@pytest.mark.parametrize("sql", ["SELECT name, start, 1.5 AS x FROM kernels WHERE 0", "SELECT * FROM samples"])
def test_empty_results_keep_their_columns(sql: str, session: rocpd.Session) -> None:
    result = session.sql(sql)
    assert result.fetchall() == []
    assert tuple(result.arrow().column_names) == result.columns == tuple(result.df().columns)
    assert len(result.df()) == 0


def test_integers_keep_all_64_bits(session: rocpd.Session) -> None:
    result = session.sql(
        f"SELECT {BIG} AS i UNION ALL SELECT {BIG - 1} UNION ALL SELECT NULL UNION ALL SELECT -1 - {BIG}"
    )
    rows = [BIG, BIG - 1, None, SMALL]
    assert [row[0] for row in result] == rows
    assert result.arrow().column("i").to_pylist() == rows
    assert result.arrow().schema.field("i").type == pyarrow.int64()
    frame = result.df()["i"]
    assert [None if value is pandas.NA else int(value) for value in frame] == rows


def test_floats_and_blobs_pass_unchanged(session: rocpd.Session) -> None:
    result = session.sql("SELECT 9e999 AS f, x'00ff' AS b UNION ALL SELECT -9e999, x'' UNION ALL SELECT 0.1, NULL")
    assert result.fetchall() == [(math.inf, b"\x00\xff"), (-math.inf, b""), (0.1, None)]
    assert result.arrow().to_pydict() == {"f": [math.inf, -math.inf, 0.1], "b": [b"\x00\xff", b"", None]}
    assert list(result.df()["f"]) == [math.inf, -math.inf, 0.1]


def test_text_with_any_character(session: rocpd.Session) -> None:
    texts = ["", "it's", 'a "b"', "new\nline", "Größe 日本 🚀", "\0 inside"]
    result = session.sql(" UNION ALL ".join("SELECT ? AS t" for _ in texts), texts)
    assert [row[0] for row in result] == texts
    assert result.arrow().column("t").to_pylist() == texts


def test_text_that_is_not_utf8_is_shown_with_its_odd_bytes(open_job: OpenJob) -> None:
    trace = TraceBuilder()
    for number in range(5):
        trace.kernel(f"k{number}", number, number + 1)
    odd = "UPDATE {symbols} SET display_name = CAST(x'6bff21' AS TEXT) WHERE display_name = 'k3'"
    trace.sql(odd.replace("{symbols}", '"rocpd_info_kernel_symbol{uuid}"'))
    session = open_job(trace)
    result = session.sql("SELECT name, start, x'ff' AS b FROM kernels ORDER BY start")
    rows = [("k0", 0, b"\xff"), ("k1", 1, b"\xff"), ("k2", 2, b"\xff"), ("k\\xff!", 3, b"\xff"), ("k4", 4, b"\xff")]
    assert list(result) == rows
    assert result.fetchall() == rows
    assert result.arrow().column("name").to_pylist() == [row[0] for row in rows]
    assert session.sql("SELECT name FROM kernels WHERE start = ?;", (3,)).fetchall() == [("k\\xff!",)]
    assert ("k\\xff!", 1) in [(row[0], row[1]) for row in session.sql("SELECT * FROM top_kernels")]


def test_the_same_column_name_twice(session: rocpd.Session) -> None:
    result = session.sql("SELECT name, name, start AS name FROM kernels WHERE name = 'a'")
    assert result.columns == ("name", "name", "name")
    assert result.fetchall() == [("a", "a", 1)]
    assert result.arrow().num_columns == 3


def test_mixed_types_in_one_column_lose_nothing(session: rocpd.Session) -> None:
    rows = [(1,), (2.5,), (None,)]
    result = session.sql("SELECT 1 AS v UNION ALL SELECT 2.5 UNION ALL SELECT NULL")
    assert result.fetchall() == rows
    assert result.arrow().column("v").to_pylist() == [1.0, 2.5, None]
    texts = session.sql("SELECT 1 AS v UNION ALL SELECT 'one'")
    assert texts.fetchall() == [(1,), ("one",)]
    assert texts.arrow().column("v").to_pylist() == ["1", "one"]


def test_show_writes_a_table_and_notebooks_get_one(session: rocpd.Session, capsys: pytest.CaptureFixture[str]) -> None:
    result = session.sql("SELECT name, start FROM kernels WHERE name <> '<b>' ORDER BY name")
    result.show()
    out = capsys.readouterr().out
    assert all(word in out for word in ("name", "start", "a", "b", "c"))
    html = session.sql("SELECT '<b>&' AS \"a<b\" UNION ALL SELECT name FROM kernels")._repr_html_()
    assert "<b>&" not in html
    assert "&lt;b&gt;&amp;" in html
    assert repr(result).splitlines() == ["name  start", "----  -----", "a         1", "b         3", "c         4"]
