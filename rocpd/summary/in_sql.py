"""Tables of analyses as SQL has them: columns of the table, then those of divisions, and options as arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from typing import cast

from rocpd.base import RocpdError, Row, Value, entries
from rocpd.base.option import Option
from rocpd.facts.rank import By
from rocpd.federate.federation import Federation
from rocpd.federate.relation import Given, JobRelation
from rocpd.schema.calculated import Argument, CalculatedColumn, CalculatedTable
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary.reading import DIVISIONS
from rocpd.summary.registry import SUMMARIES, TABLES
from rocpd.summary.result import Field, away_from_page
from rocpd.summary.run import divides, summary

_WHOLE = "all"


def relation_of(name: str) -> JobRelation:
    """Return a table of an analysis, such as `largest-gaps`, as a table of SQL."""
    analysis = SUMMARIES[TABLES[name]]
    definition = entries.load(f"{analysis.home.partition(':')[0]}:TABLES", name)[name]
    ways = tuple(by for by in By if divides(analysis, frozenset([name]), by))
    fields = [*definition.fields, *(field for by in ways for field in DIVISIONS[by])]
    names = {field.name for field in fields}
    arguments = [divided_by(*ways)] if ways else []
    for option in analysis.options:
        if option.name not in names:
            values = tuple(option.kind) if issubclass(option.kind, StrEnum) else ()
            default = cast("Value", option.default)
            arguments.append(Argument(option.name, option.help.rstrip("."), default, values))
    columns, is_large = columns_of(*fields), analysis.reads_late
    about = away_from_page(definition.doc)
    table = CalculatedTable(name.replace("-", "_"), about, columns, tuple(arguments), is_large=is_large)
    return JobRelation(table, partial(_rows, name=name, columns=[column.name for column in columns]))


def columns_of(*fields: Field) -> tuple[CalculatedColumn, ...]:
    """Return columns of tables as those of SQL, each name once."""
    columns: dict[str, CalculatedColumn] = {}
    for field in fields:
        columns.setdefault(field.name, CalculatedColumn(field.name, field.unit, away_from_page(field.doc)))
    return tuple(columns.values())


def divided_by(*ways: By) -> Argument:
    """Return the argument that divides a table, as `--by` does."""
    return Argument("divided_by", "what the job is divided into; its columns are NULL without", _WHOLE, (_WHOLE, *ways))


def division(given: Given) -> By | None:
    """Return what a statement divides a table by; None: nothing."""
    by = given.get("divided_by", _WHOLE)
    return None if by == _WHOLE else By(str(by))


def note_empty(session: Federation, table: str, error: RocpdError) -> None:
    """Note why a table has no rows: the job lacks what it needs.

    Raises:
        RocpdError: the error is about something else: an option, a file.
    """
    if type(error) is not RocpdError:
        raise error
    session.note("; ".join(filter(None, (f"{table} is empty: {error.message}", error.hint))))


def _value(option: Option, value: Value) -> object:
    """Return what SQL gave for an option; it has no type for yes and no but 1 and 0."""
    return bool(value) if option.kind is bool and value in (0, 1) else value


def _rows(session: Federation, given: Given, *, name: str, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table, by the names of its columns: what divides may put others in the place of some."""
    options = SUMMARIES[TABLES[name]].options
    asked = {option.name: _value(option, given[option.name]) for option in options if option.name in given}
    try:
        table = summary(session, name, division(given), KernelNames.DISPLAY, asked)
    except RocpdError as error:
        note_empty(session, name.replace("-", "_"), error)
        return
    places = [table.columns.index(column) if column in table.columns else None for column in columns]
    for row in table:
        yield tuple(None if place is None else row[place] for place in places)
