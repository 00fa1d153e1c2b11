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
from rocpd.convert.read import Tables
from rocpd.federate.open import told_as_input_error
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
    done = calls = 0
    written = []
    with contextlib.ExitStack() as stack:
        for file in FILES:
            out = None
            for count, data in _batches(session, file, options):
                if out is None:
                    written.append(options.path(f"_{file.name}.csv"))
                    out = _open(stack, written[-1], options.force, file.header)
                out.write(data)
                done += count
                calls += count if file.categories else 0
                if progress:
                    progress(done, total)
        lines = agent_lines(session)
        if len(lines) > 1:
            written.append(options.path("_agent_info.csv"))
            out = _open(stack, written[-1], options.force, lines[0])
            out.writelines(line.encode("utf-8", "backslashreplace") for line in lines[1:])
    _tell_left_out(session, calls)
    return tuple(written)


def _open(stack: contextlib.ExitStack, path: Path, force: bool, header: str) -> BinaryIO:
    temporary = stack.enter_context(complete_or_nothing(path, force))
    out = stack.enter_context(temporary.open("wb", buffering=1 << 20))
    out.write(header.encode())
    return out


def _batches(session: Session, file: CsvFile, options: ConvertOptions) -> Iterator[tuple[int, bytes]]:
    """Give the lines of all ranks, each in order of start: how many, and their bytes."""
    for rank, part in zip(session.ranks, session.parts, strict=True):
        with told_as_input_error(rank.opening.path):
            if not _may_have_rows(session, part, file):
                continue
            rows = session.connection.execute(file.lines(part, options))
            while batch := [line for (line,) in itertools.islice(rows, _BATCH)]:
                yield len(batch), _valid(b"".join(batch))
            session.connection.release_memory()


def _valid(data: bytes) -> bytes:
    """Write bytes that are not UTF-8 as `\\xNN`."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace").encode()
    return data


def _tell_left_out(session: Session, written: int) -> None:
    """Tell of regions and samples whose category has no file among rocprofv3's."""
    tables = [Tables(session, part) for part in session.parts]
    left = sum(table.count("rocpd_region") + table.count("rocpd_sample") for table in tables) - written
    if left > 0:
        known = " OR ".join(f"category GLOB '{pattern}'" for file in FILES for pattern in file.categories)
        sql = f"SELECT DISTINCT category FROM regions_and_samples WHERE ({known}) IS NOT TRUE ORDER BY 1 LIMIT 6"
        found = [str(category) for (category,) in session.execute(sql)]
        names = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
        session.note(f"csv: {left} regions and samples are in no file, rocprofv3 has none for their category ({names})")


def _may_have_rows(session: Session, part: Part, file: CsvFile) -> bool:
    asked = file.has_rows(part)
    return asked is None or session.connection.execute(asked).fetchone() is not None


def _count(session: Session, part: Part, file: CsvFile) -> int:
    if not _may_have_rows(session, part, file):
        return 0
    row = session.connection.execute(file.count(part)).fetchone()
    session.connection.release_memory()
    return int(row[0]) if row else 0
