"""Makes a report and writes it: sections are chosen, all ranks are read once, files appear when complete."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rocpd.advice.judge import USUAL
from rocpd.base import Progress, UsageError, amount, entries, frozen
from rocpd.base.boundary import each_for_itself
from rocpd.base.option import options_of, typed
from rocpd.base.output import check_folder_free, check_free, complete_or_nothing, folder_complete_or_nothing
from rocpd.base.stages import Stage
from rocpd.base.version import __version__
from rocpd.compare.options import DiffOptions
from rocpd.compare.run import profiles_of
from rocpd.facts.rank import Options
from rocpd.facts.recorders import recorder_of
from rocpd.federate.describe import importers_of
from rocpd.federate.federation import Federation
from rocpd.report.contents import READ, Entry, chosen_sections
from rocpd.report.material import Material, ReportBase, asked_by, gather
from rocpd.report.model import Block, Report, Section, Text
from rocpd.report.writers import ReportFormat, format_of
from rocpd.report.writers.pictures import NEEDS, jpeg_of, png_of, svg_of
from rocpd.summary.reading import stages

_FEW = 4  # files that are named one by one
_COMPARED = """
base = rocpd.connect({})
differences = {{table.name: table for table in tables_of(session.diff(base))}}"""  # the name that `comparison` uses
_SELECTED = "  # this report is of a part of it: .within(…) and .where(…) select that"


@frozen
class ReportOptions:
    """Options of a report.

    Args:
        options: options of analyses.
        inputs: the inputs as words of a command line; empty: taken from the files.
        connect: arguments of `rocpd.connect` for the same inputs, in Python; empty: the files.
        plots: folder for the charts as pictures; None: none are written.
        base: the job to compare with; None: no comparison.
        without: names of sections that are shown elsewhere.
    """

    sections: tuple[str, ...] = ()
    options: Options = Options()
    inputs: str = ""
    connect: str = ""
    plots: Path | None = None
    base: ReportBase | None = None
    without: frozenset[str] = frozenset()


def build(session: Federation, asked: ReportOptions | None = None, progress: Progress | None = None) -> Report:
    """Return the report on the selection of a session.

    Args:
        session: the job.
        asked: sections, and options of analyses.
        progress: called with (time that passed, time that all takes) [ms].
    Raises:
        UsageError: a section is unknown, or the option of an analysis makes no sense.
        InputError: a file is damaged.
    """
    asked = asked or ReportOptions()
    chosen = chosen_sections(asked.sections, has_base=asked.base is not None)
    sections = [entry for entry in chosen if entry.name not in asked.without]
    made: list[Section] = []
    with session.job.reporting(progress, stages_of(sections)):
        material = gather(session, sections, asked.options, asked.inputs or inputs_of(session), asked.base)
        for entry in session.job.course.each(Stage.WRITING, sections, len(sections)):
            if section := _section(entry, material, made, entry.name in asked.sections):
                made.append(section)
    made.sort(key=lambda section: section.is_empty)
    connect = f"rocpd.connect({asked.connect or _files(session)})"
    if not asked.connect and session.selection != type(session.selection)():
        connect += _SELECTED
    if asked.base and asked.base.connect:
        connect += _COMPARED.format(asked.base.connect)
    return Report(_title(session), tuple(made), f"rocpd {__version__}", material.inputs, connect)


def stages_of(sections: Sequence[Entry]) -> dict[Stage, float]:
    """Return the stages of a report, with the number of each."""
    replays: dict[Stage, float] = {Stage.REPLAYS: USUAL} if any(entry.concludes for entry in sections) else {}
    replays |= {Stage.CAUSES: USUAL + 1} if any(entry.name == "whatif" for entry in sections) else {}
    return {**stages(list(map(str, asked_by(sections)))), Stage.WRITING: len(sections), **replays}


def _files(session: Federation) -> str:
    return repr([str(path) for path in _paths(session)])


def base_of(session: Federation, options: Options) -> ReportBase:
    """Return an open job as the base of a comparison. Errors as `rocpd.compare.run.profiles_of`."""
    asked = diff_options(options)
    is_whole = session.selection == type(session.selection)()
    runs = profiles_of(session, asked)
    return ReportBase(tuple(runs), inputs_of(session) if is_whole else "", _files(session) if is_whole else "", asked)


def diff_options(options: Options) -> DiffOptions:
    """Return the options of analyses as options of a comparison."""
    return DiffOptions(step_marker=options.step_marker, categories=options.categories, everything=options.everything)


def asked_of_analyses(values: Mapping[str, object]) -> Options:
    """Return the options that a Python caller gives, by names of `READ`.

    Raises:
        UsageError: an option is unknown, or a value has another type.
    """
    known = {option.name: option for option in options_of(Options)}
    for name in values:
        if name not in READ:
            raise UsageError(f"a report has no option {name}", f"it has {', '.join(READ)}")
    return Options(**{name: typed(known[name], value) for name, value in values.items()})


def _section(entry: Entry, material: Material, before: Sequence[Section], is_named: bool) -> Section | None:
    """Make a section; without data it is one line with the way to record it, or None if it is rare."""
    function = entries.load(entry.home, f"section {entry.name}")
    arguments = (material, before) if entry.name == "appendix" else (material,)
    blocks: tuple[Block, ...] = each_for_itself(
        f"section {entry.name}", lambda: tuple(function(*arguments)), lambda why: (Text(f"{why}."),)
    )
    if entry.is_rare and not blocks and not is_named:
        return None
    shown = blocks or (Text(_missing(entry, material)),)
    return Section(entry.name, entry.title, shown, entry.is_folded, is_empty=not (blocks or is_named))


def _missing(entry: Entry, material: Material) -> str:
    session = material.session
    if session.runs > 1 and any(material.answers.get(question) is not None for question in entry.needs):
        return f"Of {session.runs} separate runs there is none: it compares the ranks of one job."
    reason = next((material.missing[question] for question in entry.needs if question in material.missing), "")
    selected = " in what was selected" if session.selection != type(session.selection)() else ""
    why = f" ({reason})" if reason else ""
    if not entry.recordable:
        return f"Nothing to show{why}."
    recorder = recorder_of(importers_of(session))
    return f"{recorder.missing(f'Not recorded{selected}{why}', entry.recordable)}."


def _title(session: Federation) -> str:
    commands = {rank.command for rank in session.ranks if rank.command}
    name = next(iter(commands)) if len(commands) == 1 and session.runs == 1 else ""
    what = f"{session.runs} separate runs" if session.runs > 1 else amount(len(session.ranks), "rank")
    return f"{name} · {what}" if name else what


def inputs_of(session: Federation) -> str:
    """Return the files of a session as words of a command line: their folder if it holds no other files."""
    paths = _paths(session)
    folders = {path.parent for path in paths}
    if len(folders) == 1:
        (folder,) = folders
        if sorted(folder.glob("*.db")) == sorted(paths):
            return shlex.quote(str(folder))
    words = [shlex.quote(str(path)) for path in paths[:_FEW]]
    return " ".join([*words, "…"] if len(paths) > _FEW else words)


def _paths(session: Federation) -> list[Path]:
    return list(dict.fromkeys(rank.opening.path for rank in session.ranks))


def write(
    session: Federation,
    path: Path,
    options: ReportOptions | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write the report on the selection of a session; return it.

    Args:
        session: the job.
        path: the file; its ending chooses the format.
        options: sections, options of analyses, and the folder of charts.
        force: replace existing files.
        progress: called with (time that passed, time that all takes) [ms].

    Raises:
        UsageError: an ending or section is unknown, or a package that the format needs is not installed.
        OutputError: the file exists (without `force`) or cannot be written.
        InputError: an input is damaged.
    """
    plots = options.plots if options else None
    return written(path, lambda: build(session, options, progress), force, plots)


def written(path: Path, make: Callable[[], Report], force: bool, plots: Path | None = None) -> Report:
    """Write a report, which is made once its files are known to be free; return it. Errors as `write`.

    Args:
        path: the file; its ending chooses the format.
        make: returns the report.
        force: replace existing files.
        plots: folder for the charts as pictures; None: none are written.
    """
    form = ready(path, plots)
    check_free(path, force)
    if plots:
        check_folder_free(plots, force)
    report = make()
    with complete_or_nothing(path, force) as temporary:
        entries.load(form.home, f"format {form.ending}")(report, temporary)
    if plots:
        write_plots(report, plots, force)
    return report


def ready(path: Path, plots: Path | None = None) -> ReportFormat:
    """Return the format of a file, before anything is read.

    Raises:
        UsageError: the ending is unknown, or a package for the format or for pictures of charts is not installed.
    """
    form = format_of(path.name)
    for name, needs in ((path.name, form.needs), ("--plots", NEEDS if plots else ())):
        missing = [package for package in needs if importlib.util.find_spec(package) is None]
        if missing:
            raise UsageError(f"{name} needs {', '.join(missing)}: not installed", "pip install 'rocpd[report]'")
    return form


def write_plots(report: Report, folder: Path, force: bool = False) -> int:
    """Write all charts of a report to a folder, as SVG, PNG and JPEG; return their number.

    Args:
        report: the report.
        folder: new, or written by an earlier run.
        force: replace the folder.

    Raises:
        OutputError: the folder exists (without `force`), holds files of others, or cannot be written.
    """
    figures = list(report.figures())
    with folder_complete_or_nothing(folder, force) as temporary:
        for figure in figures:
            png = png_of(figure)
            (temporary / f"{figure.name}.svg").write_text(svg_of(figure), encoding="utf-8")
            (temporary / f"{figure.name}.png").write_bytes(png)
            (temporary / f"{figure.name}.jpg").write_bytes(jpeg_of(png))
    return len(figures)
