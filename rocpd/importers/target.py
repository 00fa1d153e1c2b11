"""Where importers write: one rocpd file per process, and the count of what has no place in it.

What it writes depends on nothing but the content of the input, its name and the version of the importer: an input that
is imported again gives the same bytes.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rocpd.importers.source import TraceSource
from rocpd.schema.trace.infos import NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TraceWriter
from rocpd.schema.write import create

_NAMESPACE = uuid.UUID("5f1d3c1e-8f0a-5b56-9d0c-2a1f6f6d7a10")
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")


class TraceTarget:
    """The files that one input becomes.

    Args:
        folder: where they go; it exists.
        name: what their names start with.
        source: the input.
        importer: name of the importer that reads it, and its version.

    Attributes:
        files: those that are complete.
        losses: what of the input has no place in them -> how often; one line each, in the plural.
    """

    def __init__(self, folder: Path, name: str, source: TraceSource, importer: tuple[str, int]) -> None:
        self.files: list[Path] = []
        self.losses: Counter[str] = Counter()
        self._folder, self._name = folder, name
        self._source, self._importer = source, importer

    def lose(self, what: str, count: int = 1) -> None:
        """Count what has no place in a rocpd file, such as `operations without a call`."""
        if count:
            self.losses[what] += count

    @contextlib.contextmanager
    def rank(self, key: int | str, node: NodeInfo, process: ProcessInfo) -> Iterator[TraceWriter]:
        """Yield the writer of one process; its file is complete when the block ends well.

        Args:
            key: what tells it from other processes of the input, such as its pid; name and GUID are made of it.
            node: its machine.
            process: the process.

        Raises:
            OutputError: the file cannot be written.
        """
        importer, version = self._importer
        guid = rank_guid(importer, self._source.digest, key)
        path = self._folder / f"{self._name}-{_NOT_IN_NAMES.sub('_', str(key))}.db"
        with create(path, guid) as file:
            trace = TraceWriter(file, node, process)
            facts = {
                "importer": importer,
                "importer_version": str(version),
                "source": self._source.path.name,
                "source_digest": self._source.digest,
            }
            for tag, value in facts.items():
                trace.note(f"import::{tag}", value)
            yield trace
        self.files.append(path)


def rank_guid(importer: str, digest: str, key: int | str) -> str:
    """Return the GUID of a process of an input, by the name of its importer, the digest of its content, and its key."""
    return str(uuid.uuid5(_NAMESPACE, f"{importer}:{digest}:{key}"))


def name_of(path: Path) -> str:
    """Return what the names of the files of an input start with.

    >>> name_of(Path("run/trace.rpd.gz")), name_of(Path("rank0.pt.trace.json"))
    ('trace', 'rank0.pt.trace')
    """
    stem = re.sub(r"\.(rpd|json|sqlite|sqlite3|db|csv)$", "", path.name.removesuffix(".gz"))
    return _NOT_IN_NAMES.sub("_", stem) or "trace"
