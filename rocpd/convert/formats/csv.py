"""The CSV files of rocprofv3, with a leading Guid column: one per kind of event, all ranks in each.

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

from rocpd.base.output import check_free, complete_or_nothing, workplace
from rocpd.base.types import Ints, Progress
from rocpd.convert.cells import Coded, Values, joined, listed, take
from rocpd.convert.deliver.parts import Output, RankPart, append, open_part, packed, split_outputs, write_parts
from rocpd.convert.deliver.placement import placements
from rocpd.convert.formats import csv_stats
from rocpd.convert.formats.csv_agents import agent_lines
from rocpd.convert.formats.csv_files import CsvFile, columns_read
from rocpd.convert.formats.csv_files_2026 import files_of
from rocpd.convert.formats.csv_lines import cells_of, lines
from rocpd.convert.formats.csv_stats import Groups
from rocpd.convert.lookups import ReferenceTables
from rocpd.convert.options import ConvertOptions
from rocpd.convert.view_reader import ViewReader, ViewRows, damage_line
from rocpd.facts.columns import all_texts
from rocpd.facts.spread import Moments
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader

_LINES = 1 << 14
"""Lines made at once."""


@dataclass
class _Report:
    """What a rank adds beside its lines.

    Args:
        left: rows in no file, by category.
        damaged: values that are no numbers where numbers belong, by column.
        groups: statistics by file.
        agents: lines of its agents.
    """

    left: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    groups: dict[str, Groups] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_<kind>.csv` for each kind of event that occurs; see `rocpd.convert.Format.write`.

    All files appear together when the last one is complete.
    """
    outputs = split_outputs(placements(session, aligned=False), options.split)
    for output in outputs:
        for name in _names(options):
            check_free(_path(options, output, name), options.force)
    left, damaged = Counter[str](), Counter[str]()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(workplace(options.folder))
        parts = write_parts(_write_part, session, outputs, folder, options, progress)
        stack.callback(parts.close)
        written: list[Path] = []
        for output in outputs:
            files = _Files(stack, options, output)
            reports = [files.take(*next(parts)) for _ in output.ranks]
            files.finish(reports)
            left += sum((report.left for report in reports), Counter())
            damaged += sum((report.damaged for report in reports), Counter())
            written += files.paths
    _note_left_out(session, left)
    if damaged:
        session.note(damage_line("csv", damaged, "texts are written as they are, the rest is left empty"))
    return tuple(written)


def _names(options: ConvertOptions) -> list[str]:
    files = files_of(options.amd_version)
    stats = [file.stats[0] for file in files if file.stats and options.stats]
    return [*(file.name for file in files), *stats, *(["domain_stats"] if options.stats else []), "agent_info"]


def _path(options: ConvertOptions, output: Output, name: str) -> Path:
    return options.path(f"{output.infix}_{name}.csv" + (".gz" if options.gzip else ""))


class _Files:
    """The files of one output; each is made when it gets its first line."""

    def __init__(self, stack: contextlib.ExitStack, options: ConvertOptions, output: Output) -> None:
        self._stack = stack
        self._options = options
        self._output = output
        self._temporary: dict[str, Path] = {}

    @property
    def paths(self) -> list[Path]:
        """Final paths, in order of the files."""
        return [_path(self._options, self._output, name) for name in _names(self._options) if name in self._temporary]

    def take(self, part: RankPart, report: _Report) -> _Report:
        """Append the lines of one rank."""
        for file in files_of(self._options.amd_version):
            piece = part.path / file.name
            if piece.exists():
                with self._open(file.name, file.header(self._options.with_rank)) as out:
                    append(piece, out)
        part.path.rmdir()
        return report

    def finish(self, reports: Sequence[_Report]) -> None:
        """Add statistics and agents."""
        if self._options.stats:
            self._add_stats(reports)
        agents = [line for report in reports for line in report.agents[1:]]
        if agents:
            self._write("agent_info", [reports[0].agents[0], *agents])

    def _add_stats(self, reports: Sequence[_Report]) -> None:
        domains: Groups = {}
        for file in files_of(self._options.amd_version):
            groups: Groups = {}
            for report in reports:
                csv_stats.add(groups, report.groups.get(file.name, {}))
            if groups and file.stats:
                self._write(file.stats[0], csv_stats.lines(groups))
                domains[file.stats[1]] = sum(groups.values(), Moments())
        if domains:
            self._write("domain_stats", csv_stats.lines(domains))

    def _write(self, name: str, text: Iterable[str]) -> None:
        with self._open(name) as out:
            out.write(packed("".join(text).encode("utf-8", "backslashreplace"), self._options))

    @contextlib.contextmanager
    def _open(self, name: str, header: str = "") -> Iterator[BinaryIO]:
        new = name not in self._temporary
        if new:
            path = _path(self._options, self._output, name)
            self._temporary[name] = self._stack.enter_context(complete_or_nothing(path, self._options.force))
        with self._temporary[name].open("ab") as out:
            if new:
                out.write(packed(header.encode(), self._options))
            yield out


def _write_part(part: RankPart, reader: RankReader) -> _Report:
    report = _Report()
    part.path.mkdir()
    source = _Source(reader, files_of(part.options.amd_version))
    for file in source.files:
        views = source.rows(file)
        if views:
            with open_part(part, file.name) as out:
                for columns in _in_order(file, views, part.options):
                    out.write(lines(columns, _numbers(file, part.options)))
            if part.options.stats and file.stats:
                report.groups[file.name] = _groups(file, views, part.options)
    report.left = source.left()
    report.damaged = source.damaged
    report.agents = agent_lines(reader, part.options)
    return report


class _Source:
    """The rows of one rank by file; regions are read once for all files of calls.

    Attributes:
        damaged: values read that are no numbers where numbers belong, by column.
    """

    def __init__(self, reader: RankReader, files: Sequence[CsvFile]) -> None:
        self.files = files
        self._references = ReferenceTables(reader)
        self._categories = all_texts(reader, "rocpd_string", "string")
        self._calls: dict[str, ViewRows | None] = {}
        self.damaged = Counter[str]()

    def rows(self, file: CsvFile) -> list[ViewRows]:
        """Return the rows of a file, those of each of its views."""
        return [rows for view in file.views if (rows := self._rows(file, view)) and rows.count]

    def _rows(self, file: CsvFile, view: str) -> ViewRows | None:
        if not file.categories:
            return self._read(view, file.where)
        if view not in self._calls:
            self._calls[view] = self._read(view)
        chosen = [number for number, text in self._categories.items() if text and text.startswith(file.categories)]
        rows = self._calls[view]
        return rows and rows.take(np.isin(rows.ints("category"), chosen))

    def _read(self, view: str, where: str = "") -> ViewRows | None:
        reader = ViewReader(self._references, view, columns_read(view, self.files), where)
        rows = reader.read_all()
        self.damaged.update({f"{view}.{column}": count for column, count in reader.damaged.items()})
        return rows

    def left(self) -> Counter[str]:
        """Count the regions and samples that are in no file, by category."""
        known = tuple(prefix for file in self.files for prefix in file.categories)
        left = Counter[str]()
        for rows in filter(None, self._calls.values()):
            numbers, counts = np.unique(rows.ints("category"), return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                category = self._categories.get(number) or ""
                if not category.startswith(known):
                    left[category] += count
        return left


def _in_order(file: CsvFile, views: Sequence[ViewRows], options: ConvertOptions) -> Iterator[list[Values]]:
    """Yield the cells of rows in order of start and id, some thousand at a time."""
    start, number = (np.concatenate([rows.ints(name) for rows in views]) for name in ("start", "id"))
    order: Ints = np.lexsort((number, start))
    chunks = [order[first : first + _LINES] for first in range(0, len(order), _LINES)]
    if len(views) == 1:
        yield from (_cells(file, views[0].take(chunk), options) for chunk in chunks)
        return
    columns = [_concatenated(parts) for parts in zip(*(_cells(file, rows, options) for rows in views), strict=True)]
    yield from ([_taken(column, chunk) for column in columns] for chunk in chunks)


def _concatenated(parts: Sequence[Values]) -> Values:
    """Return a column of several views as one; of numbers and texts, which a damaged file mixes, come texts."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts) and len({array.dtype for array in arrays}) == 1:
        return joined(arrays)
    texts = (cells_of(part) if isinstance(part, np.ndarray) else listed(part) for part in parts)
    return Coded.of(itertools.chain.from_iterable(texts))


def _taken(column: Values, rows: Ints) -> Values:
    return Coded(column.codes[rows], column.texts) if isinstance(column, Coded) else take(column, rows)


def _cells(file: CsvFile, rows: ViewRows, options: ConvertOptions) -> list[Values]:
    return [rows.column("guid"), *(cell.make(rows, options) for _, cell in file.columns), *_rank(rows, options)]


def _rank(rows: ViewRows, options: ConvertOptions) -> list[Values]:
    if not options.with_rank:
        return []
    return [np.full(rows.count, rows.rank.number), Coded(np.zeros(rows.count, np.int64), [rows.rank.hostname or ""])]


def _numbers(file: CsvFile, options: ConvertOptions) -> list[bool]:
    return [False, *(cell.is_number for _, cell in file.columns), *((True, False) if options.with_rank else ())]


def _groups(file: CsvFile, views: Sequence[ViewRows], options: ConvertOptions) -> Groups:
    groups: Groups = {}
    for rows in views:
        csv_stats.add(groups, csv_stats.group(file.name_cell.make(rows, options), rows.ints("start"), rows.ints("end")))
    return groups


def _note_left_out(session: Federation, left: Counter[str]) -> None:
    """Note the regions and samples whose category has no file among rocprofv3's."""
    if left:
        categories = sorted(category or "no category" for category in left)
        names = ", ".join(categories[:5]) + (" …" if len(categories) > 5 else "")
        count = sum(left.values())
        session.note(
            f"csv: {count} regions and samples are in no file, rocprofv3 has none for their category ({names})"
        )
