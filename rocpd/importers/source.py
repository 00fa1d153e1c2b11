"""What importers read: a file or folder, decompressed where it is compressed. The input itself stays as it is."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rocpd.base import leftovers
from rocpd.base.errors import InputError
from rocpd.base.identity import digest_of, digest_of_stream
from rocpd.base.output import as_output_error
from rocpd.base.sqlite import apsw
from rocpd.base.types import Progress
from rocpd.federate.open.opening import Opening, as_input_error, opening_of
from rocpd.importers.head import GZIP_MAGIC

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_BLOCK = 1 << 20
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)


class TraceSource:
    """One input; use it in a `with` block, at whose end what was decompressed is removed.

    Args:
        path: file or folder.
        progress: called with (bytes read of the file, its size); `step` is for what is not read as a stream.
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
        """Hash of the content, decompressed: the same for every copy."""
        if self.is_compressed:  # of a damaged one that of the file itself: its start may be of use
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
            InputError: it cannot be read or decompressed; errors in the block are turned too.
        """
        with self._reading(), self.path.open("rb", buffering=0) as raw:
            watched = io.BufferedReader(_Watched(raw, self.path.stat().st_size, self.step), _BLOCK)
            yield gzip.GzipFile(fileobj=watched) if self.is_compressed else watched  # type: ignore[misc]

    @functools.cached_property
    def database(self) -> apsw.Connection:
        """A read-only connection to the SQLite file that it is; closed at the end.

        Raises:
            InputError: it cannot be opened or decompressed.
            OutputError: there is no room to decompress it.
        """
        connection = self.opening.connect()
        self._undo.callback(connection.close)
        return connection

    @functools.cached_property
    def opening(self) -> Opening:
        """How the SQLite file that it is can be opened, decompressed; errors as for `database`."""
        opening = self._opening()
        self._undo.callback(opening.discard)
        return opening

    def step(self, done: int, total: int) -> None:
        """Report progress: of `total`, `done` is read."""
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
        with as_named(self.path):
            return opening_of(plain)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with as_input_error(self.path):
            try:
                yield
            except _DAMAGE as error:
                raise InputError(
                    f"{self.path}: damaged: {error}", "copy it again from where it was written, or --skip-bad"
                ) from error


@contextlib.contextmanager
def as_named(path: Path) -> Iterator[None]:
    """Let errors about a decompressed file name the input."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: decompressed: {error.message.partition(': ')[2]}", error.hint) from error


class _Watched(io.RawIOBase):
    """A file that reports how much of it was read."""

    def __init__(self, raw: io.FileIO, size: int, report: Progress) -> None:
        self._raw, self._size, self._report, self._done = raw, size, report, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int | None:
        count = self._raw.readinto(buffer)
        self._done += count or 0
        self._report(self._done, self._size)
        return count
