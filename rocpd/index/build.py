"""Builds entries of the index: the views of each rank as Parquet, rank by rank on all cores.

A column is stored cell for cell as its view shows it in SQL, or it does not count. `guid`, `rank` and `hostname` are
not stored: the job gives them. Rows are stored in the order of their ids.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rocpd.base import NULL, Progress, frozen, leftovers
from rocpd.base.cache import Cache
from rocpd.base.home import cache_root
from rocpd.base.identity import blake2b
from rocpd.base.output import as_output_error
from rocpd.convert.formats.tables import CODED_TEXT, TYPES, array
from rocpd.convert.view_reader import ReferenceTables, ViewReader
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.index.entries import VIEWS, IndexEntry, StoredView, ValueKind, cannot_index, facts_of, indexes, state_of
from rocpd.schema.load import Kind, ViewColumn, view
from rocpd.schema.quote import quote_name, quote_text
from rocpd.schema.versions import without_suffix

OF_THE_RANK = ("guid", "rank", "hostname")
"""Columns with one value per rank: the job's value, which may differ from the file's."""

_KINDS = {Kind.INTEGER: ValueKind.INT, Kind.REAL: ValueKind.REAL, Kind.TEXT: ValueKind.TEXT, Kind.JSON: ValueKind.TEXT}
_TYPES_OF_SQLITE = {ValueKind.INT: "integer", ValueKind.REAL: "real", ValueKind.TEXT: "text"}


@frozen
class Built:
    """The outcome for one rank.

    Args:
        rank: its number.
        is_new: an entry was written; False: it existed before.
        size: size of the entry [bytes].
        why_not: why there is no entry; empty: there is one.
    """

    rank: int
    is_new: bool = False
    size: int = 0
    why_not: str = ""


def build(session: Federation, folder: Path | None = None, progress: Progress | None = None) -> tuple[Built, ...]:
    """Build the entries of all ranks of a job that have no entry.

    Args:
        session: the job; its window and filters don't matter.
        folder: folder of the entries; None: in the user's cache.
        progress: called with (ranks done, ranks in all).

    Raises:
        OutputError: the folder cannot be written, or is full.
        InputError: a file is damaged.
    """
    cache = indexes(folder)
    new = leftovers.missing_folders(cache.root)
    cache.make()
    answers = []
    try:
        for _, built in session.map_ranks(partial(_build_rank, cache)):
            answers.append(built)
            if progress:
                progress(len(answers), len(session.ranks))
    finally:
        leftovers.sweep(cache.root)  # files of processes that were ended because another one failed
        if folder and all(each.why_not for each in answers):
            leftovers.remove_empty(new)
    if folder is None and cache.root == cache_root("index"):  # another folder may be shared, and is never cleared
        cache.evict()
    return tuple(answers)


def _build_rank(cache: Cache[IndexEntry], reader: RankReader) -> Built:
    rank = reader.rank
    if why_not := cannot_index(rank):
        return Built(rank.number, why_not=why_not)
    state = state_of(rank)
    if entry := cache.entry(state):
        return Built(rank.number, size=entry.size)
    with as_output_error(cache.root):
        folder = leftovers.make_folder(cache.root)
        try:
            whole = reader.whole()
            references = ReferenceTables(whole)
            views = {name: _write_view(folder / f"{name}.parquet", whole, references, name) for name in VIEWS}
            if state_of(rank) != state:
                return Built(rank.number, why_not="it is being written to")
            entry = cache.place(folder, state, facts_of(rank.opening.path, views, _schema_of(reader)))
        finally:
            leftovers.remove(folder)
    return Built(rank.number, is_new=True, size=entry.size)


def _schema_of(reader: RankReader) -> str:
    """Return a text that is equal for ranks with the same plans in SQLite: by tables, indexes and statistics.

    Viewers and people add indexes for speed, or have SQLite analyse a file.
    """
    suffix = reader.rank.suffix
    ours = f"tbl_name LIKE '%' || {quote_text(suffix)}"
    rows = reader.rows(f"SELECT type, name, sql FROM sqlite_master WHERE type <> 'view' AND {ours} ORDER BY rowid")
    text = without_suffix(repr(rows), suffix)
    if reader.rows("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'"):
        text += reader.rank.guid
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _write_view(path: Path, reader: RankReader, references: ReferenceTables, name: str) -> StoredView:
    """Write a view; return its columns with values of one kind: other columns are written too, but don't count."""
    columns = [column for column in view(name).columns if column.name not in OF_THE_RANK]
    schema = pa.schema([(column.name, _arrow_type(column)) for column in columns])
    numbers = [each.name for each in schema if pa.types.is_integer(each.type)]
    rows = ViewReader(references, name, schema.names)
    count, odd, with_nulls, beyond_ascii = 0, set[str](), set[str](), set[str]()
    last_id, is_by_id = np.empty(0, np.int64), True
    with pq.ParquetWriter(
        path,
        schema,
        compression="lz4",
        use_dictionary=[each for each in schema.names if each not in numbers],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    ) as out:
        for part in rows.batches():
            arrays = {each.name: array(part.column(each.name)).cast(each.type) for each in schema}
            out.write_batch(pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema))
            odd.update(each for each, values in arrays.items() if _is_odd(values))
            beyond_ascii.update(each for each, values in arrays.items() if not _is_ascii(values))
            with_nulls.update(each for each in numbers if arrays[each].null_count)
            ids = np.append(last_id, part.ints("id"))
            is_by_id &= bool((ids[1:] > ids[:-1]).all())
            last_id = ids[-1:]
            count += part.count
    odd |= rows.mixed | set(rows.damaged)
    odd.update(column.name for column in columns if column.lookup and _is_mixed(reader, column))
    odd.update(column.name for column in columns if _has_collation(reader, name, column))
    odd.update(each for each in with_nulls if _holds_null_number(reader, name, each))
    kinds = {column.name: _KINDS[column.kind] for column in columns if column.name not in odd}
    ascii_columns = (name for name, kind in kinds.items() if kind is ValueKind.TEXT and name not in beyond_ascii)
    greatest = {name: most for name, most in _greatest(path).items() if kinds.get(name) is ValueKind.INT}
    return StoredView(count, kinds, frozenset(ascii_columns), greatest, is_by_id)


def _arrow_type(column: ViewColumn) -> pa.DataType:
    return CODED_TEXT if column.lookup and column.kind.is_text else TYPES[column.kind]


def _greatest(path: Path) -> dict[str, int]:
    """Return the greatest absolute value of each column of whole numbers, by the statistics of the written file."""
    greatest: dict[str, int] = {}
    metadata = pq.read_metadata(path)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    for column in (group.column(place) for group in groups for place in range(metadata.num_columns)):
        if column.physical_type == "INT64":
            known = column.statistics  # missing without rows, and without ends if all are NULL
            ends = (known.min, known.max) if known is not None and known.has_min_max else (0, 0)
            greatest[column.path_in_schema] = max(*map(abs, ends), greatest.get(column.path_in_schema, 0))
    return greatest


def _is_ascii(values: pa.Array) -> bool:
    texts = values.dictionary if pa.types.is_dictionary(values.type) else values
    return not pa.types.is_string(texts.type) or bool(pc.all(pc.string_is_ascii(texts)).as_py() is not False)


def _is_odd(values: pa.Array) -> bool:
    """Whether a value is different in DuckDB: a text with a NUL or with bytes that are no UTF-8, infinity."""
    texts = values.dictionary if pa.types.is_dictionary(values.type) else values
    if pa.types.is_string(texts.type):
        return any(pc.any(pc.match_substring(texts, part)).as_py() for part in ("\0", "\\x"))
    return pa.types.is_floating(texts.type) and bool(pc.any(pc.is_inf(texts)).as_py())


def _is_mixed(reader: RankReader, column: ViewColumn) -> bool:
    """Whether the values that a column looks up have several kinds."""
    if column.lookup is None or column.lookup.column not in reader.tables.columns.get(column.lookup.table, ()):
        return False
    kind = _TYPES_OF_SQLITE[_KINDS[column.kind]]
    value, table = quote_name(column.lookup.column), quote_name(column.lookup.table)
    sql = f"SELECT 1 FROM {table} WHERE typeof({value}) NOT IN ('null', {quote_text(kind)}) LIMIT 1"
    return bool(reader.rows(sql))


def _has_collation(reader: RankReader, name: str, column: ViewColumn) -> bool:
    """Whether the table of a column has SQLite compare its texts other than byte by byte."""
    if not column.kind.is_text:
        return False
    alias, _, source = column.expression.partition(".")
    table = next((each.table for each in view(name).tables if each.alias == alias), "")
    if source not in reader.tables.columns.get(table, ()):
        return False
    with reader.lend() as database:
        _, collation, *_ = database.connection.column_metadata(None, table + reader.tables.suffix, source)
    return str(collation).upper() != "BINARY"


def _holds_null_number(reader: RankReader, name: str, column: str) -> bool:
    """Whether a column holds the number that stands for NULL."""
    sql = f"SELECT 1 FROM {quote_name(name)} WHERE {quote_name(column)} = {NULL} LIMIT 1"
    return bool(reader.rows(sql))
