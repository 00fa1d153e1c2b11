"""Reads whole numbers of a large table from the pages of its file, in a third of the time that statements take.

Reads under SQLite's lock and through its VFS, so that no writer changes a page meanwhile. Never interprets what it does
not know: a log beside the file, a page or a value of another kind and all that looks damaged is an `OtherFormError`;
SQLite then reads the same rows, and finds the words for what is wrong.

Format: https://sqlite.org/fileformat2.html, sections 1.3 (header), 1.6 (pages of trees) and 2.1 (records).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rocpd.base import NULL, InputError, Ints
from rocpd.base.sqlite import apsw
from rocpd.federate.open.opening import Opening, as_input_error, raw_file
from rocpd.schema.quote import quote_name

if TYPE_CHECKING:
    import numpy.typing as npt

_LEAF, _INTERIOR = 13, 5  # types of the pages of a table
_AT_ONCE = 2 << 20  # bytes of pages that are decoded together, which stay in the processor's cache
_MOST_LEVELS = 20  # of a tree, as SQLite
_BEYOND = 64  # bytes behind a page that may be looked at before it is known where a row ends
_LONGEST = 8  # bytes of an id: a ninth has another form, which only negative ids need
# By the type of a value: its bytes, whether it is a whole number or NULL, bits that follow it in eight bytes, and the
# number for the types without bytes.
_WIDTH = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *(kind // 2 - 6 for kind in range(12, 128))])
_IS_WHOLE = np.isin(np.arange(128), (0, 1, 2, 3, 4, 5, 6, 8, 9))
_SHIFT = (64 - 8 * _WIDTH).clip(0, 63)
_CONSTANT = np.where(np.arange(128) == 0, NULL, np.arange(128) == 9)

_Bytes: TypeAlias = "npt.NDArray[np.uint8]"


class OtherFormError(Exception):
    """Only SQLite reads this."""


@contextlib.contextmanager
def pages_of(opening: Opening, connection: apsw.Connection) -> Iterator[Pages]:
    """Open the pages of a file for the length of a block, under the lock of a reader.

    Args:
        opening: the file.
        connection: a connection to it.

    Raises:
        InputError: a writer holds the file.
        OtherFormError: SQLite has to read the file, or what the block asks for.
    """
    if connection.in_transaction:
        raise OtherFormError
    try:
        with raw_file(Path(connection.filename)) as file, _reading(connection):
            yield Pages(file, connection, is_constant=opening.is_constant)
    except apsw.BusyError:
        with as_input_error(opening.path):  # not waited for once more
            raise
    except (InputError, UnicodeDecodeError, apsw.Error) as error:
        raise OtherFormError from error


@contextlib.contextmanager
def _reading(connection: apsw.Connection) -> Iterator[None]:
    """Hold the lock of a reader for the length of a block."""
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT 1 FROM sqlite_schema").fetchone()  # the lock is taken by the first that reads
        yield
    finally:
        connection.execute("COMMIT")


class Pages:
    """The pages of a file, by their numbers from 1.

    Attributes:
        version: number that a writer changes with the file.
    """

    def __init__(self, file: apsw.VFSFile, connection: apsw.Connection, is_constant: bool) -> None:
        """Take the file, a connection to it, and whether it has no writer."""
        header = file.xRead(100, 0)
        if header[19] != 1 and not is_constant:
            raise OtherFormError
        size = int.from_bytes(header[16:18], "big")
        self.version = int.from_bytes(header[24:28], "big")
        self._connection, self._file, self._size = connection, file, 65536 if size == 1 else size
        self._usable = self._size - header[20]
        self._count = file.xFileSize() // self._size

    def columns(self, table: str, names: Sequence[str], least: int = 0) -> list[Ints]:
        """Return columns of whole numbers, `NULL` for NULL, rows in ascending order of ids.

        Args:
            table: name of a table whose column `id` is the id by which SQLite stores rows.
            names: names of the columns.
            least: number of pages of a table that is worth it.
        """
        root, places = self._root(table), self._places(table)
        leaves = np.array(self._leaves(root))
        if len(leaves) < least or not places.keys() >= {*names}:
            raise OtherFormError
        wanted = [name for name in names if name != "id"]
        at, many = [places[name] for name in wanted], _AT_ONCE // self._size
        parts = [self._rows(leaves[first : first + many], at) for first in range(0, len(leaves), many)]
        ids, *columns = map(np.concatenate, zip(*parts, strict=True))
        if (ids[1:] <= ids[:-1]).any() or (len(parts) > 1 and not all(len(part[0]) for part in parts)):
            raise OtherFormError
        values = {"id": ids} | dict(zip(wanted, columns, strict=True))
        return [values[name] for name in names]

    def _root(self, table: str) -> int:
        """Return the first page of a table, as SQLite knows it: `sqlite_schema` has no index by name."""
        program = self._connection.execute(f"EXPLAIN SELECT id FROM {quote_name(table)} NOT INDEXED")
        for _, operation, _, page, *_ in program.fetchall():
            if operation == "OpenRead" and isinstance(page, int):
                return page
        raise OtherFormError

    def _places(self, table: str) -> dict[str, int]:
        """Return the place of each column in a row."""
        columns = self._connection.execute(f"PRAGMA table_xinfo({quote_name(table)})").fetchall()
        if any(is_hidden for *_, is_hidden in columns):  # computed ones need not be stored
            raise OtherFormError
        return {str(name): place for place, name, *_ in columns if isinstance(place, int)}

    def _leaves(self, root: int) -> list[int]:
        """Return the numbers of the pages that hold a table's rows, in order of ids."""
        level = [root]
        for _ in range(_MOST_LEVELS):
            if any(not 1 < page <= self._count for page in level) or len(level) > self._count:
                break
            if self._pages(level[0])[0] == _LEAF:
                return level
            level = [*islice(chain.from_iterable(map(self._children, level)), self._count + 1)]
        raise OtherFormError

    def _pages(self, number: int, count: int = 1) -> bytes:
        return self._file.xRead(count * self._size, (number - 1) * self._size)

    def _children(self, number: int) -> Iterator[int]:
        page = self._pages(number)
        cells = int.from_bytes(page[3:5], "big")
        if page[0] != _INTERIOR or 12 + 2 * cells > self._usable:
            raise OtherFormError
        for at in np.frombuffer(page, ">u2", cells, 12).tolist():
            yield int.from_bytes(page[at : at + 4], "big")
        yield int.from_bytes(page[8:12], "big")

    def _rows(self, leaves: Ints, places: Sequence[int]) -> list[Ints]:
        """Return the ids and the columns in some places of the rows of pages."""
        runs = np.split(leaves, (np.diff(leaves) != 1).nonzero()[0] + 1)
        pages = [self._pages(int(run[0]), len(run)) for run in runs]
        last = max(places, default=0)
        rows = _Rows(b"".join([*pages, bytes(_BEYOND + last)]), self._size, self._usable, last)
        return [rows.ids, *map(rows.numbers, places)]


class _Rows:
    """The rows of some pages, column by column; places in bytes count from the start of the pages.

    Attributes:
        ids: id of each row.
    """

    def __init__(self, pages: bytes, size: int, usable: int, last: int) -> None:
        """Take pages with some bytes after them, the bytes of a page, those in use, and the last place to be read."""
        self._bytes = np.frombuffer(pages, np.uint8)
        self._words = np.ndarray(len(pages) - 7, np.int64, pages, strides=(1,))  # at any byte
        page, cell = self._cells(np.ndarray(len(pages) - 1, ">u2", pages, strides=(1,)), size, usable)
        payload, at = self._varints(cell)
        self.ids, record = self._varints(at)
        words = [self._words[record + 8 * nth] for nth in range(1 + (last + 1) // 8)]
        header = np.stack(words, axis=1).view(np.uint8)  # its length, then the types of the columns
        self._kinds = header[:, 1 : last + 2]
        if (header[:, 0] < last + 2).any() or (header[:, : last + 2] >= 128).any():
            raise OtherFormError
        self._first = record + header[:, 0]
        # A column of one type has one width, so most of these are single numbers.
        self._before: list[Any] = [*accumulate((_WIDTH[_only(kinds)] for kinds in self._kinds.T), initial=0)]
        end = self._first + self._before[-1]
        # The rest of a long row lies on pages of its own; the least that is kept here is all that counts then.
        kept = np.where(payload <= usable - 35, payload, (usable - 12) * 32 // 255 - 23)
        if (end > record + kept).any() or (record + kept > page + usable).any():
            raise OtherFormError

    def _cells(self, pairs: Ints, size: int, usable: int) -> tuple[Ints, Ints]:
        """Return the start of the page of each row, and of the row; `pairs`: the two bytes at any byte as a number."""
        starts = np.arange(len(pairs) // size) * size
        cells = pairs[starts + 3].astype(np.int64)
        is_empty = len(cells) > 1 and not cells.all()  # which only the page of a table without rows is
        if is_empty or (self._bytes[starts] != _LEAF).any() or (8 + 2 * cells > usable).any():
            raise OtherFormError
        page = starts.repeat(cells)
        pointers = (starts + 8 - 2 * (cells.cumsum() - cells)).repeat(cells) + 2 * np.arange(len(page))
        within = pairs[pointers]
        if (within >= usable).any():
            raise OtherFormError
        return page, page + within

    def _varints(self, at: Ints, high: Ints | int = 0, bytes_read: int = 0) -> tuple[Ints, Ints]:
        """Return the number that starts at each byte, below the bits that are known already, and the byte after it."""
        if bytes_read == _LONGEST:
            raise OtherFormError
        byte = self._bytes[at]
        number, after = np.bitwise_or(byte & 127, high, dtype=np.int64), at + 1
        (longer,) = (byte >= 128).nonzero()
        if len(longer) == len(at) > 0:
            return self._varints(after, number << 7, bytes_read + 1)
        if len(longer):
            number[longer], after[longer] = self._varints(after[longer], number[longer] << 7, bytes_read + 1)
        return number, after

    def numbers(self, place: int) -> Ints:
        """Return the values of a column of whole numbers."""
        kind = _only(self._kinds[:, place])
        if not _IS_WHOLE[kind].all():
            raise OtherFormError
        width = _WIDTH[kind]
        numbers: Ints = self._words[self._first + self._before[place]].byteswap(inplace=sys.byteorder == "little")
        numbers >>= _SHIFT[kind]
        if not width.all():
            numbers = np.where(width == 0, _CONSTANT[kind], numbers)
        return numbers


def _only(kinds: _Bytes) -> _Bytes | int:
    """Return the type that all values of a column have, else the types."""
    return kinds[0] if len(kinds) and (kinds == kinds[0]).all() else kinds
