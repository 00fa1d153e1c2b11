"""A statement names a rank's own tables where it means them as they are, and has a SELECT in front where not."""

from __future__ import annotations

import pytest

from rocpd.schema.load import table
from rocpd.schema.render import RankTables, with_relations

COLUMNS = {name: tuple(column.name for column in table(name).columns) for name in ("rocpd_region", "rocpd_string")}


def _tables(**more: object) -> RankTables:
    return RankTables(**({"suffix": "_ab", "columns": COLUMNS, "rank": 0, "guid": "ab"} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "own"),
    [
        ("SELECT id FROM rocpd_string", 'SELECT id FROM "rocpd_string_ab"'),
        (
            "SELECT COUNT(*) FROM ROCPD_region R\nJOIN rocpd_string S ON S.id = R.name_id",
            'SELECT COUNT(*) FROM "rocpd_region_ab" R\nJOIN "rocpd_string_ab" S ON S.id = R.name_id',
        ),
        (
            "SELECT id FROM rocpd_region WHERE name_id IN (SELECT id FROM rocpd_string WHERE string = 'a')"
            " AND 'b' = 'b'",
            'SELECT id FROM "rocpd_region_ab" WHERE name_id IN (SELECT id FROM "rocpd_string_ab" WHERE string = \'a\')'
            " AND 'b' = 'b'",
        ),
        (
            "SELECT id FROM rocpd_string WHERE string GLOB 'nccl*'",
            "SELECT id FROM \"rocpd_string_ab\" WHERE string GLOB 'nccl*'",
        ),
    ],
)
def test_tables_by_their_own_names(sql: str, own: str) -> None:
    assert with_relations(sql, _tables()) == own


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM rocpd_string",
        "SELECT S.* FROM rocpd_string S",
        "SELECT guid FROM rocpd_string",
        "SELECT rocpd_string.id FROM rocpd_string",
        "SELECT id FROM rocpd_region, rocpd_string",
        'SELECT id FROM "rocpd_string"',
        "SELECT id FROM rocpd_string WHERE string = 'FROM rocpd_region'",
        "SELECT id FROM rocpd_sample",
        "SELECT name FROM regions",
    ],
)
def test_what_may_mean_something_else(sql: str) -> None:
    text = with_relations(sql, _tables())
    assert text.startswith("WITH ")
    assert text.endswith(sql)


@pytest.mark.parametrize(
    "more",
    [
        {"only": {"rocpd_string": "id > 7"}},
        {"further": {"rocpd_string": ("other",)}},
        {"columns": {"rocpd_string": ("id",)}},
        {"columns": COLUMNS | {"rocpd_outside_string": COLUMNS["rocpd_string"]}, "is_whole": True},
    ],
)
def test_other_rows_or_columns(more: dict[str, object]) -> None:
    assert with_relations("SELECT id FROM rocpd_string", _tables(**more)).startswith("WITH ")
