"""What is seen of an input before it is read: its first bytes, its SQLite tables, or the names in its folder."""

from __future__ import annotations

import functools
import gzip
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from rocpd.base.errors import RocpdError
from rocpd.base.frozen import frozen
from rocpd.base.sqlite import apsw
from rocpd.federate.open.opening import opening_of

GZIP_MAGIC = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_MOST_BYTES = 1 << 20
_MOST_FILES = 10_000
_CREATE_TABLE = re.compile(rb'CREATE TABLE (?:IF NOT EXISTS )?["`\[]?(\w+)')


@frozen
class InputHead:
    """What an importer sees of an input before it reads it.

    Args:
        path: file or folder.
        start: the first MiB of a file, decompressed; empty for a folder.
        names: of the files in a folder, as `name`, `folder/name` or `pass_1/folder/name`; empty for a file.
    """

    path: Path
    start: bytes = b""
    names: tuple[str, ...] = ()

    @functools.cached_property
    def tables(self) -> frozenset[str]:
        """Names of the tables of a SQLite file, empty for any other; of a compressed one those that it starts with."""
        if not self.start.startswith(_SQLITE):
            return frozenset()
        try:
            connection = opening_of(self.path).connect()
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except (RocpdError, apsw.Error):
            return frozenset(name.decode() for name in _CREATE_TABLE.findall(self.start))
        connection.close()
        return frozenset(str(name) for (name,) in rows)


def head_of(path: Path) -> InputHead:
    """Return what is seen of an input; a file that cannot be decompressed has no start.

    Raises:
        OSError: it cannot be read.
    """
    if path.is_dir():
        return InputHead(path, names=tuple(file.relative_to(path).as_posix() for file in files_in(path)[:_MOST_FILES]))
    with path.open("rb") as file:
        start = file.read(_MOST_BYTES)
    if start.startswith(GZIP_MAGIC):
        try:
            with gzip.open(path) as content:
                start = content.read(_MOST_BYTES)
        except (OSError, EOFError, zlib.error):
            start = _readable_start(start)
    return InputHead(path, start)


def _readable_start(packed: bytes) -> bytes:
    """Return what can be decompressed of the start of a damaged file."""
    try:
        return zlib.decompressobj(wbits=31).decompress(packed, _MOST_BYTES)
    except zlib.error:
        return b""


def files_in(folder: Path) -> Sequence[Path]:
    """Return the files of a folder and of the folders in it, in order; of rocprofv3's passes one level more."""
    paths = [path for pattern in ("*", "*/*", "pass_*/*/*") for path in sorted(folder.glob(pattern))]
    return [path for path in paths if path.is_file()]
