"""`rocpd info` describes the inputs; `rocpd schema` lists the names of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from rocpd.base import Row, UsageError, entries, frozen
from rocpd.base.option import plain
from rocpd.base.texts import visible
from rocpd.cli import tables
from rocpd.cli.diagnostics import note
from rocpd.cli.options import JobChoice, TableOptions
from rocpd.cli.terminal import screen_of
from rocpd.schema.load import TABLES, VIEWS, table, view
from rocpd.table.palette import Screen

if TYPE_CHECKING:
    from rocpd.federate.describe import Problem


class InfoSection(StrEnum):
    """Sections of the description."""

    JOB = "job"
    RANKS = "ranks"
    AGENTS = "agents"
    TABLES = "tables"
    CLOCKS = "clocks"
    PROBLEMS = "problems"

    @classmethod
    def _missing_(cls, value: object) -> InfoSection | None:
        return cls.PROBLEMS if value == "odd" else None  # the former name of the section


_SHARED = ("ranks", "which", "what")
_FACT = 12  # characters of the name of a fact
_MINOR: Mapping[str, frozenset[str]] = {
    InfoSection.RANKS: frozenset({"mb", "pid", "schema", "clock_domain", "run"}),
    InfoSection.AGENTS: frozenset({"agent", "mhz"}),
    InfoSection.CLOCKS: frozenset({"likely_ns", "drift_ppm", "collectives"}),
}
"""Section -> columns that a narrow screen omits."""


@frozen
class InfoOptions:
    """The section, and its format."""

    only: InfoSection | None = plain(None, "One section; formats other than console have the ranks, if none is named.")
    format: str = tables.format_option()


def info(job: JobChoice, asked: InfoOptions, output: TableOptions) -> None:
    """Show the job: GPUs, versions, ranks, rows, problems.

    Ranks of one clock_domain have comparable timestamps; span_s is first start to last end in seconds. offset_ns is
    added to the times of a host for the common time line; its error is below certain_ns, and probably below likely_ns.

    Examples:
        rocpd info job/
        rocpd info job/ --only ranks --format csv
        rocpd info job/ --only clocks
    """
    from rocpd.federate.describe import describe

    form, path = tables.format_and_path(asked.format, output)
    only = asked.only or (InfoSection.RANKS if form else None)
    with job.connect() as session, tables.open_output(path, output) as out:
        screen = screen_of(out)
        described = describe(session, (only,) if only else ())
        for number, (name, section) in enumerate(described.items()):
            if only is None:
                heading = screen.bold(name.upper()) if screen else name.upper()
                out.write(("\n" if number else "") + heading + "\n")
            if form:
                tables.write_rows(section.columns, iter(section), out, form)
            elif not section.first(1):
                out.write("no problems\n" if name == InfoSection.PROBLEMS else "none\n")
            elif name == InfoSection.PROBLEMS:
                _show(name, _SHARED, _shared(described.problems), out)
            else:
                _show(name, section.columns, iter(section), out)


def _show(name: str, columns: Sequence[str], rows: Iterator[Row], out: TextIO) -> None:
    """Write a section; a screen that is too narrow for all columns gets the most important ones."""
    if (screen := screen_of(out)) is None:
        tables.write_rows(columns, rows, out)
    elif name == InfoSection.JOB:
        out.writelines(line for fact, value in rows for line in _fact(fact, value, screen))
    else:
        from rocpd.table.human import Head, write_readable

        minor = _MINOR.get(name, frozenset())
        shown = write_readable([Head(column, minor=column in minor) for column in columns], rows, out, screen=screen)
        if shown.columns:
            note(f"this terminal is too narrow for {name}: {', '.join(shown.columns)}")


def _fact(fact: str, value: str, screen: Screen) -> Iterator[str]:
    """Yield the lines of a fact."""
    from textwrap import wrap

    first, *more = wrap(visible(value), max(screen.width - _FACT, 1)) or [""]
    yield f"{screen.bold(fact)}{' ' * (_FACT - len(fact))}{first}\n"
    yield from (f"{'':{_FACT}}{line}\n" for line in more)


def _shared(problems: Sequence[Problem]) -> Iterator[Row]:
    """Yield problems for people: a problem of several ranks once."""
    from rocpd.facts.communication.collectives import listed
    from rocpd.federate.describe import shared

    for problem in shared(problems):
        yield len(problem.ranks), listed(sorted(set(problem.ranks))), problem.text


def _names() -> Iterable[str]:
    from rocpd.summary.relations import BARE, RELATIONS

    return (*RELATIONS, *BARE, *VIEWS, *TABLES)


@frozen
class SchemaOptions:
    """The tables or views, and the format of the answer."""

    relations: tuple[str, ...] = plain((), "Some of them.", "[TABLE|VIEW]...", is_positional=True, complete=_names)
    format: str = tables.format_option()


def schema(asked: SchemaOptions, output: TableOptions) -> None:
    """List tables and views, or the columns of some.

    SQL can name all of them; columns have their unit and meaning. Tables of `rocpd summary` are in schema `summary`.

    Examples:
        rocpd schema
        rocpd schema kernels
        rocpd schema summary.idle summary.idle-calls
    """
    if not asked.relations:
        tables.write_table(("name", "kind", "about"), _relations(), output, asked.format)
        return
    columns = [(name, *column) for name in asked.relations for column in _columns(name)]
    first = int(len(asked.relations) == 1)  # then the name of the table goes without saying
    heads = ("table", "column", "unit", "meaning")
    tables.write_table(heads[first:], (column[first:] for column in columns), output, asked.format)


def _relations() -> Iterator[tuple[str, str, str]]:
    from rocpd.summary.relations import RELATIONS

    yield from ((name, "view", view(name).doc.splitlines()[0]) for name in VIEWS)
    yield from ((name, "table", table(name).doc.splitlines()[0]) for name in TABLES)
    yield from ((name, "calculated", load().table.doc.splitlines()[0]) for name, load in RELATIONS.items())


def _columns(name: str) -> list[tuple[str, str, str]]:
    from rocpd.summary.relations import RELATIONS, find

    wanted = name.lower().replace("-", "_")
    if wanted in VIEWS:
        return [(column.name, column.unit, column.doc) for column in view(wanted).columns]
    if calculated := find(wanted):
        chosen = RELATIONS[calculated]().table
        columns = [(column.name, column.unit, column.doc) for column in chosen.columns]
        return columns + [(argument.name, "argument", argument.meaning) for argument in chosen.arguments]
    if wanted.partition("_")[0] == "diff":  # SQL on one job has no tables of two jobs
        from rocpd.compare.tables import TABLES as OF_DIFF

        if of_diff := OF_DIFF.get(wanted.replace("_", "-")):
            return [(field.name, field.unit, field.doc) for field in of_diff.fields]
    base = wanted if wanted in TABLES else f"rocpd_{wanted}"
    if base not in TABLES:
        relations = {each.replace("_", "-"): each for each in _names()}  # as `closest` spells words
        near = [relations[each] for each in entries.closest(wanted, relations)]
        hint = f"did you mean {' or '.join(near)}?" if near else "`rocpd schema` lists them"
        raise UsageError(f"{name}: no table or view of that name", hint)
    return [(c.name, c.unit, c.doc + (f" (since {c.since})" if c.since else "")) for c in table(base).columns]
