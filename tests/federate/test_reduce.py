"""Partial aggregates that are added up on the way, exactly or not at all."""

from __future__ import annotations

from rocpd.federate.run.cluster import reduced

MERGES = ("GROUP", "SUM", "TOTAL", "MIN", "MAX")


def test_rows_of_equal_groups_are_added_up() -> None:
    rows = [("b", 1, 1.0, 5, "x"), ("a", 2, 2.0, 4, "y"), ("b", 3, 4.0, 4, "a"), ("b", None, None, None, None)]
    assert reduced(rows, MERGES) == [("b", 4, 5.0, 4, "x"), ("a", 2, 2.0, 4, "y")]
    assert reduced([(None, None), (None, 3)], ("GROUP", "SUM")) == [(None, 3)]
    assert reduced([(7,), (None,)], ("SUM",)) == [(7,)]


def test_groups_of_different_types_are_different() -> None:
    assert reduced([(1, 1), (1.0, 1), ("1", 1), (1, 1)], ("GROUP", "SUM")) == [(1, 2), (1.0, 1), ("1", 1)]


def test_floats_that_depend_on_their_order_stay() -> None:
    """The rows after them stay too, so that values are added in the usual order."""
    rows = [("a", 1.0), ("a", 2.0), ("a", 0.1), ("a", 2.0)]
    assert reduced(rows, ("GROUP", "TOTAL")) == [("a", 3.0), ("a", 0.1), ("a", 2.0)]
    assert reduced([("a", 2.0**53), ("a", 1.0)], ("GROUP", "TOTAL")) == [("a", 2.0**53), ("a", 1.0)]


def test_what_does_not_fit_or_compare_stays() -> None:
    """SQLite's own error, or its order of types, applies when all rows are there."""
    largest = (1 << 63) - 1
    assert reduced([(largest,), (1,)], ("SUM",)) == [(largest,), (1,)]
    assert reduced([(1,), ("a",)], ("MAX",)) == [(1,), ("a",)]
    assert reduced([(b"a",), (b"b",)], ("MAX",)) == [(b"a",), (b"b",)]


def test_without_merges_rows_stay_as_they_are() -> None:
    assert reduced(iter([(1, 2), (1, 2)]), ()) == [(1, 2), (1, 2)]
