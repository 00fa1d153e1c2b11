"""Owns `rocpd schema`: what tables and views there are, and what their columns mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from rocpd import entries
from rocpd.cli import tables
from rocpd.cli.options import TableOptions
from rocpd.errors import UsageError
from rocpd.frozen import frozen
from rocpd.option import Option


def _names() -> Iterable[str]:
    from rocpd.schema.calculated import CALCULATED
    from rocpd.schema.load import TABLES, VIEWS

    return (*CALCULATED, *VIEWS, *TABLES)


@frozen
class SchemaOptions:
    """Which table or view, and how the answer looks."""

    relation: Annotated[str | None, Option("One of them.", "[TABLE|VIEW]", is_positional=True, complete=_names)] = None
    format: Annotated[str, tables.FORMAT] = ""


def schema(asked: SchemaOptions, output: TableOptions) -> None:
    """List tables and views, or the columns of one.

    SQL can name all of them; columns have their unit and meaning.

    Examples:
        rocpd schema
        rocpd schema kernels
    """
    form, path = tables.format_and_path(asked.format, output)
    with tables.open_output(path, output) as out:
        if asked.relation is None:
            tables.write_rows(("name", "kind", "about"), _relations(), out, form)
        else:
            tables.write_rows(("column", "unit", "meaning"), iter(_columns(asked.relation)), out, form)


def _relations() -> Iterator[tuple[str, str, str]]:
    from rocpd.schema.calculated import CALCULATED
    from rocpd.schema.load import TABLES, VIEWS, table, view

    yield from ((name, "calculated", known.doc.splitlines()[0]) for name, known in CALCULATED.items())
    yield from ((name, "view", view(name).doc.splitlines()[0]) for name in VIEWS)
    yield from ((name, "table", table(name).doc.splitlines()[0]) for name in TABLES)


def _columns(name: str) -> list[tuple[str, str, str]]:
    from rocpd.schema.calculated import CALCULATED
    from rocpd.schema.load import TABLES, VIEWS, table, view

    wanted = name.lower()
    if wanted in CALCULATED or wanted in VIEWS:
        described = CALCULATED[wanted] if wanted in CALCULATED else view(wanted)
        return [(column.name, column.unit, column.doc) for column in described.columns]
    base = wanted if wanted in TABLES else f"rocpd_{wanted}"
    if base not in TABLES:
        known = (*CALCULATED, *VIEWS, *TABLES)
        relations = {each.replace("_", "-"): each for each in known}  # as `closest` spells words
        near = [relations[each] for each in entries.closest(wanted, relations)]
        hint = f"did you mean {' or '.join(near)}?" if near else "`rocpd schema` lists them"
        raise UsageError(f"{name}: no table or view of that name", hint)
    columns = table(base).columns
    return [(c.name, c.unit, c.doc + (f" (since {c.since})" if c.since else "")) for c in columns]
