"""Owns writing the CSV files of rocprofv3, with a leading Guid column: one per kind of event, all ranks in each.

Times stay as recorded, rows of a rank are in order of start. See `csv_files` for the columns.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from rocpd.convert.cells import plain
from rocpd.convert.columns import Reader, Rows
from rocpd.convert.deliver.job import RankJob, jobs
from rocpd.convert.deliver.parts import Output, Part, append, opened, outputs, packed, run, workplace
from rocpd.convert.formats import csv_stats, markers
from rocpd.convert.formats.csv_agents import agent_lines
from rocpd.convert.formats.csv_cells import Number, lines
from rocpd.convert.formats.csv_files import FILES, CsvFile
from rocpd.convert.formats.csv_stats import Groups
from rocpd.convert.options import ConvertOptions
from rocpd.convert.read import Tables
from rocpd.federate.federation import Federation
from rocpd.output import check_free, complete_or_nothing
from rocpd.types import Ints, Progress

_LINES = 1 << 14
"""Lines made at once."""


@dataclass
class _Told:
    """What a rank has to tell: rows in no file by category, statistics by file, lines of its agents."""

    left: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Groups] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_<kind>.csv` for each kind of event that occurs; see `rocpd.convert.Format.write`.

    All files appear together when the last one is complete.
    """
    options = options.plain()
    places = outputs(jobs(session, options, aligned=False), options.split)
    for place in places:
        for name in _names(options):
            check_free(_path(options, place, name), options.force)
    left = Counter[str]()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(workplace(options.folder))
        results = run(_part, [job for place in places for job in place.jobs], folder, session, progress)
        stack.callback(results.close)
        written: list[Path] = []
        for place in places:
            files = _Files(stack, options, place)
            told = [files.take(*next(results)) for _ in place.jobs]
            files.finish(told)
            left += sum((one.left for one in told), Counter())
            written += files.paths
        for _ in results:  # the last progress
            pass
    _tell_left_out(session, left)
    return tuple(written)


def _names(options: ConvertOptions) -> list[str]:
    stats = [file.stats[0] for file in FILES if file.stats and options.stats]
    return [*(file.name for file in FILES), *stats, *(["domain_stats"] if options.stats else []), "agent_info"]


def _path(options: ConvertOptions, place: Output, name: str) -> Path:
    return options.path(f"{place.infix}_{name}.csv" + (".gz" if options.gzip else ""))


class _Files:
    """The files of one output; each is made when it gets its first line."""

    def __init__(self, stack: contextlib.ExitStack, options: ConvertOptions, place: Output) -> None:
        self._stack = stack
        self._options = options
        self._place = place
        self._temporary: dict[str, Path] = {}

    @property
    def paths(self) -> list[Path]:
        """Final paths, in order of `FILES`."""
        return [_path(self._options, self._place, name) for name in _names(self._options) if name in self._temporary]

    def take(self, part: Part, told: _Told) -> _Told:
        """Append the lines of one rank."""
        for file in FILES:
            piece = part.path / file.name
            if piece.exists():
                with self._open(file.name, file.header) as out:
                    append(piece, out)
        part.path.rmdir()
        return told

    def finish(self, told: Sequence[_Told]) -> None:
        """Add statistics and agents."""
        if self._options.stats:
            self._add_stats(told)
        agents = [line for one in told for line in one.agents[1:]]
        if agents:
            self._write("agent_info", [told[0].agents[0], *agents])

    def _add_stats(self, told: Sequence[_Told]) -> None:
        domains: Groups = {}
        for file in FILES:
            groups: Groups = {}
            for one in told:
                csv_stats.add(groups, one.groups.get(file.name, {}))
            if groups and file.stats:
                self._write(file.stats[0], csv_stats.lines(groups))
                domains[file.stats[1]] = csv_stats.together(groups)
        if domains:
            self._write("domain_stats", csv_stats.lines(domains))

    def _write(self, name: str, text: Iterable[str]) -> None:
        with self._open(name) as out:
            out.write(packed("".join(text).encode("utf-8", "backslashreplace"), self._options))

    @contextlib.contextmanager
    def _open(self, name: str, header: str = "") -> Iterator[BinaryIO]:
        new = name not in self._temporary
        if new:
            path = _path(self._options, self._place, name)
            self._temporary[name] = self._stack.enter_context(complete_or_nothing(path, self._options.force))
        with self._temporary[name].open("ab") as out:
            if new:
                out.write(packed(header.encode(), self._options))
            yield out


def _part(part: Part) -> _Told:
    told = _Told()
    part.path.mkdir()
    job = part.job
    with job.open() as tables:
        source = _Source(tables, job)
        for file in FILES:
            found = source.rows(file)
            if found:
                with opened(part.path / file.name, job.options) as out:
                    for columns, tangled in _in_order(file, found, job):
                        out.write(_lines(file, columns, tangled))
                if job.options.stats and file.stats:
                    told.groups[file.name] = _groups(file, found, job)
        told.left = source.left()
        told.agents = agent_lines(job.rank, tables)
    return told


class _Source:
    """The rows of one rank by file; regions are read once for all files of calls."""

    def __init__(self, tables: Tables, job: RankJob) -> None:
        self._tables = tables
        self._guid = job.rank.guid
        self._categories = tables.texts("rocpd_string", "string")
        self._calls: dict[str, list[Rows]] = {}

    def rows(self, file: CsvFile) -> list[Rows]:
        """Give the rows of a file; those of markers in two parts: ranges and marks."""
        if file.categories:
            views = markers.SOURCES if file.view == "markers" else (file.view,)
            parts = [self._of_categories(rows, file) for view in views for rows in self._all(view, file)]
            return [rows for rows in parts if rows.count]
        where = "M.level IS NOT 'SCRATCH'" if file.without_scratch else ""
        return list(Reader(self._tables, file.view, self._guid, file.reads, where=where, keep=True).batches(None))

    def _all(self, view: str, file: CsvFile) -> list[Rows]:
        if view not in self._calls:
            reader = Reader(self._tables, view, self._guid, file.reads, keep=True)
            self._calls[view] = list(reader.batches(None))
        return self._calls[view]

    def _of_categories(self, rows: Rows, file: CsvFile) -> Rows:
        chosen = [i for i, text in self._categories.items() if text.startswith(file.categories)]
        return rows.take(np.isin(rows.ints("category"), chosen))

    def left(self) -> Counter[str]:
        """Count the regions and samples that are in no file, by category."""
        known = tuple(prefix for file in FILES for prefix in file.categories)
        found = Counter[str]()
        for rows in itertools.chain.from_iterable(self._calls.values()):
            numbers, counts = np.unique(rows.ints("category"), return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                category = self._categories.get(number, "")
                if not category.startswith(known):
                    found[category] += count
        return found


def _in_order(file: CsvFile, found: Sequence[Rows], job: RankJob) -> Iterator[tuple[list[pa.Array], bool]]:
    """Give the cells of rows in order of start and id, some thousand at a time; and whether texts are among numbers."""
    start, number = (np.concatenate([rows.ints(name) for rows in found]) for name in ("start", "id"))
    order: Ints = np.lexsort((number, start))
    tangled = any(rows.tangled for rows in found)
    if len(found) == 1:
        for first in range(0, len(order), _LINES):
            yield _cells(file, found[0].take(order[first : first + _LINES]), job), tangled
        return
    both = [_cells(file, rows, job) for rows in found]
    yield (
        [pa.concat_arrays(list(map(plain, column))).take(pa.array(order)) for column in zip(*both, strict=True)],
        tangled,
    )


def _cells(file: CsvFile, rows: Rows, job: RankJob) -> list[pa.Array]:
    return [rows.column("guid"), *(cell(rows, job.options) for _, cell in file.columns)]


def _lines(file: CsvFile, columns: list[pa.Array], tangled: bool) -> bytes:
    if tangled:
        return lines(columns, [False, *(isinstance(cell, Number) for _, cell in file.columns)])
    out = pa.BufferOutputStream()
    table = pa.Table.from_arrays(columns, [str(i) for i in range(len(columns))])
    arrow_csv.write_csv(table, out, arrow_csv.WriteOptions(include_header=False, batch_size=4096))
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _groups(file: CsvFile, found: Sequence[Rows], job: RankJob) -> Groups:
    groups: Groups = {}
    for rows in found:
        csv_stats.add(groups, csv_stats.group(file.name_cell(rows, job.options), rows.ints("start"), rows.ints("end")))
    return groups


def _tell_left_out(session: Federation, left: Counter[str]) -> None:
    """Tell of regions and samples whose category has no file among rocprofv3's."""
    if left:
        found = sorted(category or "no category" for category in left)
        names = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
        count = sum(left.values())
        session.note(
            f"csv: {count} regions and samples are in no file, rocprofv3 has none for their category ({names})"
        )
