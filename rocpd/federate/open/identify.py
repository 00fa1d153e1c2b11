"""Identifies the ranks of a file: GUID, tables, columns and process of each; and how the ranks of a job are related:
duplicates in two files, machines, rank numbers and runs.

Of a file it reads metadata only, never events. Goes by the content of a file, not by the content that its version
should have.

Ranks are related by the process data in the files. Where ranks share a table suffix, their tables are read too, to find
out whether one rank occurs in two inputs; where the process data of several machines say too little, their GPUs and
kernels. Never drops a rank whose rows differ, and never reads an event of other ranks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rocpd.base import ForeignError, InputError, Row, by_key, frozen
from rocpd.base.sqlite import apsw
from rocpd.base.texts import json_object, visible
from rocpd.federate.open.opening import FileNote, Opening, as_input_error
from rocpd.federate.result import decoded
from rocpd.schema import versions
from rocpd.schema.load import TABLES
from rocpd.schema.quote import quote_name
from rocpd.schema.render import RankTables
from rocpd.schema.rules.events import MEASURED
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.versions import suffix_of

TAG = "rocpd_window"
"""Tag of the window in the metadata of a rank."""


@frozen
class StoredWindow:
    """The window of which a file holds the rows: start and end by the clock of the rank [ns].

    Args:
        start, end: the window.
        by_launch: whether GPU work counted by the time of its launch.
    """

    start: int
    end: int
    by_launch: bool = False

    @classmethod
    def read(cls, metadata: Iterable[tuple[str, str]]) -> StoredWindow | None:
        """Return the window that metadata rows (tag, value) name; None if there is none, or it is damaged."""
        for tag, value in metadata:
            if tag == TAG:
                try:
                    fields = json_object(value) or {}
                    return cls(int(fields["start"]), int(fields["end"]), bool(fields["by_launch"]))
                except (ValueError, KeyError, TypeError):
                    return None
        return None

    def text(self) -> str:
        """Return the value for the metadata."""
        return json.dumps({"start": self.start, "end": self.end, "by_launch": self.by_launch})


MPI_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "PALS_RANKID", "FLUX_TASK_RANK")
"""Environment variables that hold a process's MPI rank, in order of preference."""

_SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "PALS_SIZE", "FLUX_JOB_SIZE", "WORLD_SIZE")
_PROCESS = ("nid", "pid", "ppid", "command", "environment", "extdata")
_LIFE = ("start", "end", "init", "fini")
_MPI_EXTDATA = ("mpi_rank", "MPI_RANK")
_LARGEST_RANK = 2**31 - 1  # MPI's ranks are C's int
_MOST_DIGITS = 20
_SKIP_HINT = "--skip-bad leaves it out"
_MARK = "\0"
_MOST_SHAPES = 1000


@frozen
class _Layout:
    """Columns of a table, whether an id may occur twice in it, and whether its id is the rowid."""

    columns: tuple[str, ...]
    is_keyless: bool
    is_by_id: bool


# Keys that SQLite stores apart from the rows have an index: https://sqlite.org/lang_createtable.html#rowid
_BY_ID = """SELECT 1 FROM pragma_table_info(?1) WHERE name = 'id' AND pk = 1 AND upper(type) = 'INTEGER'
AND NOT EXISTS (SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')"""

_LAYOUTS_BY_SHAPE: dict[str, _Layout] = {}  # by the text of CREATE TABLE without suffix

_Contents: TypeAlias = Sequence[tuple[str, str, str | None]]
"""Type, name and text of all tables, indexes and views of a file."""

_Tables: TypeAlias = Mapping[str, tuple[str, ...]]
"""Table -> its columns."""

_Metadata: TypeAlias = dict[str, list[tuple[str, str]]]
"""Table -> (tag, value) of its rows."""


@frozen
class _Form:
    """The tables of a rank: base name -> columns; tables whose ids may occur twice, and tables whose ids are rowids."""

    tables: _Tables
    keyless: frozenset[str]
    by_id: frozenset[str]


_FORMS: dict[str, _Form] = {}  # of files that hold one rank, by their schema without the suffix
_MOST_FORMS = 64


@frozen
class Rank:
    """One process of the job: the rows of one GUID in one file.

    Args:
        number: 0-based rank number, unique in a session.
        guid: identity of the rank; made from the suffix where the file's GUID does not agree with the suffix.
        suffix: suffix of its tables.
        opening: the file, and how it is opened.
        tables: base name -> columns that the file really has.
        version: schema version that the file declares, as `3.0.1`.
        hostname, machine_id, pid, command: of the process; None where the file does not say.
        mpi_rank: MPI rank that the process knew, or None.
        parent: pid of the process that started it, or None.
        boot: id of the start of the machine on which it ran, or None.
        pid_namespace: namespace of its pid, which each container has its own of, or None.
        life: when the process started and ended [ns of its clock], None where the file does not say.
        run: number of its run; all ranks of one job have run 0.
        notes: notes on values in the file that are not usable, and count as not given.
        keyless: base names of tables whose `id` is no primary key: an id may occur twice.
        by_id: base names of tables whose `id` is the rowid.
        window: the window whose rows the file holds, if it was merged from a window.
        clock: name of the clock of its times, such as `CLOCK_REALTIME`; None where the file does not say.
        source: digest of the trace that it was imported from; other ranks may have the same; None: not imported.
    """

    number: int
    guid: str
    suffix: str
    opening: Opening
    tables: _Tables
    version: str
    hostname: str | None = None
    machine_id: str | None = None
    pid: int | None = None
    command: str | None = None
    mpi_rank: int | None = None
    parent: int | None = None
    boot: str | None = None
    pid_namespace: int | None = None
    life: tuple[int, int] | None = None
    run: int = 0
    notes: tuple[FileNote, ...] = ()
    keyless: frozenset[str] = frozenset()
    by_id: frozenset[str] = frozenset()
    window: StoredWindow | None = None
    clock: str | None = None
    source: str | None = None

    def __repr__(self) -> str:
        """Return the label and path of the rank, not every column of its tables."""
        return visible(f"<{self.label}: {self.opening.path}>")

    def as_tables(self, further: _Tables | None = None) -> RankTables:
        """Return the tables as a connection to the rank's own file names them; `further`: as for `RankTables`."""
        tables = RankTables(self.suffix, self.tables, None, self.number, self.hostname, further or {})
        return dataclasses.replace(tables, guid=self.guid, keyless=self.keyless, by_id=self.by_id)

    @property
    def plain_guid(self) -> str:
        """The GUID without `#2`, which sets files with one suffix apart."""
        return self.guid.partition("#")[0]

    @property
    def has_machine(self) -> bool:
        """Whether the recording names the machine; for one that does not, importers make a name of its digest."""
        return self.source is None or self.source not in (self.machine_id or self.source)

    @property
    def has_date(self) -> bool:
        """Whether the times of the rank count the time of day."""
        return self.clock == "CLOCK_REALTIME"

    @property
    def label(self) -> str:
        """`rank 3 · host · command (pid)`, for people."""
        name = self.command.split()[0] if self.command and self.command.split() else "?"
        return f"rank {self.number} · {self.hostname or '?'} · {name} ({'?' if self.pid is None else self.pid})"


def identify(opening: Opening, keep: Callable[[Opening, apsw.Connection], None] | None = None) -> tuple[Rank, ...]:
    """Return the ranks in a file, each with the number 0: `numbered` assigns the numbers of a job.

    Args:
        opening: the file.
        keep: takes over the connection, which has read the schema, if the file has ranks; None: it is closed.

    Raises:
        InputError: not a rocpd database of schema 3, or a damaged one; the message names the file and the fault.
    """
    connection = opening.connect()
    try:
        with contextlib.ExitStack() as ending, as_input_error(opening.path):
            ending.callback(connection.close)
            contents: list[Any] = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
            metadata, forms = _known_form(connection, opening, contents) or _forms(connection, opening, contents)
            ranks = tuple(_rank(connection, opening, suffix, form, metadata) for suffix, form in forms.items())
            if keep:
                ending.pop_all()
                keep(opening, connection)
            return ranks
    except apsw.Error as error:
        raise InputError(f"{opening.path}: cannot be read: {error}", _SKIP_HINT) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{opening.path}: damaged: the schema holds text that is not UTF-8", _SKIP_HINT) from error


def by_file(ranks: Iterable[Rank]) -> dict[Opening, list[Rank]]:
    """Return the ranks of each file, in order."""
    return by_key((rank.opening, rank) for rank in ranks)


def _known_form(
    connection: apsw.Connection, opening: Opening, contents: _Contents
) -> tuple[_Metadata, dict[str, _Form]] | None:
    """Return the result of `_forms` for a file that differs from an earlier one in its suffix only, else None."""
    suffix, key = _apart_from_suffix(contents)
    if (form := _FORMS.get(key)) is None:
        return None
    metadata = _metadata(connection, {"rocpd_metadata" + suffix: form.tables.get("rocpd_metadata", ())})
    if _declared(metadata) != (suffix,):
        return None
    _check_compression(opening, metadata, {})
    _check_version(opening, metadata)
    return metadata, {suffix: form}


def _forms(connection: apsw.Connection, opening: Opening, contents: _Contents) -> tuple[_Metadata, dict[str, _Form]]:
    """Return the rows of metadata, and suffix -> tables."""
    layouts = _layouts(connection, contents)
    views = {name: sql or "" for kind, name, sql in contents if kind == "view"}
    tables = {name: layout.columns for name, layout in layouts.items()}
    metadata = _metadata(connection, tables)
    _check_compression(opening, metadata, views)
    suffixes = _suffixes(opening, tables, metadata)
    if lost := sorted(_named_tables("\n".join(views.values()), suffixes) - tables.keys()):
        view = next(name for name, sql in views.items() if lost[0] in sql)
        raise InputError(f"{opening.path}: damaged: view {view} names a missing table, {lost[0]}", _SKIP_HINT)
    forms = {}
    for suffix, its in _tables_by_suffix(tables, suffixes).items():
        if not its:
            raise InputError(f"{opening.path}: metadata names the suffix {suffix}, but no table has it", _SKIP_HINT)
        keyless = frozenset(base for base in its if layouts[base + suffix].is_keyless)
        forms[suffix] = _Form(its, keyless, frozenset(base for base in its if layouts[base + suffix].is_by_id))
    suffix, key = _apart_from_suffix(contents)
    if tuple(forms) == _declared(metadata) == (suffix,) and len(metadata) == 1 and len(_FORMS) < _MOST_FORMS:
        _FORMS[key] = forms[suffix]
    return metadata, forms


def _apart_from_suffix(contents: _Contents) -> tuple[str, str]:
    """Return the suffix of the first table that has one, and the file's schema with marks in place of the suffix."""
    tables = (name for kind, name, _ in contents if kind == "table")
    suffix = next((split[1] for split in map(versions.split_suffix, tables) if split), "")
    text = _MARK.join(part or "" for entry in contents for part in entry)
    marked = text.replace(suffix, f"{_MARK}suffix").replace(versions.guid_of(suffix), f"{_MARK}guid") if suffix else ""
    return suffix, marked


def _layouts(connection: apsw.Connection, contents: _Contents) -> dict[str, _Layout]:
    """Return table -> layout."""
    tables: dict[str, _Layout] = {}
    for name, sql in ((name, sql or "") for kind, name, sql in contents if kind == "table"):
        suffix = (versions.split_suffix(name) or (name, ""))[1]
        # The ranks of a file have the same tables except for the suffix: asking SQLite once saves half the time.
        shape = versions.without_suffix(sql, suffix) if suffix else ""
        layout = _LAYOUTS_BY_SHAPE.get(shape) if shape else None
        if layout is None:
            layout = _layout(connection, name, sql)
            if shape and len(_LAYOUTS_BY_SHAPE) < _MOST_SHAPES:
                _LAYOUTS_BY_SHAPE[shape] = layout
        tables[name] = layout
    return tables


def _layout(connection: apsw.Connection, name: str, sql: str) -> _Layout:
    rows: list[Any] = connection.execute(f"PRAGMA table_info({quote_name(name)})").fetchall()
    columns = tuple(row[1] for row in rows)
    has_id = "id" in map(str.lower, columns)
    has_key = [row[1].lower() for row in rows if row[5]] == ["id"] or re.search(r"(?i)\bWITHOUT\s+ROWID\b", sql)
    return _Layout(columns, has_id and not has_key, bool(connection.execute(_BY_ID, (name,)).fetchall()))


def _metadata(connection: apsw.Connection, tables: _Tables) -> _Metadata:
    """Return table -> (tag, value) of its rows; bytes that are no UTF-8 come as `\\xNN` and agree with nothing."""
    metadata = (name for name in tables if name == "rocpd_metadata" or name.startswith("rocpd_metadata_"))
    names = [name for name in metadata if {"tag", "value"} <= set(map(str.lower, tables[name]))]
    return {
        name: [
            (decoded(tag) or "", decoded(value) or "")
            for tag, value in connection.execute(
                f"SELECT CAST(tag AS BLOB), CAST(value AS BLOB) FROM {quote_name(name)}"
            )
        ]
        for name in names
    }


def _check_compression(opening: Opening, metadata: _Metadata, views: Mapping[str, str]) -> None:
    if how := versions.compression_of([row for rows in metadata.values() for row in rows], views.values()):
        raise InputError(
            f"{opening.path}: is a rocpd database with compressed tables, {how}: a draft that is not supported",
            "record without compression",
        )


def _suffixes(opening: Opening, tables: _Tables, metadata: _Metadata) -> tuple[str, ...]:
    path = opening.path
    if kind := versions.foreign_kind(tables):
        raise ForeignError(f"{path}: is {kind}, not a rocpd database of schema 3", _SKIP_HINT)
    if not any(name.startswith("rocpd_") for name in tables):
        raise ForeignError(f"{path}: a SQLite file, but not a rocpd database (no rocpd_ tables)", _SKIP_HINT)
    _check_version(opening, metadata)
    if bare := [name for name in tables if name in TABLES and name != "rocpd_metadata"]:
        raise InputError(f"{path}: table {bare[0]} has no UUID suffix: not a rocpd database of schema 3", _SKIP_HINT)
    declared = _declared(metadata)
    known = frozenset(declared)
    used = {split[1] for split in (versions.split_suffix(name, known) for name in tables) if split}
    if not declared and not used:
        raise InputError(f"{path}: no table has a UUID suffix, and metadata names none", _SKIP_HINT)
    return (*declared, *sorted(used - set(declared)))


def _check_version(opening: Opening, metadata: _Metadata) -> None:
    for rows in metadata.values():
        version = versions.declared_version(rows)
        if versions.as_tuple(version)[0] != 3:
            raise InputError(f"{opening.path}: rocpd schema {version} is not supported, only 3.x is", "update rocpd")


def _declared(metadata: _Metadata) -> tuple[str, ...]:
    """Return the suffixes that metadata names."""
    return tuple(dict.fromkeys(value for rows in metadata.values() for tag, value in rows if tag == "uuid"))


def _named_tables(text: str, suffixes: Sequence[str]) -> set[str]:
    """Return the tables with one of these suffixes that SQL names, in one pass: views of merged files are long."""
    if len(suffixes) == 1:
        return {base + suffixes[0] for base in _bases(text.replace(suffixes[0], _MARK))}
    known = frozenset(suffixes)
    named = set(re.findall(r"\brocpd_\w+", text))
    return {name for name in named if (split := versions.split_suffix(name, known)) and split[1] in known}


@functools.lru_cache(maxsize=8)
def _bases(text: str) -> frozenset[str]:
    """Return the words before marks, which replace a suffix: the views of most files differ in the suffix only."""
    return frozenset(re.findall(rf"\b(rocpd_\w+?){_MARK}(?!\w)", text))


def _tables_by_suffix(tables: _Tables, suffixes: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return suffix -> base name -> columns."""
    by_suffix: dict[str, dict[str, tuple[str, ...]]] = {suffix: {} for suffix in suffixes}
    for name, columns in tables.items():
        split = versions.split_suffix(name, by_suffix)
        if split and split[1] in by_suffix:
            by_suffix[split[1]][split[0]] = columns
    return by_suffix


def _rank(connection: apsw.Connection, opening: Opening, suffix: str, form: _Form, metadata: _Metadata) -> Rank:
    tables = form.tables
    rows = metadata.get("rocpd_metadata" + suffix) or [row for rows in metadata.values() for row in rows]
    guids = (value for tag, value in rows if tag == "guid")
    process = _first_row(connection, tables, "rocpd_info_process", suffix, (*_PROCESS, *_LIFE))
    node = _first_row(connection, tables, "rocpd_info_node", suffix, ("hostname", "machine_id"), process["nid"])
    said = json_object(decoded(process["extdata"]) or "{}") or {}  # by `rocpd record`; others say nothing
    boot, pid_namespace = said.get("boot_id"), said.get("pid_namespace")
    mpi_rank, note = _mpi_rank(process["environment"], process["extdata"])
    return Rank(
        number=0,
        guid=next((guid for guid in guids if suffix_of(guid) == suffix), versions.guid_of(suffix)),
        suffix=suffix,
        opening=opening,
        tables=tables,
        version=versions.declared_version(rows),
        hostname=decoded(node["hostname"]),
        machine_id=decoded(node["machine_id"]),
        pid=_number(process["pid"]),
        command=decoded(process["command"]),
        mpi_rank=mpi_rank,
        parent=_number(process["ppid"]),
        boot=boot if isinstance(boot, str) else None,
        pid_namespace=_number(pid_namespace),
        life=_life(*(process[name] for name in _LIFE)),
        notes=(FileNote(opening.path, f"{note}: counts as not given"),) if note else (),
        keyless=form.keyless,
        by_id=form.by_id,
        window=StoredWindow.read(metadata.get("rocpd_metadata" + suffix, ())),
        clock=next((value for tag, value in rows if tag == "clock"), None),
        source=next((value for tag, value in rows if tag == "import::source_digest"), None),
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _first_row(
    connection: apsw.Connection, tables: _Tables, base: str, suffix: str, columns: Sequence[str], row_id: object = None
) -> dict[str, Any]:
    """Return the row with `row_id`, else the first row. Text comes as bytes, missing columns as None."""
    available = tables.get(base, ())
    present = [column for column in columns if column in available]
    empty = dict.fromkeys(columns)
    if not present or "id" not in available:
        return empty
    items = ", ".join(
        f"CASE typeof({q}) WHEN 'text' THEN CAST({q} AS BLOB) ELSE {q} END" for q in map(quote_name, present)
    )
    sql = f"SELECT {items} FROM {quote_name(base + suffix)} ORDER BY id IS NOT ?, id LIMIT 1"
    row = connection.execute(sql, (row_id,)).fetchone()
    return empty | dict(zip(present, row, strict=True)) if row else empty


def _life(start: object, end: object, init: object, fini: object) -> tuple[int, int] | None:
    """Return start and end of a process, else the times at which it set up and shut down the profiler."""
    for first, last in ((start, end), (init, fini)):
        if isinstance(first, int) and isinstance(last, int) and 0 < first <= last:
            return first, last
    return None


def _mpi_rank(environment: object, extdata: object) -> tuple[int | None, str]:
    """Return the MPI rank that a process knew, and the fault of the file's value for it, or an empty text."""
    for source, of, keys in ((extdata, "extdata", _MPI_EXTDATA), (environment, "environment", MPI_VARIABLES)):
        try:
            values = json.loads(decoded(source) or "{}", parse_int=str)
        except ValueError:
            continue
        except RecursionError:
            return None, f"the {of} of the process is nested too deeply"
        for key in keys if isinstance(values, dict) else ():
            if key in values and values[key] is None:
                return None, ""  # a launcher, whose environment has the number that its own launcher gave it
            digits = str(values.get(key, ""))
            if re.fullmatch(r"[0-9]+", digits):
                if len(digits) > _MOST_DIGITS or int(digits) > _LARGEST_RANK:
                    return None, f"{key} {digits[:_MOST_DIGITS]}… of the process is no rank number"
                return int(digits), ""
    return None, ""


def world_size(texts: Iterable[object]) -> int:
    """Return the number of ranks of its job that a process knew by its environment or further data; 0: not known."""
    for text in texts:
        values: Mapping[str, object] = (json_object(text) if isinstance(text, str) else None) or {}
        for name in (*_SIZE_VARIABLES, "mpi_size"):
            if str(values.get(name, "")).isdecimal():
                return int(str(values[name])[:9])
    return 0


_CLOCKS_DIFFER_NS = 600 * 10**9  # between machines whose clocks show the date: ranks further apart ran at another time
_TIMES_AND_VALUES = frozenset({"start", "end", "timestamp", "value", "size"})


def without_duplicates(ranks: Iterable[Rank]) -> tuple[tuple[Rank, ...], tuple[str, ...]]:
    """Return each rank once, and a note on each that is dropped or gets another GUID.

    Ranks with one suffix are the same if all tables but the metadata have equal numbers of rows and equal sums of
    ids, times, sizes, values and lengths of strings. If not, the later is a separate rank: its GUID gets `#2`.

    Raises:
        InputError: a file that has to be compared is damaged or locked.
    """
    by_suffix: dict[str, list[Rank]] = {}
    known: dict[tuple[object, str], Mapping[str, Row]] = {}

    def rows_of(rank: Rank) -> Mapping[str, Row]:
        key = (rank.opening, rank.suffix)
        if key not in known:
            known[key] = _sums(rank)
        return known[key]

    all_ranks: list[Rank] = []
    notes = []
    for rank in ranks:
        guid = rank.plain_guid
        others = by_suffix.setdefault(suffix_of(guid), [])
        if same := next((other for other in others if rows_of(rank) == rows_of(other)), None):
            notes.append(f"{rank.opening.path}: GUID {rank.guid} counts once, it is also in {same.opening.path}")
            continue
        distinct = dataclasses.replace(rank, guid=_unused(rank.guid, guid, {other.guid for other in others}))
        if distinct.guid != rank.guid:
            notes.append(
                f"{rank.opening.path}: the table suffix is that of {others[0].opening.path}, the rows are not: "
                f"a rank of its own, with the GUID {distinct.guid}"
            )
        others.append(distinct)
        all_ranks.append(distinct)
    return tuple(all_ranks), tuple(notes)


def _unused(guid: str, base: str, used: set[str]) -> str:
    number = 1
    while guid in used:
        number += 1
        guid = f"{base}#{number}"
    return guid


def _sums(rank: Rank) -> Mapping[str, Row]:
    """Return table -> number of rows and sums over them, of tables with rows."""
    with contextlib.closing(rank.opening.connect()) as connection, as_input_error(rank.opening.path):
        selects = {base: _select(rank, base) for base in rank.tables if base != "rocpd_metadata"}
        rows = {base: tuple(connection.execute(sql).fetchall()[0]) for base, sql in selects.items()}
        return {base: row for base, row in rows.items() if row[0]}


def _select(rank: Rank, base: str) -> str:
    items = ["COUNT(*)"]
    for column in sorted(rank.tables[base], key=str.lower):
        name = quote_name(column)
        if column.lower() == "string":
            items.append(f"SUM(LENGTH(CAST({name} AS BLOB)))")
        elif column.lower() in _TIMES_AND_VALUES or (column.lower().endswith("id") and column.lower() != "guid"):
            # In halves, whose sums do not overflow for any number of rows.
            items += [f"COUNT({name})", f"SUM({name} & 4294967295)", f"SUM({name} >> 32)"]
    return f"SELECT {', '.join(items)} FROM {quote_name(base + rank.suffix)}"


def with_machines(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks, with the boot id in the machine id where one machine id has several boots.

    These are several machines, or one that was restarted meanwhile: times of two boots do not compare either way.
    """
    starts = {(rank.machine_id, rank.boot) for rank in ranks if rank.machine_id is not None and rank.boot}
    counts = Counter[str | None](machine for machine, _ in starts)
    return tuple(
        dataclasses.replace(rank, machine_id=f"{rank.machine_id}/{rank.boot}")
        if rank.boot and counts[rank.machine_id] > 1
        else rank
        for rank in ranks
    )


def numbered(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks in order, each with its number.

    If the processes that are ranks have distinct MPI ranks, these are their numbers, and the other processes follow:
    launchers, and children of ranks, such as workers of a data loader. Else all are numbered by (hostname, pid, GUID).
    """
    helpers = {rank.guid for rank in (*_launchers(ranks), *_started_by_ranks(ranks))}
    mpi_ranks = [rank.mpi_rank for rank in ranks if rank.guid not in helpers]
    in_order = sorted(ranks, key=lambda r: (r.hostname or "", r.pid if r.pid is not None else -1, r.guid))
    if not ranks or None in mpi_ranks or len(set(mpi_ranks)) != len(mpi_ranks):
        return tuple(dataclasses.replace(rank, number=index) for index, rank in enumerate(in_order))
    first = [dataclasses.replace(rank, number=rank.mpi_rank or 0) for rank in ranks if rank.guid not in helpers]
    first.sort(key=lambda rank: rank.number)
    others = (rank for rank in in_order if rank.guid in helpers)
    return (*first, *(dataclasses.replace(rank, number=n) for n, rank in enumerate(others, first[-1].number + 1)))


def _launchers(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the processes without an MPI rank that started ranks with one, and their other children without one."""
    starters = {(rank.machine_id, rank.parent) for rank in ranks if rank.mpi_rank is not None}
    without = [rank for rank in ranks if rank.mpi_rank is None and rank.pid is not None]
    launchers = {(rank.machine_id, rank.pid) for rank in without} & starters
    return [rank for rank in without if launchers & {(rank.machine_id, rank.pid), (rank.machine_id, rank.parent)}]


def _started_by_ranks(ranks: Iterable[Rank]) -> list[Rank]:
    """Return the processes that another process with the same MPI rank started."""
    known = (rank for rank in ranks if rank.machine_id is not None and rank.mpi_rank is not None)
    alike = by_key(((rank.machine_id, rank.mpi_rank), rank) for rank in known)
    return [rank for processes in alike.values() for rank in _without_first(processes)]


def _without_first(processes: Sequence[Rank]) -> list[Rank]:
    """Return all but the process that started before the others; only the children where the first is not known.

    The parent of a process need not be recorded, but the first process still lives when the others start.
    """
    pids = {rank.pid for rank in processes}
    children = [rank for rank in processes if rank.parent in pids]
    roots = [(rank.life, rank) for rank in processes if rank.parent not in pids]
    if not roots:
        return []  # damaged: each is the child of another
    lives = sorted(life for life, _ in roots if life)
    if len(lives) < len(roots) or len(roots) < 2 or not lives[0][0] < lives[1][0] <= lives[-1][0] <= lives[0][1]:
        return children
    return [*children, *(rank for life, rank in roots if life != lives[0])]


def with_runs(ranks: Sequence[Rank]) -> tuple[Rank, ...]:
    """Return the ranks, each with the number of its run, which counts from 0 in the order of ranks."""
    runs: list[_Run] = []
    with_events = (rank for rank in ranks if MEASURED.isdisjoint(rank.tables))
    # A rank whose machine is unknown stands alone.
    machines = by_key((rank.number if rank.machine_id is None else rank.machine_id, rank) for rank in with_events)
    for machine in machines.values():
        taken: list[_Run] = []
        for part in map(_Run.of, _at_one_time(machine)):
            run = next((run for run in runs if run not in taken and run.may_be_of(part)), None)
            if run:
                run.add(part)
            else:
                runs.append(part)
            taken.append(run or part)
    if len(runs) < 2 or _are_parts_of_one([run.members for run in runs]):
        return tuple(ranks)
    runs.sort(key=lambda run: min(rank.number for rank in run.members))
    number = {rank.number: index for index, run in enumerate(runs) for rank in run.members}
    return tuple(dataclasses.replace(rank, run=number.get(rank.number, 0)) for rank in ranks)


def _at_one_time(ranks: Sequence[Rank]) -> Iterator[list[Rank]]:
    """Yield the ranks of one machine that lived at the same time, earliest first; undated ones go with the earliest."""
    part = [rank for rank in ranks if rank.life is None]
    last = None
    known = [(rank.life, rank) for rank in ranks if rank.life is not None]
    for (start, end), rank in sorted(known, key=lambda lived: (lived[0], lived[1].number)):
        if last is not None and start > last:
            yield part
            part = []
        part.append(rank)
        last = end if last is None else max(last, end)
    yield part


@dataclasses.dataclass(eq=False)
class _Run:
    """Processes of one job, while the processes of its machines are gathered.

    Args:
        members: the processes.
        mpi_ranks: MPI ranks of the processes.
        commands: commands of the processes, without numbers.
        sources: traces that the processes were imported from.
        lived: first start and last end of the processes whose clock shows the date [ns]; None: no clock does.
    """

    members: list[Rank]
    mpi_ranks: set[int]
    commands: set[str | None]
    sources: set[str]
    lived: tuple[int, int] | None

    @classmethod
    def of(cls, ranks: list[Rank]) -> _Run:
        """Return the run of processes of one machine that lived at the same time."""
        lived = _whole_life(rank.life for rank in ranks if rank.has_date)
        mpi_ranks = {rank.mpi_rank for rank in ranks if rank.mpi_rank is not None}
        return cls(ranks, mpi_ranks, set(map(_command, ranks)), {rank.source for rank in ranks if rank.source}, lived)

    @functools.cached_property
    def gpus(self) -> set[str]:
        """The architectures of the GPUs of processes without an MPI rank; importers may know only their numbers."""
        without = (rank for rank in self.members if rank.mpi_rank is None)
        names = (_names(rank, "rocpd_info_agent", "name", "type") for rank in without)
        return {name for of_rank in names for name, kind in of_rank if kind == "GPU" and name.startswith("gfx")}

    @functools.cached_property
    def has_collectives(self) -> bool:
        """Whether a process has kernels that communicate."""
        categories = load(None)
        names = (_names(rank, "rocpd_info_kernel_symbol", "display_name") for rank in self.members)
        return any(is_communication(categories.of(name)) for of_rank in names for (name,) in of_rank)

    def add(self, part: _Run) -> None:
        """Add the processes of another machine."""
        self.gpus |= part.gpus
        if not vars(self).get("has_collectives", True):  # the answer was of the earlier members
            self.has_collectives = part.has_collectives
        self.members += part.members
        self.mpi_ranks |= part.mpi_ranks
        self.commands |= part.commands
        self.sources |= part.sources
        self.lived = _whole_life((self.lived, part.lived))

    def may_be_of(self, part: _Run) -> bool:
        """Whether both are of one job: one command and distinct MPI ranks; without MPI ranks, equal GPUs and time.

        Where no command is known, they are of one trace, or both communicate, or lived at the same time.
        """
        commands = self.commands & part.commands
        if not commands or not self.mpi_ranks.isdisjoint(part.mpi_ranks):
            return False
        if (self.mpi_ranks and part.mpi_ranks) or not self.sources.isdisjoint(part.sources):
            return True
        are_others = self.gpus and part.gpus and self.gpus.isdisjoint(part.gpus)
        if are_others or not self._may_have_met(part):
            return False
        return commands != {None} or (self.has_collectives and part.has_collectives) or self._overlaps(part)

    def _overlaps(self, part: _Run) -> bool:
        """Whether processes of both lived at the same time, if their clocks were the same."""
        lives, others = ([rank.life for rank in run.members if rank.life] for run in (self, part))
        return any(max(start, first) <= min(end, last) for start, end in lives for first, last in others)

    def _may_have_met(self, part: _Run) -> bool:
        """Whether both may have had processes at the same time; unless their clocks show the date, they may."""
        if self.lived is None or part.lived is None:
            return True
        (start, end), (other_start, other_end) = self.lived, part.lived
        return max(start, other_start) - min(end, other_end) <= _CLOCKS_DIFFER_NS


def _names(rank: Rank, base: str, *columns: str) -> list[tuple[str, ...]]:
    """Return the text of some columns of a table; nothing where the file lacks one."""
    if not set(columns) <= {*rank.tables.get(base, ())}:
        return []
    texts = ", ".join(f"CAST({quote_name(column)} AS BLOB)" for column in columns)
    with contextlib.closing(rank.opening.connect()) as connection, as_input_error(rank.opening.path):
        rows = connection.execute(f"SELECT DISTINCT {texts} FROM {quote_name(base + rank.suffix)}").fetchall()
        return [tuple(decoded(text) or "" for text in row) for row in rows]


def _whole_life(lives: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return the first start and last end of the known lives; None if none is known."""
    known = [life for life in lives if life]
    return (min(start for start, _ in known), max(end for _, end in known)) if known else None


def _command(rank: Rank) -> str | None:
    """Return the command without numbers, which may be ranks or ports."""
    return None if rank.command is None else re.sub(r"\d+", "#", rank.command)


def _are_parts_of_one(runs: Sequence[Sequence[Rank]]) -> bool:
    """Whether all processes have MPI ranks, each of one run only: the children of a rank have its MPI rank."""
    of_runs = [{rank.mpi_rank for rank in run} for run in runs]
    mpi_ranks = set().union(*of_runs)
    return None not in mpi_ranks and len(mpi_ranks) == sum(map(len, of_runs))
