"""Writes readable views in columns, as a folder of Parquet files or as an Arrow file or stream.

Every rank has the same schema, whatever its rows hold, so that the files of ranks read as one table.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from rocpd.base import Progress, UsageError
from rocpd.base.output import complete_or_nothing, folder_complete_or_nothing
from rocpd.convert.deliver import RankPart, placements, rank_parts, split_outputs
from rocpd.convert.options import ConvertOptions
from rocpd.convert.view_reader import (
    Coded,
    ReferenceTables,
    Values,
    ViewReader,
    damage_line,
    marker_batches,
    marker_items,
    missing,
)
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.load import VIEWS as ALL_VIEWS
from rocpd.schema.load import Kind, ViewColumn
from rocpd.schema.load import view as view_of

TYPES = {Kind.INTEGER: pa.int64(), Kind.REAL: pa.float64(), Kind.TEXT: pa.string(), Kind.JSON: pa.string()}
CODED_TEXT = pa.dictionary(pa.int32(), pa.string())
"""Texts that repeat: each text once, and its number per row."""

VIEWS = (
    "processes", "threads", "code_objects", "kernel_symbols", "pmc_info",
    "kernels", "regions", "samples", "markers", "memory_copies", "memory_allocations", "graph_launches",
    "events_args", "pmc_events",
)  # fmt: skip
"""The default views: each event once, and markers again by their message."""

_HOST = ViewColumn("hostname", "host of the rank", "", Kind.TEXT, "")


def known_views() -> tuple[str, ...]:
    """Return the views that can be written, which are views of rows."""
    return tuple(name for name in ALL_VIEWS if view_of(name).per_rank or name == "markers")


def check_views(views: tuple[str, ...]) -> None:
    """Refuse views that cannot be written.

    Raises:
        UsageError: the message names the first of them.
    """
    known = known_views()
    for name in views:
        if name not in known:
            raise UsageError(f"view {name}: cannot be written as columns", f"one of {', '.join(known)}")


def schema_of(view: str, with_rank: bool = False) -> pa.Schema:
    """Return the columns of a view with types, units and meanings, as in SQL; `with_rank` adds `rank`, last."""
    items = marker_items() if view == "markers" else view_of(view).columns
    fields = [_field(item) for item in items]
    if not any(item.name == "hostname" for item in items):
        fields.append(_field(_HOST).with_type(CODED_TEXT))
    if with_rank:
        fields.append(pa.field("rank", pa.int64()))
    return pa.schema(fields, metadata={"rocpd.view": view, "rocpd.doc": view_of(view).doc})


def _field(column: ViewColumn) -> pa.Field:
    """Return name, type, unit and meaning of a column."""
    is_coded = column.kind.is_text and (column.lookup or column.name == "guid")
    about = {"description": column.doc} | ({"unit": column.unit} if column.unit else {})
    return pa.field(column.name, CODED_TEXT if is_coded else TYPES[column.kind], metadata=about)


def record_batches(
    references: ReferenceTables, view: str, damaged: Counter[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view of one rank in row order.

    Args:
        references: the reference tables of the rank.
        view: name of the view.
        damaged: gets the number of cells that should be numbers and are not, by column.
        schema: the columns, as from `schema_of`; texts may be plain.
    """
    rank = references.reader.rank
    for columns, count in _columns(references, view, damaged):
        columns["rank"] = np.full(count, rank.number)
        if "hostname" not in columns:
            columns["hostname"] = Coded(np.full(count, -1 if rank.hostname is None else 0), [rank.hostname or ""])
        yield pa.RecordBatch.from_arrays([array(columns[item.name]).cast(item.type) for item in schema], schema=schema)


def array(values: Values) -> pa.Array:
    """Return a column as an Arrow array: coded texts become a dictionary."""
    if isinstance(values, Coded):
        index = pa.array(np.maximum(values.codes, 0).astype(np.int32), mask=values.codes < 0)
        return pa.DictionaryArray.from_arrays(index, pa.array(values.texts, pa.string()))
    if isinstance(values, list):
        return pa.array(values, pa.string())
    absent = missing(values)
    return pa.array(values, mask=absent if absent.any() else None)


def _columns(references: ReferenceTables, view: str, damaged: Counter[str]) -> Iterator[tuple[dict[str, Values], int]]:
    if view == "markers":
        of_view = Counter[str]()
        for columns in marker_batches(references, of_view):
            yield columns, len(columns["id"])
    else:
        views = ViewReader(references, view)
        for rows in views.batches():
            yield {name: rows.column(name) for name in views.columns}, rows.count
        of_view = views.damaged
    damaged.update({f"{view}.{column}": count for column, count in of_view.items()})


def write_parquet(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write the folder `<name>_parquet`; see `rocpd.convert.Format.write`.

    It holds one file per readable view and rank, `<view>/rank=<N>/part.parquet`. `rank` is in the path only, since
    Hive-style readers refuse a column that is in path and file. With the option for a column of ranks, files are
    `<view>/rank<N>.parquet`, whose path names no column. Times stay as recorded. Units and meanings of columns are in
    their metadata; row groups carry the least and the greatest value of each column, so that readers can skip by time.
    """
    check_views(options.views)
    folder = options.path(options.ending_of("_parquet", ".parquet"))
    outputs = split_outputs(placements(session, aligned=False), None)
    damaged = Counter[str]()
    with (
        folder_complete_or_nothing(folder, options.force) as temporary,
        rank_parts(_write_views, session, outputs, options, progress) as parts,
    ):
        for part, damaged_cells in parts:
            damaged += damaged_cells
            for file in sorted(part.path.iterdir()):
                number = part.placement.rank.number
                name = f"rank{number}.parquet" if options.with_rank else f"rank={number}/part.parquet"
                path = temporary / file.stem / name
                path.parent.mkdir(parents=True, exist_ok=True)
                file.rename(path)
            part.path.rmdir()
    if damaged:
        session.note(damage_line("parquet", damaged))
    return (folder,)


def _write_views(part: RankPart, reader: RankReader) -> Counter[str]:
    damaged, references = Counter[str](), ReferenceTables(reader)
    part.path.mkdir()
    for view in part.options.views or VIEWS:
        batches = record_batches(references, view, damaged, schema_of(view, part.options.with_rank))
        _write_file(part.path / f"{view}.parquet", batches)
    return damaged


def _write_file(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a view; no file if it has no rows."""
    import pyarrow.parquet as pq

    with contextlib.ExitStack() as stack:
        out = None
        for batch in batches:
            out = out or stack.enter_context(
                pq.ParquetWriter(path, batch.schema, compression="zstd", compression_level=1)
            )
            out.write_batch(batch)


_USUAL_VIEW = "kernels"


def write_arrow(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write one view as an Arrow file (`<name>_<view>.arrow`) or stream (`.arrows`): the rows of all ranks.

    Columns are those of SQL, including `rank`; times stay as recorded. Texts are plain strings, since a file cannot
    replace a dictionary between ranks. See `rocpd.convert.Format.write`.
    """
    check_views(options.views)
    if len(options.views) > 1:
        raise UsageError("arrow: one view at a time", "give --view once, or -f parquet for several")
    (view,) = options.views or (_USUAL_VIEW,)
    is_stream = options.arrow_stream or options.ending == ".arrows"
    usual = f"_{view}.arrow{'s' if is_stream else ''}"
    path = options.path(options.ending_of(usual, ".arrow", ".arrows"))
    outputs = split_outputs(placements(session, aligned=False), None)
    schema, damaged = _plain_schema(view), Counter[str]()
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(complete_or_nothing(path, options.force))
        parts = stack.enter_context(rank_parts(_write_stream, session, outputs, options, progress))
        with temporary.open("wb", buffering=1 << 20) as file:
            out = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)
            for part, damaged_cells in parts:
                with pa.OSFile(str(part.path)) as source, pa.ipc.open_stream(source) as batches:
                    for batch in batches:
                        out.write_batch(batch)
                part.path.unlink()
                damaged += damaged_cells
            out.close()
    if damaged:
        session.note(damage_line("arrow", damaged))
    return (path,)


def _plain_schema(view: str) -> pa.Schema:
    schema = schema_of(view, with_rank=True)
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _write_stream(part: RankPart, reader: RankReader) -> Counter[str]:
    damaged = Counter[str]()
    (view,) = part.options.views or (_USUAL_VIEW,)
    schema = _plain_schema(view)
    with pa.OSFile(str(part.path), "wb") as file, pa.ipc.new_stream(file, schema) as out:
        for batch in record_batches(ReferenceTables(reader), view, damaged, schema):
            out.write_batch(batch)
    return damaged
