"""Tables as Parquet files: columns keep their types and metadata, such as units."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet


def write_parquet(batches: pyarrow.RecordBatchReader, path: Path) -> None:
    """Write record batches to a file; at most one of them is in memory."""
    with pyarrow.parquet.ParquetWriter(path, batches.schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
