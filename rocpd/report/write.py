"""Owns writing a report to a file: its format goes by the ending; the file is there when it is complete."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from rocpd import entries
from rocpd.errors import UsageError
from rocpd.federate.federation import Federation
from rocpd.output import check_folder_free, check_free, complete_or_nothing
from rocpd.report.build import ReportOptions, build
from rocpd.report.model import Report
from rocpd.report.plots import NEEDS, write_plots
from rocpd.report.writers import ReportFormat, format_of
from rocpd.types import Progress


def write(
    session: Federation,
    path: Path,
    options: ReportOptions | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write the report of what a session selects; return it.

    Args:
        session: what to read.
        path: the file; its ending says which format.
        options: which sections, what is asked of analyses, and where charts go.
        force: replace existing files.
        progress: called with (ranks read, ranks in all).

    Raises:
        UsageError: an unknown ending or section, or a package that the format needs is not installed.
        OutputError: the file exists (without `force`) or cannot be written.
        InputError: an input is damaged.
    """
    options = options or ReportOptions()
    form = ready(path, options.plots)
    check_free(path, force)
    if options.plots:
        check_folder_free(options.plots, force)
    report = build(session, options, progress)
    with complete_or_nothing(path, force) as temporary:
        entries.load(form.home, f"format {form.ending}")(report, temporary)
    if options.plots:
        write_plots(report, options.plots, force)
    return report


def ready(path: Path, plots: Path | None = None) -> ReportFormat:
    """Return the format of a file, before anything is read.

    Raises:
        UsageError: an unknown ending, or what the format or pictures of charts need is not installed.
    """
    form = format_of(path.name)
    for name, needs in ((path.name, form.needs), ("--plots", NEEDS if plots else ())):
        missing = [package for package in needs if importlib.util.find_spec(package) is None]
        if missing:
            raise UsageError(f"{name} needs {', '.join(missing)}: not installed", "pip install 'rocpd[report]'")
    return form
