"""Owns how analyses reach people and files: which were named, where their tables go, in which form."""

from __future__ import annotations

import difflib
import importlib
import io
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rocpd.cli.diagnostics import clear_bars, progress, tell, wrote
from rocpd.cli.emit import TableFormat, target
from rocpd.errors import RocpdError, UsageError
from rocpd.summary.registry import SUMMARIES, TABLES

if TYPE_CHECKING:
    from rocpd.session import Session
    from rocpd.summary.options import Options
    from rocpd.summary.result import Summary

ALL = "all"
"""Stands for every analysis that is built in; those that lack data say so."""


class SummaryFormat(StrEnum):
    """How summaries look; the last four are forms of the call tree and of the list of operations alone."""

    CONSOLE = "console"
    CSV = "csv"
    JSON = "json"
    MD = "md"
    HTML = "html"
    PARQUET = "parquet"
    FOLDED = "folded"
    SPEEDSCOPE = "speedscope"
    RAPTOR = "raptor"
    LOGDURATION = "logduration"


_FEW = 6  # tables that are named when their rows are cut
_TEXTS = {
    SummaryFormat.FOLDED: ("calls", "rocpd.summary.flame:folded"),
    SummaryFormat.SPEEDSCOPE: ("calls", "rocpd.summary.flame:speedscope"),
    SummaryFormat.RAPTOR: ("op-trace", "rocpd.summary.trace_text:raptor"),
    SummaryFormat.LOGDURATION: ("op-trace", "rocpd.summary.trace_text:logduration"),
}
"""Forms of one analysis alone: its name, and what writes it."""
_USED_BY = {
    "sequence": ("variability",),
    "categories": ("categories", "gpu-time", "ranks", "variability"),
    "step_marker": ("ranks", "launch"),
}
"""Options that concern some analyses only."""
_PAGES = (SummaryFormat.MD, SummaryFormat.HTML)
_ENDINGS = {
    SummaryFormat.CONSOLE: "txt",
    SummaryFormat.SPEEDSCOPE: "speedscope.json",
    SummaryFormat.RAPTOR: "txt",
    SummaryFormat.LOGDURATION: "log",
}


def names_first(words: Sequence[str], further: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Tell names of summaries from inputs: a file that is called like a summary is `./kernels`.

    >>> names_first(["kernels", "gaps", "job/a.db"])
    (['kernels', 'gaps'], ['job/a.db'])
    """
    known = {*TABLES, ALL, *further}
    return [word for word in words if word in known], [word for word in words if word not in known]


def check_names(words: Iterable[str], further: Iterable[str] = ()) -> None:
    """Find out which inputs are misspelled names of summaries.

    Raises:
        UsageError: a bare word that is no file.
    """
    known = [*TABLES, ALL, *further]
    for word in words:
        if re.fullmatch(r"[A-Za-z_-]+", word) and not Path(word).exists():
            close = difflib.get_close_matches(word.lower().replace("_", "-"), known, n=1)
            hint = f"did you mean {close[0]}?" if close else "`rocpd summary --list` shows all summaries"
            raise UsageError(f"{word}: neither a summary nor a file", hint)


def check_options(names: Iterable[str], given: Iterable[str]) -> None:
    """Find out whether every option concerns something that is asked for.

    Args:
        names: analyses or tables.
        given: keys of `_USED_BY`.

    Raises:
        UsageError: an option that would change nothing.
    """
    asked = {TABLES.get(name, name) for name in names}
    for option in given:
        used = _USED_BY[option]
        if asked <= {*SUMMARIES} - {*used}:
            text = option.replace("_", "-")
            raise UsageError(f"--{text} concerns none of {', '.join(sorted(asked))}", f"it is for {', '.join(used)}")


def hint_for(form: SummaryFormat) -> str:
    """Give a command line with a form of named summaries."""
    return f"rocpd summary {_TEXTS[form][0] if form in _TEXTS else 'kernels'} --format {form}"


def listing() -> Iterator[tuple[str, str, str]]:
    """Give (name, tables beside the one of that name, what it says) of every analysis."""
    from rocpd.summary.run import others

    for name, analysis in SUMMARIES.items():
        yield name, " ".join(analysis.tables[1:]), analysis.help
    for name, point in others().items():
        yield name, "", f"from {point.dist.name if point.dist else point.value}"


def deliver(
    session: Session, names: Sequence[str], options: Options, form: SummaryFormat, place: tuple[str | None, bool, int]
) -> None:
    """Run analyses and write their tables.

    Args:
        session: what to read.
        names: analyses or tables; those that lack data are told, unless all do.
        options: what is asked of each.
        form: form of the tables.
        place: prefix of the files, None for stdout; whether files are replaced; most rows on the console.

    Raises:
        RocpdError: no analysis has the data that it needs.
        UsageError: an unknown name, or a form that fits no table.
    """
    prefix, force, limit = place
    wanted = list(SUMMARIES) if ALL in names else list(dict.fromkeys(names))
    if form in _TEXTS:
        _deliver_text(session, (wanted, options), form, (prefix, force))
        return
    found = _run(session, wanted, options)
    if form is SummaryFormat.PARQUET:
        _parquet(found, prefix or "", force)
    elif prefix is None:
        with target(None, force) as out:
            _sections(found, out, form, limit)
    elif form in _PAGES:
        with target(Path(f"{prefix}.{form.value}"), force) as out:
            _sections(found, out, form, 0)
    else:
        for summary in found:
            path = Path(f"{prefix}_{summary.name}.{_ENDINGS.get(form, form.value)}")
            with target(path, force) as out:
                _one(summary, out, form, 0)


def _run(session: Session, wanted: Sequence[str], options: Options) -> Iterator[Summary]:
    """Run one analysis after the other; a table that was given is written before the next is computed."""
    from rocpd.summary.reading import Reading
    from rocpd.summary.run import planned, run_analysis

    given, missing = 0, []
    plan = planned(wanted)
    for name, tables in plan.items():
        try:
            with progress(name, "ranks") as report:
                for summary in run_analysis(Reading(session, options, report), name, tables):
                    given += 1
                    clear_bars()
                    yield summary
        except UsageError:
            raise
        except RocpdError as error:
            missing.append(error)
            if len(plan) > 1:
                tell(f"{name}: {error.message}")
    if missing and not given:
        raise missing[0] if len(plan) == 1 else RocpdError("no summary has the data that it needs")


def _sections(found: Iterator[Summary], out: TextIO, form: SummaryFormat, limit: int) -> None:
    """Write several tables to one place; json becomes an object of tables when there is more than one."""
    if form is SummaryFormat.HTML:
        from rocpd.table.html import write_html_page

        write_html_page([(summary.name, summary.columns, iter(summary)) for summary in found], out)
        return
    if form is SummaryFormat.JSON:
        _json(list(found), out)
        return
    cut, narrow = [], []
    for number, summary in enumerate(found):
        out.write("\n" if number else "")
        if form is SummaryFormat.CONSOLE:
            out.write(f"{summary.name.upper()}\n")
        elif form is SummaryFormat.MD:
            out.write(f"## {summary.name}\n\n{summary.doc}\n\n")
        rows, columns = _one(summary, out, form, limit)
        cut += [summary.name] if rows else []
        narrow += [f"{summary.name}: {', '.join(columns)}"] if columns else []
    if narrow:
        out.flush()
        more = f"columns of {len(narrow)} tables" if len(narrow) > _FEW else "; ".join(narrow)
        tell(f"this terminal is too narrow for {more}")
    if cut:
        which = ", ".join(cut) if len(cut) <= _FEW else f"{len(cut)} tables"
        tell(f"cut at {limit} rows: {which}; --limit 0 shows all")


def _json(found: Sequence[Summary], out: TextIO) -> None:
    if len(found) == 1:
        _one(found[0], out, SummaryFormat.JSON, 0)
        return
    for number, summary in enumerate(found):
        text = io.StringIO()
        _one(summary, text, SummaryFormat.JSON, 0)
        out.write(f'{"," if number else "{"}\n"{summary.name}": {text.getvalue().rstrip()}')
    out.write("\n}\n")


def _one(summary: Summary, out: TextIO, form: SummaryFormat, limit: int) -> tuple[bool, tuple[str, ...]]:
    """Write one table; give whether rows were cut off, and which columns did not fit."""
    if form is not SummaryFormat.CONSOLE:
        from rocpd.table import writer

        writer(TableFormat(form.value).value)(summary.columns, iter(summary), out)
        return False, ()
    width = shutil.get_terminal_size().columns if out.isatty() else None
    return summary.write_people(out, limit, width)


def _parquet(found: Iterator[Summary], prefix: str, force: bool) -> None:
    import pyarrow.parquet as pq

    from rocpd.output import complete_or_nothing

    for summary in found:
        path = Path(f"{prefix}_{summary.name}.parquet")
        batches = summary.arrow_batches()
        with (
            complete_or_nothing(path, force) as temporary,
            pq.ParquetWriter(temporary, batches.schema, compression="zstd") as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        wrote(path)


def _deliver_text(
    session: Session, asked: tuple[list[str], Options], form: SummaryFormat, place: tuple[str | None, bool]
) -> None:
    from rocpd.summary.reading import Reading

    names, options = asked
    analysis, function = _TEXTS[form]
    if names != [analysis]:
        raise UsageError(f"--format {form} is a form of {analysis}", f"rocpd summary {analysis} --format {form}")
    if analysis == "op-trace" and options.by:
        raise UsageError(f"--format {form} can't be divided: it has no columns for that", "leave --by out")
    module, _, attribute = function.partition(":")
    write = getattr(importlib.import_module(module), attribute)
    prefix, force = place
    path = Path(f"{prefix}_{analysis}.{_ENDINGS.get(form, form.value)}") if prefix else None
    with target(path, force) as out, progress(analysis, "ranks") as report:
        for text in write(Reading(session, options, report)):
            out.write(text)
