"""Owns the Parquet folder: `<name>_parquet/<view>/rank=<N>/part.parquet`, one file per readable view and rank.

`rank` is in the path only, as Hive-style readers want it. Times stay as recorded. Units and meanings of columns are in
their metadata; row groups carry the least and the greatest value of each column, so that a reader skips by time.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rocpd.convert.deliver.job import RankJob, jobs
from rocpd.convert.deliver.parts import Part, run
from rocpd.convert.formats.tables import VIEWS, check_views, record_batches, schema_of
from rocpd.convert.options import ConvertOptions
from rocpd.federate.federation import Federation
from rocpd.output import folder_complete_or_nothing
from rocpd.types import Progress


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write the folder `<name>_parquet`; see `rocpd.convert.Format.write`."""
    check_views(options.views)
    folder = options.path("_parquet")
    lost = Counter[str]()
    with (
        folder_complete_or_nothing(folder, options.force) as temporary,
        contextlib.closing(run(_part, jobs(session, options, aligned=False), temporary, session, progress)) as results,
    ):
        for part, found in results:
            lost += found
            for view in sorted(part.path.iterdir()):
                place = temporary / view.name
                place.mkdir(exist_ok=True)
                view.rename(place / f"rank={part.job.rank.number}")
            part.path.rmdir()
    tell_lost(session, "parquet", lost)
    return (folder,)


def tell_lost(session: Federation, form: str, lost: Counter[str]) -> None:
    """Tell of cells that a typed column cannot hold."""
    for column, count in sorted(lost.items()):
        session.note(f"{form}: {count} values of {column} are no numbers: written as NULL")


def _part(part: Part) -> Counter[str]:
    lost = Counter[str]()
    part.path.mkdir()
    with part.job.open() as tables:
        for view in part.job.options.views or VIEWS:
            _write_view(part.path / view, view, part.job, record_batches(tables, view, part.job.rank, lost))
    return lost


def _write_view(folder: Path, view: str, job: RankJob, batches: Iterator[pa.RecordBatch]) -> None:
    with contextlib.ExitStack() as stack:
        out = None
        for batch in batches:
            if out is None:
                folder.mkdir()
                out = stack.enter_context(_open(folder / "part.parquet", schema_of(view)))
            out.write_batch(batch)


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, write_statistics=True)
