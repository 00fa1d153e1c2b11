"""Owns the CSV files of rocprofv3, with a leading Guid column: one per kind of event, all ranks in each.

SQLite formats the lines (three times as fast as Python's csv module); rows stream, nothing is held. Times stay as
recorded. Headers and values are those of AMD's `rocpd convert -f csv`; see `csv_files` for the columns.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from rocpd.convert import Progress
from rocpd.convert.csv_agents import agent_lines
from rocpd.convert.csv_files import FILES, CsvFile
from rocpd.convert.options import ConvertOptions
from rocpd.federate.session import Session
from rocpd.output import check_free, complete_or_nothing
from rocpd.schema.render import Part

_BATCH = 2000
"""Lines per write."""


def write(session: Session, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_<kind>.csv` for each kind of event that occurs; see `rocpd.convert.Format.write`.

    All files appear together when the last one is complete.
    """
    for ending in (*(f"_{file.name}.csv" for file in FILES), "_agent_info.csv"):
        check_free(options.path(ending), options.force)
    total = sum(_count(session, part, file) for part in session.parts for file in FILES) if progress else 0
    done = 0
    written = []
    with contextlib.ExitStack() as stack:
        for file in FILES:
            out = None
            for part in session.parts:
                for count, data in _batches(session, part, file, options):
                    if out is None:
                        path = options.path(f"_{file.name}.csv")
                        out = _open(stack, path, options.force, file.header)
                        written.append(path)
                    out.write(data)
                    done += count
                    if progress:
                        progress(done, max(total, done))
        lines = agent_lines(session)
        if len(lines) > 1:
            path = options.path("_agent_info.csv")
            _open(stack, path, options.force, lines[0]).writelines(line.encode() for line in lines[1:])
            written.append(path)
    return tuple(written)


def _open(stack: contextlib.ExitStack, path: Path, force: bool, header: str) -> BinaryIO:
    temporary = stack.enter_context(complete_or_nothing(path, force))
    out = stack.enter_context(temporary.open("wb", buffering=1 << 20))
    out.write(header.encode())
    return out


def _batches(session: Session, part: Part, file: CsvFile, options: ConvertOptions) -> Iterator[tuple[int, bytes]]:
    """Give the lines of one rank in order of start: how many, and their bytes."""
    if not _may_have_rows(session, part, file):
        return
    rows = session.connection.execute(file.lines(part, options))
    while batch := [line for (line,) in itertools.islice(rows, _BATCH)]:
        data = b"".join(batch)
        try:
            data.decode()
        except UnicodeDecodeError:
            data = data.decode("utf-8", "backslashreplace").encode()
        yield len(batch), data


def _may_have_rows(session: Session, part: Part, file: CsvFile) -> bool:
    asked = file.has_rows(part)
    return asked is None or session.connection.execute(asked).fetchone() is not None


def _count(session: Session, part: Part, file: CsvFile) -> int:
    if not _may_have_rows(session, part, file):
        return 0
    row = session.connection.execute(file.count(part)).fetchone()
    return int(row[0]) if row else 0
