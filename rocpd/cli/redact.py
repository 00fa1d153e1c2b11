"""Owns `rocpd redact`: files of a job that can be given away."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from rocpd.base.amount import amount
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.cli import tables
from rocpd.cli.diagnostics import note, report_written
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.cli.progress import progress
from rocpd.redact.options import RedactOptions


@frozen
class Place:
    """Where the files go."""

    HEADING: ClassVar = Heading.OUTPUT

    folder: Annotated[Path, Option("New folder for rank0.db …", "DIR", ("-d", "--output-path"))] = Path("redacted")
    force: Annotated[bool, Option("Replace a folder that an earlier run wrote.")] = False


def redact(
    inputs: Inputs, asked: RedactOptions, selection: SelectionOptions, place: Place, execution: Execution
) -> None:
    """Write files of a job that can be given away.

    Hosts, machines, users, paths, arguments, URLs, addresses and secrets get names such as host-01, the same in all
    ranks; of the environment only settings of the GPU's libraries stay. Durations, ids and counts do not change: every
    analysis gives the same numbers. Then the files are searched for what was replaced; if one still holds any of it,
    nothing is written.

    Examples:
        rocpd redact job/ -d for-support
        rocpd redact job/ --dry-run
        rocpd redact job/ -d public --level strict --start 40% --end 60%
    """
    from rocpd.redact.run import redact as write_redacted

    with selection.connect(inputs, execution) as session:
        with progress("redact", "ranks") as report:
            counts = write_redacted(session, place.folder, asked, place.force, report)
        ranks = len(session.ranks)
    rows = [(table, column, number) for (table, column), number in sorted(counts.items())]
    with tables.open_output(None, TableOptions()) as out:
        tables.write_rows(("table", "column", "replaced"), iter(rows), out)
    if asked.dry_run:
        note(f"would write {amount(ranks, 'file')} to {place.folder}")
    else:
        report_written(place.folder, f"{amount(ranks, 'file')}, ")
