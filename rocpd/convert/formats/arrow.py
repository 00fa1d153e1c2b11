"""One readable view as an Arrow file (`<name>_<view>.arrow`) or stream (`.arrows`): the rows of all ranks.

Columns are those of SQL, `rank` included; times stay as recorded. Texts are plain strings: a file cannot replace a
dictionary between ranks.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pyarrow as pa

from rocpd.base.errors import UsageError
from rocpd.base.output import complete_or_nothing, workplace
from rocpd.base.types import Progress
from rocpd.convert.deliver.parts import RankPart, split_outputs, write_parts
from rocpd.convert.deliver.placement import placements
from rocpd.convert.formats.tables import check_views, record_batches, schema_of
from rocpd.convert.lookups import ReferenceTables
from rocpd.convert.options import ConvertOptions
from rocpd.convert.view_reader import damage_line
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader

_DEFAULT = "kernels"


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write one view; see `rocpd.convert.Format.write`."""
    check_views(options.views)
    if len(options.views) > 1:
        raise UsageError("arrow: one view at a time", "give --view once, or -f parquet for several")
    (view,) = options.views or (_DEFAULT,)
    is_stream = options.arrow_stream or options.ending == ".arrows"
    usual = f"_{view}.arrow{'s' if is_stream else ''}"
    path = options.path(options.ending_of(usual, ".arrow", ".arrows"))
    outputs = split_outputs(placements(session, aligned=False), None)
    schema, damaged = _schema(view), Counter[str]()
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(complete_or_nothing(path, options.force))
        folder = stack.enter_context(workplace(options.folder))
        with temporary.open("wb", buffering=1 << 20) as file:
            out = (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(file, schema)
            parts = write_parts(_write_part, session, outputs, folder, options, progress)
            stack.callback(parts.close)
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


def _schema(view: str) -> pa.Schema:
    schema = schema_of(view, with_rank=True)
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _write_part(part: RankPart, reader: RankReader) -> Counter[str]:
    damaged = Counter[str]()
    (view,) = part.options.views or (_DEFAULT,)
    schema = _schema(view)
    with pa.OSFile(str(part.path), "wb") as file, pa.ipc.new_stream(file, schema) as out:
        for batch in record_batches(ReferenceTables(reader), view, damaged, with_rank=True):
            out.write_batch(pa.RecordBatch.from_arrays(list(map(_plain, batch.columns)), schema=schema))
    return damaged


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
