"""The Python interface of AMD's package, as in AMD's documents, over our own: thin, and used by nothing else."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rocpd.base import Parameters, UsageError
from rocpd.base.option import options_of
from rocpd.base.output import complete_or_nothing, destination
from rocpd.base.version import __version__
from rocpd.convert import FORMATS, endings_of
from rocpd.convert.options import ConvertOptions
from rocpd.federate.connect import Inputs
from rocpd.federate.result import Rows
from rocpd.session import Session, connect
from rocpd.table import CONSOLE, find_format

_NUMBERS = tuple(int(number) for number in __version__.split(".")[:3])

version_info: Mapping[str, str | int] = {
    "version": __version__,
    **dict(zip(("major", "minor", "patch"), _NUMBERS, strict=True)),
    "git_revision": "",
    "library_arch": platform.machine(),
    "system_name": platform.system(),
    "system_processor": platform.machine(),
    "system_version": platform.release(),
    "compiler_id": "",
    "compiler_version": "",
    "rocm_version": "",
}
"""The keys of AMD's; keys that only a build against ROCm can fill are empty."""


class RocpdImportData(Session):
    """A session under AMD's name: `execute` and `cursor` answer SQL over all files.

    Args:
        input: files, folders, packages, or a session, whose files are then shared and closed by it.

    Raises:
        InputError: no file matches, or one cannot be used.
    """

    def __init__(self, input: Inputs | Session, **_without_effect: object) -> None:
        is_session = isinstance(input, Session)
        opened = input if isinstance(input, Session) else connect(input)
        super().__init__(opened.job, opened.selection, opened.notes, owns_files=not is_session)


def execute(data: Session, *statement: str) -> Rows:
    """Run SQL, as `data.execute`."""
    return data.execute(*statement)


_WHERE = {"output_path": None, "output_file": None, "force": False}


class OutputConfig(SimpleNamespace):
    """The place of outputs and the look of events: `output_path`, `output_file`, `force` and the options of formats.

    >>> OutputConfig(output_file="mine").update(kernel_rename=True).kernel_rename
    True
    """

    def __init__(self, *, strict: bool = True, **values: object) -> None:
        super().__init__(**_WHERE, **{option.name: option.default for option in options_of(ConvertOptions)})
        self.update(strict=strict, **values)

    def update(self, *, strict: bool = True, **values: object) -> OutputConfig:
        """Set attributes; return the same object.

        Raises:
            KeyError: `strict`, and there is no such attribute.
        """
        for name, value in values.items():
            if hasattr(self, name):
                setattr(self, name, value)
            elif strict:
                raise KeyError(f"output_config does not have {name} attribute")
        return self


def write_csv(connection: Session, config: OutputConfig | None = None, **values: object) -> bool:
    """Write CSV files; return True. Errors are raised: see `Session.convert`."""
    return _write("csv", connection, config, values)


def write_perfetto(connection: Session, config: OutputConfig | None = None, **values: object) -> bool:
    """Write a Perfetto trace; return True. Errors are raised: see `Session.convert`."""
    return _write("pftrace", connection, config, values)


def write_otf2(connection: Session, config: OutputConfig | None = None, **values: object) -> bool:
    """Write an OTF2 archive; return True. Errors are raised: see `Session.convert`."""
    return _write("otf2", connection, config, values)


def _write(form: str, connection: Session, config: OutputConfig | None, values: dict[str, Any]) -> bool:
    chosen = OutputConfig(**values) if config is None else config.update(**values)
    entry = FORMATS[form]
    folder = None if chosen.output_path is None else Path(chosen.output_path)
    target = destination(chosen.output_file, folder, endings_of([entry]))
    entry.write(connection, ConvertOptions.at(target, chosen.force, **entry.values(vars(chosen))))
    return True


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
        export_format: a value of `rocpd query --format`; None or `console`: stdout.
        export_path: the file; None: `rocpd-output-data/out.<format>`.
        dashboard_template_path: not supported.
        force: replace an existing file.

    Returns:
        the path of the file, None if the answer was shown.

    Raises:
        UsageError: a format or a template is not supported.
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
