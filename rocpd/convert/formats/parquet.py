"""The Parquet folder: `<name>_parquet/<view>/rank=<N>/part.parquet`, one file per readable view and rank.

`rank` is in the path only, as Hive-style readers want it: they refuse a column that is in path and file. Asked for as a
column, it is in `<name>_parquet/<view>/rank<N>.parquet`, whose path names no column. Times stay as recorded. Units and
meanings of columns are in their metadata; row groups carry the least and the greatest value of each column, so that
readers can skip by time.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rocpd.base.output import folder_complete_or_nothing
from rocpd.base.types import Progress
from rocpd.convert.deliver.parts import RankPart, split_outputs, write_parts
from rocpd.convert.deliver.placement import placements
from rocpd.convert.formats.tables import VIEWS, check_views, record_batches
from rocpd.convert.lookups import ReferenceTables
from rocpd.convert.options import ConvertOptions
from rocpd.convert.view_reader import damage_line
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write the folder `<name>_parquet`; see `rocpd.convert.Format.write`."""
    check_views(options.views)
    folder = options.path(options.ending_of("_parquet", ".parquet"))
    outputs = split_outputs(placements(session, aligned=False), None)
    damaged = Counter[str]()
    with (
        folder_complete_or_nothing(folder, options.force) as temporary,
        contextlib.closing(write_parts(_write_part, session, outputs, temporary, options, progress)) as parts,
    ):
        for part, damaged_cells in parts:
            damaged += damaged_cells
            for file in sorted(part.path.iterdir()):
                path = _path(temporary / file.stem, part.placement.rank.number, options.with_rank)
                path.parent.mkdir(parents=True, exist_ok=True)
                file.rename(path)
            part.path.rmdir()
    if damaged:
        session.note(damage_line("parquet", damaged))
    return (folder,)


def _path(folder: Path, rank: int, with_rank: bool) -> Path:
    """Return the file of one view and rank in the folder of the view."""
    return folder / f"rank{rank}.parquet" if with_rank else folder / f"rank={rank}" / "part.parquet"


def _write_part(part: RankPart, reader: RankReader) -> Counter[str]:
    damaged, references = Counter[str](), ReferenceTables(reader)
    part.path.mkdir()
    for view in part.options.views or VIEWS:
        batches = record_batches(references, view, damaged, part.options.with_rank)
        _write_view(part.path / f"{view}.parquet", batches)
    return damaged


def _write_view(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a view; no file when it has no rows."""
    with contextlib.ExitStack() as stack:
        out = None
        for batch in batches:
            out = out or stack.enter_context(_open(path, batch.schema))
            out.write_batch(batch)


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, write_statistics=True)
