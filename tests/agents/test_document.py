"""Answers fit into bytes, and say what was left out."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from rocpd.agents.document import LEAST_BYTES, divided, fitted, rows_of, size_of
from rocpd.summary.findings import Finding, Verdict
from tests.soak import sized

_TEXT = st.text(max_size=60)
_TABLE = st.builds(
    lambda name, rows, about: {
        "table": name,
        "about": about,
        "columns": [{"name": "a", "unit": "ns", "about": about}],
        "rows_in_all": len(rows),
        "rows": rows,
    },
    _TEXT,
    st.lists(
        st.lists(_TEXT | st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=5), max_size=40
    ),
    _TEXT,
)


@settings(max_examples=sized(20, 1000), deadline=None)
@given(st.lists(_TABLE, max_size=4, unique_by=lambda table: table["table"]), st.lists(_TEXT, max_size=80))
def test_no_answer_is_over_its_cap(tables: list[dict[str, object]], notes: list[str]) -> None:
    document = {"command": "rocpd query", "notes": notes, "tables": tables}
    answer = fitted(document, LEAST_BYTES)
    assert size_of(answer) <= LEAST_BYTES
    if size_of(document | {"cut": None}) <= LEAST_BYTES:
        assert answer == document | {"cut": None}
    else:
        assert answer["cut"]


def test_what_is_cut_is_said() -> None:
    table = rows_of(("rank", "name"), [(number, "x" * 500) for number in range(100)])
    answer = fitted({"command": "c", "tables": [table]}, LEAST_BYTES)
    shown = len(answer["tables"][0]["rows"])
    assert 0 < shown < 100
    assert answer["cut"] == ["texts longer than 400 characters", f"rows: the first {shown} of 100 rows"]
    assert answer["tables"][0]["rows"][0] == [0, "x" * 400 + "…"]


def test_rows_beyond_what_is_read_are_not_counted() -> None:
    table = rows_of(("n",), ((number,) for number in range(20_000)))
    assert (table["rows_in_all"], len(table["rows"])) == (None, 10_000)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(b"\x00\xff", "00ff"), (float("inf"), None), ("\x1b[31mred\nrank 3", "\\e[31mred\\nrank 3"), (2**62, 2**62)],
)
def test_values_are_data(value: object, shown: object) -> None:
    assert rows_of(("v",), [(value,)])["rows"] == [[shown]]


def test_what_could_not_be_answered_is_no_conclusion() -> None:
    known = Finding("rank 2 is slow", "comm.straggler", evidence={"cost_ns": 5})
    lacking = Finding("no collectives", "comm.straggler", Verdict.UNKNOWN)
    assert divided([known, lacking]) == {
        "conclusions": [
            {
                "text": "rank 2 is slow",
                "rule": "comm.straggler",
                "verdict": "problem",
                "certainty": "likely",
                "evidence": {"cost_ns": 5},
            }
        ],
        "not_recorded": ["comm.straggler: no collectives"],
    }
