"""Owns the answer to one statement as a file, by AMD's interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rocpd.errors import UsageError
from rocpd.output import complete_or_nothing, destination
from rocpd.table import CONSOLE, find_format

if TYPE_CHECKING:
    from rocpd.session import Session
    from rocpd.types import Parameters


def export_sqlite_query(  # noqa: PLR0913 (the signature is AMD's)
    conn: Session,
    query: str,
    params: Parameters = (),
    export_format: str | None = None,
    export_path: str | Path | None = None,
    dashboard_template_path: str | None = None,
    *,
    force: bool = False,
) -> str | None:
    """Run SQL; show the answer on stdout, or write it to a file.

    Args:
        conn: the session.
        query: one statement.
        params: values for its placeholders.
        export_format: one that `rocpd query --format` takes; None or `console`: stdout.
        export_path: the file; None: `rocpd-output-data/out.<format>`.
        dashboard_template_path: not supported.
        force: replace an existing file.

    Returns:
        the path of the file, None where the answer was shown.

    Raises:
        UsageError: a format or a template that is not supported.
        QueryError: SQLite refuses the statement.
        OutputError: the file exists without `force`, or cannot be written.
    """
    form = find_format(export_format or CONSOLE, option="export_format")
    if dashboard_template_path is not None:
        raise UsageError("dashboards are not supported", "export html")
    if form is None:
        conn.sql(query, params).show(0)
        return None
    path = Path(export_path) if export_path else destination(None, None, [form.ending]).path(form.ending)
    rows = conn.execute(query, params)
    with (
        complete_or_nothing(path, force) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out,
    ):
        form.write(rows.columns, iter(rows), out)
    return str(path)
