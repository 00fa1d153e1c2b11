"""Input and output of importers: an input, decompressed if necessary, and the rocpd files that it becomes.

The input itself is never changed. The output depends only on its content, its name and the version of the importer: an
input that is imported again gives the same bytes. Data without a place in the files is counted.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import itertools
import re
import tempfile
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from rocpd.base import InputError, Progress, Row, leftovers
from rocpd.base.identity import digest_of, digest_of_stream
from rocpd.base.output import as_output_error
from rocpd.base.sqlite import apsw
from rocpd.federate.open.opening import COPY_AGAIN, Opening, as_input_error, opening_of
from rocpd.importers.signs import GZIP_MAGIC
from rocpd.schema.trace.infos import NodeInfo, ProcessInfo
from rocpd.schema.trace.writer import TraceWriter
from rocpd.schema.write import create

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer


_BLOCK = 1 << 20
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class TraceSource:
    """One input, for use in a `with` block, at whose end decompressed files are removed.

    Args:
        path: file or folder.
        progress: called with (bytes read of the file, its size); `step` reports for inputs not read as a stream.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> TraceSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @functools.cached_property
    def digest(self) -> str:
        """Hash of the decompressed content: the same for every copy."""
        if self.is_compressed:  # a damaged one has the hash of the file itself: its start may be of use
            with contextlib.suppress(*_DAMAGE), gzip.open(self.path) as content:
                return digest_of_stream(content)  # type: ignore[arg-type]
        with self._reading():
            return digest_of(self.path)

    @functools.cached_property
    def is_compressed(self) -> bool:
        """Whether it is a file compressed by gzip."""
        if self.path.is_dir():
            return False
        with self._reading(), self.path.open("rb") as file:
            return file.read(2) == GZIP_MAGIC

    @contextlib.contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Yield the content, decompressed; reading it reports progress.

        Raises:
            InputError: it cannot be read or decompressed; errors in the block are converted, too.
        """
        with self._reading(), self.path.open("rb", buffering=0) as raw:
            watched = io.BufferedReader(_Watched(raw, self.path.stat().st_size, self.step), _BLOCK)
            yield gzip.GzipFile(fileobj=watched) if self.is_compressed else watched  # type: ignore[misc]

    @functools.cached_property
    def database(self) -> apsw.Connection:
        """A read-only connection to this SQLite file; closed at the end.

        Raises:
            InputError: it cannot be opened or decompressed.
            OutputError: there is no room to decompress it.
        """
        connection = self.opening.connect()
        self._undo.callback(connection.close)
        return connection

    @functools.cached_property
    def opening(self) -> Opening:
        """The way to open this SQLite file, decompressed; errors as for `database`."""
        opening = self._opening()
        self._undo.callback(opening.discard)
        return opening

    def step(self, done: int, total: int) -> None:
        """Report progress: `done` of `total` is read."""
        if self._progress:
            self._progress(done, total)

    def _opening(self) -> Opening:
        if not self.is_compressed:
            return opening_of(self.path)
        folder = leftovers.make_folder(Path(tempfile.gettempdir()))
        self._undo.callback(leftovers.remove, folder)
        plain = folder / "input.db"
        with gzip.open(self.path) as content, as_output_error(plain), plain.open("wb") as file:
            while True:
                with self._reading():
                    block = content.read(_BLOCK)
                if not block:
                    break
                file.write(block)
        try:
            return opening_of(plain)
        except InputError as error:  # which names the decompressed file
            message = f"{self.path}: decompressed: {error.message.partition(': ')[2]}"
            raise InputError(message, error.hint) from error

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with as_input_error(self.path):
            try:
                yield
            except _DAMAGE as error:
                raise InputError(f"{self.path}: damaged: {error}", COPY_AGAIN) from error


class _Watched(io.RawIOBase):
    """A file that reports how much of it has been read."""

    def __init__(self, raw: io.FileIO, size: int, report: Progress) -> None:
        self._raw, self._size, self._report, self._done = raw, size, report, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        count = self._raw.readinto(buffer)
        self._done += count or 0
        self._report(self._done, self._size)
        return count


_NAMESPACE = uuid.UUID("5f1d3c1e-8f0a-5b56-9d0c-2a1f6f6d7a10")
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")


class SourceTables:
    """The tables of a SQLite file that is imported.

    Args:
        connection: reads it.
    """

    BATCH = 1 << 14
    """Rows read at a time; ids of events depend on it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @functools.cached_property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Table -> its columns."""
        names = [str(name) for (name,) in self.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
        of_table = "SELECT name FROM pragma_table_info(?)"
        return {name: [str(column) for (column,) in self.query(of_table, (name,))] for name in names}

    def query(self, sql: str, values: Sequence[Any] = ()) -> apsw.Cursor:
        """Run a SELECT."""
        return self._connection.execute(sql, tuple(values))

    def in_batches(self, sql: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """Yield the rows of a SELECT, some thousand at a time."""
        rows = self.query(sql, values)
        while batch := list(itertools.islice(rows, self.BATCH)):
            yield batch


class TraceTarget:
    """The files that one input becomes.

    Args:
        folder: destination folder; it exists.
        name: prefix of their names.
        source: the input.
        importer: name and version of its importer.

    Attributes:
        files: the complete files.
        losses: kind of data of the input without a place in them -> its number; one line each, in the plural.
    """

    def __init__(self, folder: Path, name: str, source: TraceSource, importer: tuple[str, int]) -> None:
        self.files: list[Path] = []
        self.losses: Counter[str] = Counter()
        self._folder, self._name, self._named = folder, name, set[str]()
        self._source, self._importer = source, importer

    def lose(self, what: str, count: int = 1) -> None:
        """Count data without a place in a rocpd file, such as `operations without a call`."""
        if count:
            self.losses[what] += count

    @contextlib.contextmanager
    def rank(self, key: int | str, node: NodeInfo, process: ProcessInfo) -> Iterator[TraceWriter]:
        """Yield the writer of one process; its file is complete when the block ends well.

        Args:
            key: identifies it among the processes of the input, such as its pid; name and GUID contain it.
            node: its machine.
            process: the process.

        Raises:
            OutputError: the file cannot be written.
        """
        importer, version = self._importer
        guid = rank_guid(importer, self._source.digest, key)
        name = f"{self._name}-{_NOT_IN_NAMES.sub('_', str(key))}"
        while name in self._named:  # of keys that differ only in characters that names lack
            name += "_"
        self._named.add(name)
        path = self._folder / f"{name}.db"
        with create(path, guid) as file:
            trace = TraceWriter(file, node, process)
            trace.note("import::importer", importer)
            trace.note("import::importer_version", str(version))
            trace.note("import::source", self._source.path.name)
            trace.note("import::source_digest", self._source.digest)
            yield trace
        self.files.append(path)


def rank_guid(importer: str, digest: str, key: int | str) -> str:
    """Return the GUID of a process of an input, from its importer's name, the digest of its content, and its key."""
    return str(uuid.uuid5(_NAMESPACE, f"{importer}:{digest}:{key}"))


def name_of(path: Path) -> str:
    """Return the prefix of the names of the files of an input.

    >>> name_of(Path("run/trace.rpd.gz")), name_of(Path("rank0.pt.trace.json"))
    ('trace', 'rank0.pt.trace')
    """
    stem = re.sub(r"\.(rpd|json|sqlite|sqlite3|db|csv)$", "", path.name.removesuffix(".gz"))
    return _NOT_IN_NAMES.sub("_", stem) or "trace"
