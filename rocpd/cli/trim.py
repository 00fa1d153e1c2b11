"""Owns `rocpd trim`: the part of a job that lies in a window."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocpd.base.amount import amount
from rocpd.base.errors import UsageError
from rocpd.cli.diagnostics import report_written
from rocpd.cli.options import Execution, Inputs, OutputOptions, SelectionOptions
from rocpd.cli.progress import progress

if TYPE_CHECKING:
    from rocpd.session import Session

_RPD, _ENDINGS = ".rpd", (".db", ".db3", ".sqlite", ".sqlite3")
_NAME = "trimmed"


def trim(inputs: Inputs, selection: SelectionOptions, output: OutputOptions, execution: Execution) -> None:
    """Write the part of a job that lies in a window.

    What overlaps the window stays as a whole, with the calls that launched it. Of one RPD file an RPD file is written,
    for the tools that read those, in which nothing refers to what was left out; of anything else, and where -o ends in
    .db, one SQLite file, as rocpd merge does. Inputs are never changed.

    Examples:
        rocpd trim trace.rpd -o part.rpd --start 40% --end 60%
        rocpd trim trace.rpd -o part.db --start-marker "step 3" --end-marker "step 5"
        rocpd trim job/ -o part.db --step 3
    """
    if selection.window() is None:
        raise UsageError("trim needs a window", "--start, --end, --step, a marker, --window-kernel, --auto-roi")
    with selection.connect(inputs, execution) as session:
        trace = _rpd_file(inputs)
        target = output.destination((_RPD, *_ENDINGS) if trace else _ENDINGS, _NAME)
        path = target.path(_RPD if trace else _ENDINGS[0])
        if trace and path.suffix == _RPD:
            _refuse_filters(selection)
            _write_rpd(session, trace, path, output.force)
        else:
            from rocpd.federate.merge import merge

            with progress("trim") as report:
                merge(session, path, output.force, report)
        ranks = len(session.ranks)
    report_written(path, f"{amount(ranks, 'rank')}, ")


def _rpd_file(inputs: Inputs) -> Path | None:
    """Return the one RPD file that is the input, None where the input is something else."""
    from rocpd.importers import importer_of

    paths = [Path(path) for path in inputs.paths]
    if len(paths) != 1 or not paths[0].is_file():
        return None
    importer = importer_of(paths[0])
    return paths[0] if importer and importer.name == "rpd" else None


def _refuse_filters(selection: SelectionOptions) -> None:
    for name in ("agent", "stream", "category", "kernel", "exclude_kernel"):
        if getattr(selection, name) is not None:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} does not cut an RPD file", "give -o a name that ends in .db")


def _write_rpd(session: Session, trace: Path, target: Path, force: bool) -> None:
    from rocpd.federate.select.selection import Part
    from rocpd.importers.rpd.trim import trim_rpd
    from rocpd.importers.source import TraceSource

    window = session.window  # None where it holds all there is
    parts = {rank.plain_guid: window.part(rank.number) if window else Part(None, None) for rank in session.ranks}
    with TraceSource(trace) as source:
        trim_rpd(source, target, parts, force)
