"""`rocpd report`: what analyses say of a job as one file, for people who did not run it."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rocpd.base import entries, frozen
from rocpd.base.option import Heading, declare, options_of, plain, spelt
from rocpd.cli.commands import Asked, also_takes
from rocpd.cli.diagnostics import index_hint, job_text, note, progress, report_written
from rocpd.cli.options import Execution, Inputs, SelectionOptions
from rocpd.facts.rank import Options
from rocpd.federate.select.align import Align
from rocpd.report.contents import READ, chosen_sections, known_sections
from rocpd.report.writers import REPORT_FORMATS

if TYPE_CHECKING:
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window
    from rocpd.report.material import ReportBase
    from rocpd.session import Session


def _section_listing() -> str:
    return ", ".join(known_sections())


@frozen
class ReportChoice:
    """The contents of the report, and its file."""

    HEADING: ClassVar = Heading.OUTPUT

    path: Path = plain(
        Path("report.html"),
        "File to write; its ending says which format:",
        "FILE",
        ("-o", "--output-file"),
        listing=partial(", ".join, REPORT_FORMATS),
    )
    sections: tuple[str, ...] = plain(
        (), "Only these sections:", "NAME...", complete=known_sections, listing=_section_listing
    )
    base: tuple[str, ...] = plain(
        (),
        "Compare with this job, or a file of `rocpd diff --save-baseline`; several are runs.",
        "RUN...",
        heading=Heading.INPUTS,
    )
    plots: Path | None = plain(None, "Also write each chart as SVG, PNG and JPEG into this folder.", "DIR")
    force: bool = declare(False, "Replace existing output.")


@also_takes(lambda: entries.declared(READ, Options))
def report(
    inputs: Inputs, chosen: ReportChoice, selection: SelectionOptions, execution: Execution, asked: Asked
) -> None:
    """Write the verdict, charts and tables of a job as one file.

    The verdict first, then the job, ranks over time, where the time goes, steps, kernels, collectives and who waits for
    whom, idle time, launches, copies, memory and counters; at the end the commands that make each table again. Each
    rank is read once. A page (.html) needs no network and no script, and can be sent as it is; a notebook (.ipynb) has
    the code that makes each table and chart again. Formats .pdf and .xlsx need `pip install 'rocpd[report]'`.

    Examples:
        rocpd report job/ -o report.html
        rocpd report job/ -o middle.html --start 40% --end 60%
        rocpd report job/ -o report.pdf --plots charts
        rocpd report after/ -o report.html --base before/
        rocpd report job/ -o kernels.xlsx --sections verdict kernels --rank 0-3
    """
    from rocpd.report.build import ReportOptions, inputs_of, ready, write

    ready(chosen.path, chosen.plots)
    chosen_sections(chosen.sections, has_base=bool(chosen.base))
    given = Options(**asked.fields(Options))
    base = _base(chosen, inputs, selection, execution, given) if chosen.base else None
    with (
        selection.connect(inputs, execution, has_analyses=True) as session,
        index_hint(session.lacks_index),
        progress(f"report on {job_text(session)}", "") as bar,
    ):
        paths = _seen_from(chosen.path.parent, inputs.paths)
        read = " ".join(map(shlex.quote, inputs.paths)) or inputs_of(session)
        words = " ".join([read, *(["--skip-bad"] if inputs.skip_bad else []), *_words(selection)])
        python = _python(paths, selection, inputs.skip_bad)
        options = ReportOptions(chosen.sections, given, words, python, chosen.plots, base)
        write(session, chosen.path, options, chosen.force, bar)
    report_written(chosen.path)
    if chosen.plots:
        report_written(chosen.plots)


def _base(
    chosen: ReportChoice, inputs: Inputs, selection: SelectionOptions, execution: Execution, asked: Options
) -> ReportBase:
    """Return what the job is compared with: what is selected of it is selected of that, too."""
    from rocpd.base.stages import InTurn
    from rocpd.compare.baseline import is_baseline
    from rocpd.compare.options import DiffMetric
    from rocpd.compare.run import Comparing, jobs_among
    from rocpd.report.build import diff_options
    from rocpd.report.material import ReportBase

    def opened(words: Sequence[str]) -> Session:
        return selection.connect(inputs.only(words), execution, has_analyses=True)

    options, runs, folder = diff_options(asked), chosen.base, chosen.path.parent
    selected = " ".join(_words(selection))
    words = "" if selected else " ".join(map(shlex.quote, runs))
    connect = "" if any(map(is_baseline, runs)) else _python(_seen_from(folder, runs), selection, inputs.skip_bad)
    with progress("base", "") as report:
        in_turn = InTurn(report, jobs_among(runs))
        comparing = Comparing(options, DiffMetric(), opened, in_turn, selection=selected, on_note=note)
        return ReportBase(tuple(comparing.runs(runs)), words, connect, options, selected)


def _seen_from(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return paths as they are from the folder of the report: a notebook runs there, and moves with its job."""
    return [os.path.relpath(path, folder) if Path(path).exists() else path for path in paths]


def _python(paths: Sequence[str], selection: SelectionOptions, skip_bad: bool) -> str:
    """Return the arguments of `rocpd.connect` that read the same."""
    asked = {"window": selection.window(), "filters": selection.filters()}
    given = [f"{name}=rocpd.{_made(value)}" for name, value in asked.items() if value]
    align = [f'align="{selection.align}"'] if selection.align != Align.AUTO else []
    offsets = [f"clock_offsets={selection.clock_offsets()!r}"] if selection.clock_offset else []
    return ", ".join([repr(paths or None), *given, *align, *offsets, *(["skip_bad=True"] if skip_bad else [])])


def _made(value: Window | Filters) -> str:
    """Return Python that makes a value, with the fields that differ from their defaults, here and in Python."""
    usual = {option.name: option.default for option in options_of(SelectionOptions)}
    fields = [(field.name, field.default, getattr(value, field.name)) for field in dataclasses.fields(value)]
    given = [f"{name}={has!r}" for name, default, has in fields if has not in (default, usual.get(name, default))]
    return f"{type(value).__name__}({', '.join(given)})"


def _words(selection: SelectionOptions) -> Iterable[str]:
    """Yield the options that select the same once more; which markers are steps selects nothing without --step."""
    for option in options_of(SelectionOptions):
        if option.name != "step_marker" or selection.step is not None:
            yield from spelt(option, getattr(selection, option.name))
