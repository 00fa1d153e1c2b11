"""Markers: Python, SQL and the stored view say the same of every category."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from rocpd.schema.load import view
from rocpd.schema.rules.categories import MARKER_PREFIXES, domain_of, is_marker, marker_categories

CATEGORIES = st.text(max_size=5) | st.builds(
    str.__add__, st.sampled_from((*MARKER_PREFIXES, "MARKER", "Rocm_marker")), st.text(max_size=3)
)


@given(st.none() | CATEGORIES.filter(lambda text: "\0" not in text))
def test_sql_and_python_agree(category: str | None) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rocpd_string (id INTEGER, string TEXT)")
    connection.execute("INSERT INTO rocpd_string VALUES (7, ?)", (category,))
    assert connection.execute(marker_categories()).fetchall() == ([(7,)] if is_marker(category) else [])
    connection.close()


@given(CATEGORIES)
def test_a_marker_is_of_the_domain_of_markers(category: str) -> None:
    assert not is_marker(category) or domain_of(category) == "MARKERS"


def test_the_view_holds_the_same_patterns() -> None:
    condition = " ".join(view("markers").select.partition("WHERE")[2].split()).rstrip(";")
    assert condition == " OR ".join(f"V.category GLOB '{prefix}*'" for prefix in MARKER_PREFIXES)
