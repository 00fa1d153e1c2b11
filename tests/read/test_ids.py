"""Ids, names and groups, against simple ways of doing the same."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rocpd.base import NULL, Ints
from rocpd.facts.columns import Names, find_rows, grouped, look_up, numbered, per_id

IDS = st.lists(st.one_of(st.integers(0, 20), st.integers(-(2**62), 2**62), st.just(NULL)), max_size=40)


def ints(values: list[int]) -> Ints:
    return np.array(values, np.int64)


@given(IDS)
def test_per_id_calls_once_per_id(ids: list[int]) -> None:
    called: list[int] = []

    def label(number: int) -> int:
        called.append(number)
        return number % 1000

    assert per_id(ints(ids), label).tolist() == [number % 1000 for number in ids]
    assert called == sorted(set(ids))


@given(IDS, IDS)
def test_find_rows_finds_the_first(keys: list[int], wanted: list[int]) -> None:
    rows, known = find_rows(ints(keys), ints(wanted))
    assert known.tolist() == [key in keys for key in wanted]
    assert rows[known].tolist() == [keys.index(key) for key in wanted if key in keys]


@given(st.dictionaries(st.integers(-5, 20), st.integers(0, 9)), IDS)
def test_look_up(known: dict[int, int], ids: list[int]) -> None:
    assert look_up(known, ints(ids)).tolist() == [known.get(number, NULL) for number in ids]


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.integers(-2, 2), st.integers(-(2**62), 2**62))), max_size=40))
def test_groups_hold_each_row_once_in_order(rows: list[tuple[int, int]]) -> None:
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, key in enumerate(rows):
        groups.setdefault(key, []).append(number)
    columns = [ints([row[column] for row in rows]) for column in (0, 1)]
    assert {key: members.tolist() for key, members in grouped(columns)} == groups


def test_names_are_numbered_as_they_come() -> None:
    names = Names()
    assert [names.code(text) for text in ("b", None, "a", "b")] == [0, 1, 2, 0]
    assert names.codes(ints([7, 5, 7, NULL]), {5: "a", 7: "c"}.get).tolist() == [3, 2, 3, 1]
    assert names.texts == ["b", None, "a", "c"]
    assert Names().adopt(names.texts) == [0, 1, 2, 3]


def test_many_combinations_are_numbered_in_their_order_and_in_few_bytes() -> None:
    """Of many ranks there are millions: a table of all numbers that there might be would take ten times as much."""
    random, count = np.random.default_rng(1), 50_000
    keys: list[Any] = [random.integers(-3, many, count).astype(np.int16) for many in (2, 100, 30, 20, 10)]
    numbered(*keys)
    tracemalloc.start()
    numbers = numbered(*keys)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert numbers.tolist() == np.unique(np.stack(keys, 1), axis=0, return_inverse=True)[1].reshape(-1).tolist()
    assert peak <= 100 * count
