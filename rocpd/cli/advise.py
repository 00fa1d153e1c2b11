"""`rocpd advise`: causes of lost time and what to do about them; `rocpd whatif`: how long a step would take without
them; `rocpd report`: the analyses of a job as one file, for people who did not run it.
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rocpd.base import entries, frozen
from rocpd.base.option import Heading, declare, options_of, plain, spelt
from rocpd.base.texts import as_data
from rocpd.cli import tables
from rocpd.cli.commands import Asked, also_takes, hides
from rocpd.cli.diagnostics import clear_bars, job_text, note, progress, report_written
from rocpd.cli.options import FilterOptions, JobChoice, SelectionOptions, TableOptions, WindowOptions
from rocpd.cli.terminal import screen_of
from rocpd.facts.rank import Options
from rocpd.federate.select.align import Align
from rocpd.report.contents import READ, chosen_sections, known_sections
from rocpd.report.writers import REPORT_FORMATS
from rocpd.table import CONSOLE

if TYPE_CHECKING:
    from rocpd.federate.select.filters import Filters
    from rocpd.federate.select.window import Window
    from rocpd.report.material import ReportBase

_FEW = 3  # inputs that commands name one by one


def _forms() -> tuple[str, ...]:
    from rocpd.advice.advice import FORMS

    return tuple(FORMS)


@frozen
class AdviceChoice:
    """The question to the rules."""

    thresholds: Path | None = plain(None, "Other thresholds, TOML: [rule] name = number.", "FILE")
    explain: str | None = plain(None, "Only explain a rule: its data, and when it fires.", "RULE")
    list: bool = plain(False, "List the rules.")
    format: str = tables.format_option("Format:", _forms)


@also_takes(lambda: entries.declared(("categories", "step_marker"), Options))
def advise(job: JobChoice, chosen: AdviceChoice, output: TableOptions, asked: Asked) -> None:
    """Say what costs time, and what to do about it.

    Rules look at the job in turn. Findings come in the order of their gains: by how much a step gets shorter in a
    replay of the job without the cause; gains do not add up. A rule without its data says what to record. The exit
    code is 0 with and without findings.

    Examples:
        rocpd advise job/
        rocpd advise job/ --format json -o advice.json
        rocpd advise --explain gpu.starved
    """
    from rocpd.advice.advice import FORMS
    from rocpd.advice.judge import advise as ask

    if chosen.list or chosen.explain:
        from rocpd.advice.registry import explained, listed

        lines = list(explained(chosen.explain) if chosen.explain else listed())
        with tables.open_output(None, output) as out:
            out.writelines(f"{line}\n" for line in lines)
        return
    name, path = tables.form_and_path(chosen.format, output, {name: form.ending for name, form in FORMS.items()})
    with (
        job.connect(has_analyses=True) as session,
        progress(f"advice on {job_text(session)}", "") as report,
    ):
        words = shlex.join(job.paths) if len(job.paths) <= _FEW else None
        advice = ask(session, Options(**asked.fields(Options)), chosen.thresholds, report, words)
    clear_bars()
    with tables.open_output(path, output) as out:
        screen = screen_of(out)
        shown = out if name == CONSOLE else as_data(out)
        shown.write(FORMS[name].text(advice, screen.width if screen else None))


def _kinds(verb: str) -> list[str]:
    from rocpd.replay.changes import KINDS, Verb

    return [f"{kind}:" if name and name[0] != "[" else kind for kind, name in KINDS[Verb(verb)].items()]


@frozen
class Changed:
    """The changes."""

    without: tuple[str, ...] = plain(
        (),
        "Take away the time beyond the usual of straggler, rank:6, host:NAME, link:0-3 or step:7; or all time of "
        "call:REGEX with its waits for the GPU, or of the longest gap of the host, gap:1.",
        "KIND:NAME",
        complete=partial(_kinds, "without"),
    )
    scale: tuple[str, ...] = plain(
        (),
        "Times are multiplied: kernel:REGEX=0.7, call:REGEX=0 (but for its waits), collective:all-reduce=0.8, "
        "link:0-3=0.5, rank:6=0.9, launch=0.5, compute=0.9, copies=0, host=0.5.",
        "KIND[:NAME]=FACTOR",
        complete=partial(_kinds, "scale"),
    )
    overlap: tuple[str, ...] = plain(
        (),
        "comm, comm:RANKS or copies: they hold up only the work that needs all of them.",
        "KIND",
        complete=partial(_kinds, "overlap"),
    )
    format: str = tables.format_option("Format:", tables.TEXT_OR_JSON.keys)


def _parts_of_jobs() -> Iterator[str]:
    """Yield the names of the options that choose events or a window: whatif replays whole jobs."""
    for group, kept in ((WindowOptions, ("align", "clock_offset", "step_marker")), (FilterOptions, ("rank", "host"))):
        yield from (option.name for option in options_of(group) if option.name not in kept)


@hides(_parts_of_jobs)
@also_takes(lambda: entries.declared(("categories", "step_marker"), Options))
def whatif(job: JobChoice, changed: Changed, output: TableOptions, asked: Asked) -> None:
    """Predict how long a step would take, had something been different.

    The job, with the waits between ranks, is replayed with the changes; by default without each cause that was found,
    without all of them, and without copies, communication or host work if a step waits long for these. The answer has
    bounds, and names the work that a step then waits for.

    Examples:
        rocpd whatif job/
        rocpd whatif job/ --without straggler
        rocpd whatif job/ --scale launch=0.5 --overlap comm --format json
    """
    from rocpd.replay.changes import changes
    from rocpd.replay.whatif import what_if
    from rocpd.schema.rules.kernel_categories import load

    form, path = tables.form_and_path(changed.format, output, tables.TEXT_OR_JSON)
    wanted = changes(changed.without, changed.scale, changed.overlap)
    options = Options(**asked.fields(Options))
    with (
        job.connect(has_analyses=True) as session,
        progress(f"replays of {job_text(session)}", "") as report,
    ):
        answer = what_if(session, wanted, load(options.categories), options.step_marker, report)
    clear_bars()
    with tables.open_output(path, output) as out:
        tables.write_answer(answer.document(), str(answer).splitlines(), out, form)


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
        (), "Only these sections:", "NAME...", complete=known_sections, listing=lambda: ", ".join(known_sections())
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
def report(job: JobChoice, chosen: ReportChoice, asked: Asked) -> None:
    """Write the verdict, charts and tables of a job as one file.

    The verdict first, then the job, ranks over time, where the time goes, steps, kernels, collectives and the waits for
    them, idle time, launches, copies, memory and counters; at the end the commands that make each table again. Each
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
    base = _base(chosen, job, given) if chosen.base else None
    with (
        job.connect(has_analyses=True) as session,
        progress(f"report on {job_text(session)}", "") as bar,
    ):
        paths = _seen_from(chosen.path.parent, job.paths)
        read = " ".join(map(shlex.quote, job.paths)) or inputs_of(session)
        words = " ".join([read, *(["--skip-bad"] if job.skip_bad else []), *_words(job)])
        options = ReportOptions(chosen.sections, given, words, _python(paths, job), chosen.plots, base)
        write(session, chosen.path, options, chosen.force, bar)
    report_written(chosen.path)
    if chosen.plots:
        report_written(chosen.plots)


def _base(chosen: ReportChoice, job: JobChoice, asked: Options) -> ReportBase:
    """Return the base of the comparison, with the same selection as the job."""
    from rocpd.base.stages import InTurn
    from rocpd.compare.baseline import is_baseline
    from rocpd.compare.run import Comparing, jobs_among
    from rocpd.report.build import diff_options
    from rocpd.report.material import ReportBase

    options, runs, folder = diff_options(asked), chosen.base, chosen.path.parent
    selected = " ".join(_words(job))
    words = "" if selected else " ".join(map(shlex.quote, runs))
    connect = "" if any(map(is_baseline, runs)) else _python(_seen_from(folder, runs), job)
    with progress("base", "") as report:
        in_turn = InTurn(report, jobs_among(runs))
        comparing = Comparing(options, job.open_side, in_turn, selection=selected, on_note=note)
        return ReportBase(tuple(comparing.runs(runs)), words, connect, options, selected)


def _seen_from(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return paths relative to the folder of the report: a notebook runs there, and moves with its job."""
    return [os.path.relpath(path, folder) if Path(path).exists() else path for path in paths]


def _python(paths: Sequence[str], job: JobChoice) -> str:
    """Return the arguments of `rocpd.connect` that read the same part of the job."""
    asked = {"window": job.window(), "filters": job.filters()}
    given = [f"{name}=rocpd.{_made(value)}" for name, value in asked.items() if value]
    align = [f'align="{job.align}"'] if job.align != Align.AUTO else []
    offsets = [f"clock_offsets={job.clock_offsets()!r}"] if job.clock_offset else []
    return ", ".join([repr(paths or None), *given, *align, *offsets, *(["skip_bad=True"] if job.skip_bad else [])])


def _made(value: Window | Filters) -> str:
    """Return Python that makes a value, with the fields that differ from the defaults of option and class."""
    usual = {option.name: option.default for option in options_of(SelectionOptions)}
    fields = [(field.name, field.default, getattr(value, field.name)) for field in dataclasses.fields(value)]
    given = [f"{name}={has!r}" for name, default, has in fields if has not in (default, usual.get(name, default))]
    return f"{type(value).__name__}({', '.join(given)})"


def _words(selection: SelectionOptions) -> Iterable[str]:
    """Yield the options that repeat the selection; --step-marker only beside --step, since it selects nothing alone."""
    for option in options_of(SelectionOptions):
        if option.name != "step_marker" or selection.step is not None:
            yield from spelt(option, getattr(selection, option.name))
