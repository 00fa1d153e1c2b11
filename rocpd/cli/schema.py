"""Owns `rocpd schema`: what tables and views there are, and what their columns mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from rocpd.base import entries
from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.cli import tables
from rocpd.cli.options import TableOptions


def _names() -> Iterable[str]:
    from rocpd.schema.load import TABLES, VIEWS
    from rocpd.summary.relations import BARE, RELATIONS

    return (*RELATIONS, *BARE, *VIEWS, *TABLES)


@frozen
class SchemaOptions:
    """Which table or view, and how the answer looks."""

    relation: Annotated[str | None, Option("One of them.", "[TABLE|VIEW]", is_positional=True, complete=_names)] = None
    format: Annotated[str, tables.FORMAT] = ""


def schema(asked: SchemaOptions, output: TableOptions) -> None:
    """List tables and views, or the columns of one.

    SQL can name all of them; columns have their unit and meaning. Those of `rocpd summary` are in the schema `summary`.

    Examples:
        rocpd schema
        rocpd schema kernels
        rocpd schema summary.budget
    """
    form, path = tables.format_and_path(asked.format, output)
    with tables.open_output(path, output) as out:
        if asked.relation is None:
            tables.write_rows(("name", "kind", "about"), _relations(), out, form)
        else:
            tables.write_rows(("column", "unit", "meaning"), iter(_columns(asked.relation)), out, form)


def _relations() -> Iterator[tuple[str, str, str]]:
    from rocpd.schema.load import TABLES, VIEWS, table, view
    from rocpd.summary.relations import RELATIONS

    yield from ((name, "view", view(name).doc.splitlines()[0]) for name in VIEWS)
    yield from ((name, "table", table(name).doc.splitlines()[0]) for name in TABLES)
    yield from ((name, "calculated", load().table.doc.splitlines()[0]) for name, load in RELATIONS.items())


def _columns(name: str) -> list[tuple[str, str, str]]:
    from rocpd.schema.load import TABLES, VIEWS, table, view
    from rocpd.summary.relations import RELATIONS, find

    wanted = name.lower()
    if wanted in VIEWS:
        return [(column.name, column.unit, column.doc) for column in view(wanted).columns]
    if calculated := find(wanted):
        chosen = RELATIONS[calculated]().table
        columns = [(column.name, column.unit, column.doc) for column in chosen.columns]
        return columns + [(argument.name, "argument", argument.meaning) for argument in chosen.arguments]
    base = wanted if wanted in TABLES else f"rocpd_{wanted}"
    if base not in TABLES:
        relations = {each.replace("_", "-"): each for each in _names()}  # as `closest` spells words
        near = [relations[each] for each in entries.closest(wanted, relations)]
        hint = f"did you mean {' or '.join(near)}?" if near else "`rocpd schema` lists them"
        raise UsageError(f"{name}: no table or view of that name", hint)
    described = table(base).columns
    return [(c.name, c.unit, c.doc + (f" (since {c.since})" if c.since else "")) for c in described]
