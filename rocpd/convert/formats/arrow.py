"""Owns one readable view as an Arrow file (`<name>_<view>.arrow`) or stream (`.arrows`): the rows of all ranks.

Columns are those of SQL, `rank` included; times stay as recorded. Texts are plain strings: a file cannot replace a
dictionary between ranks.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pyarrow as pa

from rocpd.convert.cells import plain
from rocpd.convert.deliver.job import jobs
from rocpd.convert.deliver.parts import Part, run, workplace
from rocpd.convert.formats.parquet import tell_lost
from rocpd.convert.formats.tables import check_views, record_batches, schema_of
from rocpd.convert.options import ConvertOptions
from rocpd.errors import UsageError
from rocpd.federate.federation import Federation
from rocpd.output import complete_or_nothing
from rocpd.types import Progress

_DEFAULT = "kernels"


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write one view; see `rocpd.convert.Format.write`."""
    check_views(options.views)
    if len(options.views) > 1:
        raise UsageError("arrow: one view at a time", "give --view once, or -f parquet for several")
    (view,) = options.views or (_DEFAULT,)
    path = options.path(f"_{view}.arrow{'s' if options.stream else ''}")
    schema, lost = _schema(view), Counter[str]()
    with contextlib.ExitStack() as stack:
        temporary = stack.enter_context(complete_or_nothing(path, options.force))
        folder = stack.enter_context(workplace(options.folder))
        with temporary.open("wb", buffering=1 << 20) as file:
            out = (pa.ipc.new_stream if options.stream else pa.ipc.new_file)(file, schema)
            results = stack.enter_context(
                contextlib.closing(run(_part, jobs(session, options, aligned=False), folder, session, progress))
            )
            for part, found in results:
                with pa.OSFile(str(part.path)) as source, pa.ipc.open_stream(source) as batches:
                    for batch in batches:
                        out.write_batch(batch)
                part.path.unlink()
                lost += found
            out.close()
    tell_lost(session, "arrow", lost)
    return (path,)


def _schema(view: str) -> pa.Schema:
    schema = schema_of(view)
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema]
    return pa.schema([*fields, pa.field("rank", pa.int64())], metadata=schema.metadata)


def _part(part: Part) -> Counter[str]:
    lost = Counter[str]()
    job = part.job
    (view,) = job.options.views or (_DEFAULT,)
    schema = _schema(view)
    with job.open() as tables, pa.OSFile(str(part.path), "wb") as file, pa.ipc.new_stream(file, schema) as out:
        for batch in record_batches(tables, view, job.rank, lost):
            rank = pa.repeat(pa.scalar(job.rank.number, pa.int64()), batch.num_rows)
            out.write_batch(pa.RecordBatch.from_arrays([*map(plain, batch.columns), rank], schema=schema))
    return lost
