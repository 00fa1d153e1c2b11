"""What a view is made of: columns with kinds, tables with joins, and what is said of a text that is none."""

from __future__ import annotations

import pytest

from rocpd.schema.load import Kind, Lookup, ViewColumn, ViewTable, read_view, view

SLOW = """\
-- Slow regions with their message.
CREATE VIEW "slow" AS
SELECT
    R.id AS "id",                                     -- region id
    N.string AS "name",                               -- function
    T."tid" AS "tid",                                 -- OS thread id
    R.end - R.start AS "duration",                    -- end - start [ns] {integer}
    json_extract(E.extdata, '$.message') AS "text",   -- what the marker says {text}
    E.extdata AS "extdata"                            -- JSON of the event
FROM
    "rocpd_region{{uuid}}" R
    JOIN "rocpd_event{{uuid}}" E ON E.id = R.event_id
    LEFT JOIN "rocpd_string{{uuid}}" N ON N.id = R.name_id
    LEFT JOIN "rocpd_info_thread{{uuid}}" T ON T.id = R.tid AND T.start < 5
WHERE
    R.end - R.start > 1000
    AND R.tid > 0;
"""


def test_a_text_becomes_columns_and_tables() -> None:
    slow = read_view("slow", SLOW)
    assert slow.doc == "Slow regions with their message."
    assert slow.columns == (
        ViewColumn("id", "region id", "", Kind.INTEGER, "R.id"),
        ViewColumn("name", "function", "", Kind.TEXT, "N.string", Lookup("rocpd_string", "string", "R.name_id")),
        ViewColumn("tid", "OS thread id", "", Kind.INTEGER, 'T."tid"'),
        ViewColumn("duration", "end - start", "ns", Kind.INTEGER, "R.end - R.start"),
        ViewColumn("text", "what the marker says", "", Kind.TEXT, "json_extract(E.extdata, '$.message')"),
        ViewColumn("extdata", "JSON of the event", "", Kind.JSON, "E.extdata"),
    )
    assert slow.tables == (
        ViewTable("rocpd_region", "R", ("id", "end", "start", "event_id", "name_id", "tid"), "", "", ""),
        ViewTable("rocpd_event", "E", ("extdata", "id"), "JOIN", "E.id = R.event_id", "R.event_id"),
        ViewTable("rocpd_string", "N", ("string", "id"), "LEFT JOIN", "N.id = R.name_id", "R.name_id"),
        ViewTable("rocpd_info_thread", "T", ("tid", "id", "start"), "LEFT JOIN", "T.id = R.tid AND T.start < 5", ""),
    )
    assert (slow.where, slow.group_by) == ("R.end - R.start > 1000 AND R.tid > 0", "")
    assert slow.per_rank
    assert slow.is_rows


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        (" {integer}", "", "sql/views/slow.sql: say {integer}, {real}, {text} or {json} after meaning and unit: R.end"),
        ("{integer}", "{number}", "'number' is not a valid Kind"),
        ('"tid", ', '"tid"\n    ,', "not `EXPRESSION AS"),
        ("-- function", "", "not `EXPRESSION AS"),
        ("JOIN", "CROSS JOIN", "not `LEFT JOIN"),
        ("LEFT JOIN", "LEFT JOIN\n    ", "not `LEFT JOIN"),
        ("E.extdata,", "E.data,", "E.data: rocpd_event has no such column"),
        ("FROM\n", "FORM\n", '`CREATE VIEW "slow" AS`, `SELECT` and `FROM` are not lines'),
        ('"slow"', '"fast"', '`CREATE VIEW "slow" AS`, `SELECT`'),
    ],
)
def test_a_mistake_in_a_view_is_named(line: str, other: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"slow\.sql") as raised:
        read_view("slow", SLOW.replace(line, other, 1))
    assert message in str(raised.value)


def test_columns_of_a_view_over_views_are_of_the_kinds_that_it_reads() -> None:
    columns = '    V.name AS "n", -- name\n    V.extdata AS "e", -- JSON\n    V.rank AS "rank", -- rank number'
    columns += '\n    V.hostname AS "hostname" -- host of the rank'
    text = f'CREATE VIEW "x" AS\nSELECT\n{columns}\nFROM\n    "regions" V;'
    over = read_view("x", text)
    assert [column.kind for column in over.columns] == [Kind.TEXT, Kind.JSON, Kind.INTEGER, Kind.TEXT]
    assert (over.reads, over.per_rank, over.is_rows) == (("regions",), False, False)


def test_names_are_looked_up_by_id() -> None:
    kernels = view("kernels")
    assert kernels.column("NAME").lookup == Lookup("rocpd_info_kernel_symbol", "display_name", "K.kernel_id")
    assert kernels.column("category").lookup == Lookup("rocpd_string", "string", "E.category_id")
    assert kernels.column("start") == ViewColumn("start", "start", "ns", Kind.INTEGER, "K.start")
    assert view("samples").column("nid").lookup == Lookup("rocpd_track", "nid", "S.track_id")
    assert view("counters_collection").column("value").kind is Kind.REAL
    assert view("markers").column("name").kind is Kind.TEXT
