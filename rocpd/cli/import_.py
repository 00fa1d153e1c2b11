"""Owns `rocpd import`: traces of other profilers as rocpd files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.base.amount import amount
from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.cli.diagnostics import note, report_written
from rocpd.cli.options import Inputs
from rocpd.cli.progress import progress


@frozen
class ImportOptions:
    """Where the files go, and who does the work."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Annotated[Path, Option("New folder for the rocpd files.", "DIR", ("-d", "--output-path"))] = Path(
        "imported"
    )
    force: Annotated[bool, Option("Replace a folder that an earlier run wrote.")] = False
    jobs: Annotated[
        int | None,
        Option("Files read at a time; without it one per core.", "N", ("-j", "--jobs"), Heading.EXECUTION, least=1),
    ] = None


def import_(inputs: Inputs, asked: ImportOptions) -> None:
    """Write traces of other profilers as rocpd files.

    Each process becomes one rocpd file. What an input is shows in its content, whatever its name; .gz is read too. What
    has no place in a rocpd file is counted and reported. Every other command reads such inputs as well: it imports them
    once, into a cache (rocpd cache).

    Examples:
        rocpd import trace.rpd -d job
        rocpd import old-traces/ -d job
        rocpd summary job
    """
    from rocpd.importers.run import import_traces

    if not inputs.paths:
        raise UsageError("nothing to import", "rocpd import FILE... -d DIR")
    with progress("import", "bytes") as report:
        files = import_traces(
            inputs.paths,
            asked.folder,
            force=asked.force,
            skip_bad=inputs.skip_bad,
            jobs=asked.jobs,
            on_note=note,
            on_progress=report,
        )
    report_written(asked.folder, f"{amount(len(files), 'rank')}, ")
