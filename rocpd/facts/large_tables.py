"""Reads the columns of a statement on a large table and its events from the pages of the file, in place of SQLite.

For a rank whose rows count all, and statements that take columns of one table and of the event of each row as they are,
with no other condition than on the event's category. Never decides what a statement means: its text does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence

import numpy as np

from rocpd.base import NULL, Ints, frozen
from rocpd.federate.run.pages import OtherFormError, Pages, pages_of
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.categories import IS_CALL, NO_CALLS

_FEW_PAGES, _SMALL = 64, 2 << 20  # a table of so many pages, or a file of so many bytes, SQLite reads as quickly
_EVENT, _CATEGORY = "rocpd_event", "category_id"
_OF_EVENT = ("id", _CATEGORY, "stack_id")  # all that statements ask for: looking for rows again takes longer
_FORM = (
    r"(?s)\s*SELECT\s+(?P<items>.+?)\s+FROM\s+(?P<base>\w+)\s+(?P<alias>\w)\s+"
    rf"LEFT JOIN {_EVENT} E ON E\.id = (?P=alias)\.event_id\s*(?P<where>WHERE\s.*)?"
)
_ITEM = r'(?P<alias>\w)\."?(?P<column>\w+)"?(?:\s+AS\s+(?P<name>\w+))?'


@frozen
class _Form:
    """Tables and columns of a statement.

    Args:
        base: its table.
        of_base: name of a column of the statement -> column of the table.
        of_event: the same for columns of the event.
        only_calls: rows of categories that are no calls don't count.
    """

    base: str
    of_base: dict[str, str]
    of_event: dict[str, str]
    only_calls: bool


@functools.lru_cache(64)  # rank after rank
def _form(sql: str) -> _Form | None:
    """Return what a statement reads; None if it is of another kind."""
    form = re.fullmatch(_FORM, sql)
    if not form or form["where"] not in (None, f"WHERE {IS_CALL}"):
        return None
    of_base: dict[str, str] = {}
    of_event: dict[str, str] = {}
    for item in filter(None, (re.fullmatch(_ITEM, item) for item in re.split(r",\s+", form["items"]))):
        column = item["column"]
        if item["alias"] != "E":
            of_base[item["name"] or column] = column
        elif column in _OF_EVENT:
            of_event[item["name"] or column] = column
    return _Form(form["base"], of_base, of_event, form["where"] is not None)


def read_large(reader: RankReader, sql: str, names: Sequence[str]) -> list[Ints] | None:
    """Return columns of a statement, `NULL` for NULL, rows in order of ids; None: SQLite has to read them.

    Args:
        reader: reads the rank.
        sql: the statement.
        names: names of columns of whole numbers.
    """
    tables, opening = reader.tables, reader.rank.opening
    form = _form(sql) if opening.size >= _SMALL else None
    if form is None or not form.of_base.keys() | form.of_event.keys() >= {*names}:
        return None
    if any(base not in tables.by_id or tables.rows(base) != tables.name(base) for base in (form.base, _EVENT)):
        return None
    of_base = [*dict.fromkeys((*(form.of_base[name] for name in names if name in form.of_base), "event_id"))]
    of_event = {form.of_event[name] for name in names if name in form.of_event}
    of_event |= {_CATEGORY} if form.only_calls else set()
    try:
        with reader.lend() as database, pages_of(opening, database.connection) as pages:
            read = dict(zip(of_base, pages.columns(form.base + tables.suffix, of_base, _FEW_PAGES), strict=True))
            events = _of_events(reader, pages, read["event_id"], of_event)
    except OtherFormError:
        return None
    columns = [read[form.of_base[name]] if name in form.of_base else events[form.of_event[name]] for name in names]
    others = [number for (number,) in reader.rows(NO_CALLS)] if form.only_calls else []
    return [column[~np.isin(events[_CATEGORY], others)] for column in columns] if others else columns


def _of_events(reader: RankReader, pages: Pages, event: Ints, names: Collection[str]) -> dict[str, Ints]:
    """Return columns of the events with these ids, `NULL` where there is none; they are read once for all tables."""
    if not names:
        return {}
    known: dict[str, Ints] = reader.once(("events", pages.version), dict)
    if not known:
        known |= zip(_OF_EVENT, pages.columns(_EVENT + reader.tables.suffix, _OF_EVENT), strict=True)
    ids = known["id"]
    if not len(ids):
        return {name: np.full(len(event), NULL) for name in names}
    row = event - ids[0] if ids[-1] - ids[0] == len(ids) - 1 else np.searchsorted(ids, event)
    row[(row < 0) | (row >= len(ids))] = 0
    is_known = ids[row] == event
    columns = {name: known[name][row] for name in names}
    return columns if is_known.all() else {name: np.where(is_known, each, NULL) for name, each in columns.items()}
