"""Decides how one file is opened without leaving a trace: by which SQLite URI, or as a recovered copy. Finds damage.

Never writes to an input and never creates anything beside it. Looks at files through SQLite's own VFS,
because closing a plain file descriptor would drop the locks that this process holds on the same file. Reads whole files
(measured: 0.9 GB/s) only when damaged files are to be left out, or after an error: in a statement on many files, the
error does not name the damaged one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rocpd.base import ForeignError, InputError, OutputError, by_key, frozen, leftovers
from rocpd.base.identity import JOURNALS, status_of
from rocpd.base.sqlite import apsw
from rocpd.federate.limits import Limits
from rocpd.federate.open.guard import let_signals_in

_NAMED = 3  # files named in a line


class FileNote(NamedTuple):
    """A note on a file for the user; `left_out`: the file is not read, for that reason."""

    path: Path
    what: str
    left_out: bool = False

    @property
    def text(self) -> str:
        """The note as a line of its own."""
        return f"{_front(self)}{self.path}: {self.what}"

    @property
    def of_any(self) -> str:
        """The note without the name of the file, which the names of files beside it contain."""
        return self.what.replace(self.path.name, "…")


def lines_of(notes: Iterable[FileNote], files: int) -> Iterator[str]:
    """Yield one line per note, or one for all files with the same note.

    Args:
        notes: the notes, in order.
        files: number of files.

    >>> list(lines_of([FileNote(Path(f"rank{n}.db"), "empty", True) for n in range(5)], 8))
    ['left out: 5 of 8 files: empty: rank0.db, rank1.db, rank2.db …']
    """
    for first, *others in by_key(((note.left_out, note.of_any), note) for note in notes).values():
        if not others:
            yield first.text
            continue
        names = ", ".join(str(note.path) for note in (first, *others)[:_NAMED])
        more = " …" if len(others) >= _NAMED else ""
        yield f"{_front(first)}{len(others) + 1} of {files} files: {first.of_any}: {names}{more}"


def _front(note: FileNote) -> str:
    return "left out: " if note.left_out else ""


_NO_TRACE = "nor a trace of another profiler that rocpd reads; --skip-bad leaves it out"
COPY_AGAIN = "copy it again from where it was written; --skip-bad leaves it out"
"""The hint for a damaged file."""
_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_CONSTANT = "immutable=1"  # https://sqlite.org/uri.html: no locks
_CACHED_STATEMENTS = 2  # per connection: they hold memory, and few statements run twice
_MAGIC = b"SQLite format 3\0"
_UTF16 = (2, 3)  # https://sqlite.org/fileformat2.html#enc
_SHM_IN_USE_BYTE = 128  # every connection with the -shm open holds a shared lock here (UNIX_SHM_DMS in os_unix.c)
_FLOCK = {"linux": ("hhqqi", 0), "darwin": ("qqihh", 3)}  # struct flock, and the place of its type: fcntl(2)
_COPY_BLOCK = 1 << 20
_RECENT_S = 60  # a file that was written to within this time may still have a writer


@frozen
class Opening:
    """One file and the way to open it.

    Args:
        path: the file as the user knows it.
        uri: the URI that SQLite opens.
        note: note for the user, or None.
        copy: folder of a recovered copy, to be deleted at the end, or None.
        is_live: a writer may be at work and has to wait for every reader: read transactions are kept short.
        busy_ms: how long a reader waits for a writer's lock [ms].
    """

    path: Path
    uri: str
    note: FileNote | None = None
    copy: Path | None = None
    is_live: bool = False
    busy_ms: int = Limits.busy_ms

    def connect(self) -> apsw.Connection:
        """Return a new connection to this file; errors name the file."""
        if self.copy and not self.copy.exists():
            raise InputError(
                f"{self.path}: recovered into a copy that is not on {os.uname().nodename}",
                "set TMPDIR to a folder that all nodes share",
            )
        with as_input_error(self.path):
            connection = apsw.Connection(self.uri, _FLAGS, statementcachesize=_CACHED_STATEMENTS)
            connection.set_busy_timeout(self.busy_ms)
            return connection

    @property
    def is_constant(self) -> bool:
        """Whether SQLite takes it that nobody writes to the file."""
        return self.uri.endswith(f"?{_CONSTANT}")

    @property
    def size(self) -> int:
        """Size of the file [bytes], 0 when it is gone."""
        return _size(self.path)

    def discard(self) -> None:
        """Delete the recovered copy, if there is one and this process made it."""
        if self.copy:
            leftovers.remove(self.copy)


def uri_of(path: Path, options: str) -> str:
    """Return the SQLite URI of a file; any byte that a file name can hold is escaped."""
    return f"file:{quote(os.fsencode(os.path.realpath(path)))}?{options}"


def opening_of(path: Path, busy_ms: int = Limits.busy_ms) -> Opening:
    """Decide how to open a file, by its header and by the files beside it.

    Args:
        path: the file.
        busy_ms: how long a reader waits for a writer's lock [ms].

    Header byte 19, the version for readers, is 1 for a rollback journal and 2 for WAL
    (https://sqlite.org/fileformat2.html#file_format_version_numbers). SQLite goes by it alone.

    Raises:
        InputError: missing, unreadable or empty; a `ForeignError`: a folder, or not a SQLite database.
    """
    header = _header(path)
    real = _real(path)
    journal, wal, shm = (Path(real + ending) for ending in JOURNALS)
    if _is_hot_journal(journal):
        return _read_only(path, busy_ms) if _has_writer(path) else _recovered_copy(path, journal)
    if header[19] == 2:
        if not _size(wal):
            _check_last_page(path, header)
            return Opening(path, uri_of(path, _CONSTANT))
        if _shm_in_use(shm):
            return Opening(path, uri_of(path, "mode=ro"), busy_ms=busy_ms)
        return _recovered_copy(path, wal)
    if _size(wal):
        return _recovered_copy(path, wal)
    _check_last_page(path, header)
    return _read_only(path, busy_ms)


def has_open_journal(path: Path) -> bool:
    """Whether a journal beside a file holds data: SQLite then reads more than the file."""
    real = _real(path)
    return any(_size(Path(real + ending)) for ending in JOURNALS[:2])


def read_ranges(path: Path, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return parts of a file as they are on disk.

    Args:
        path: the file.
        ranges: offset and length of each part [bytes]; a part beyond the end of the file is cut short.

    Raises:
        InputError: it cannot be read.
    """
    with as_input_error(path), raw_file(path) as file:
        size = _size(path)
        return [file.xRead(min(length, max(0, size - start)), start) for start, length in ranges]


@contextlib.contextmanager
def as_input_error(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the operating system about a file into an `InputError` that names it."""
    try:
        yield
    except apsw.BusyError as error:
        raise InputError(
            f"{path}: locked by a writer", "wait until the profiler has finished, then try again"
        ) from error
    except apsw.FullError as error:  # reading fills no disk: a temporary file did
        raise OutputError(f"temporary files: {error}", "set TMPDIR to a folder with more space") from error
    except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
        raise InputError(f"{path}: damaged: {error}", COPY_AGAIN) from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.AuthError) as error:
        if _lacks_descriptors():
            raise InputError(f"{path}: too many open files", "raise `ulimit -n`, or merge the files first") from error
        raise InputError(f"{path}: cannot be opened: {error}", "check its permissions") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _lacks_descriptors() -> bool:
    """Whether this process cannot open any more files."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False


def _real(path: Path) -> str:
    """Follow symbolic links, as SQLite does: journals are beside the file itself."""
    return os.path.realpath(path) if path.is_symlink() else os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 (quick)


def _header(path: Path) -> bytes:
    with as_input_error(path):
        if not path.exists():
            raise InputError(f"{path}: no such file")
        if not path.is_file():
            kind = ForeignError if path.is_dir() else InputError
            raise kind(f"{path}: not a regular file")
        if not os.access(path, os.R_OK):
            raise InputError(f"{path}: no permission to read it", "check with ls -l")
        size = path.stat().st_size
        if size == 0:
            raise InputError(f"{path}: empty", "the profiler did not finish writing it; --skip-bad leaves it out")
        if size < 512:
            raise ForeignError(f"{path}: not a SQLite database", _NO_TRACE)
        with raw_file(path) as file:
            header = file.xRead(100, 0)
    if not header.startswith(_MAGIC):
        raise ForeignError(f"{path}: not a SQLite database", _NO_TRACE)
    if int.from_bytes(header[56:60], "big") in _UTF16:  # SQLite attaches only files of one encoding
        raise InputError(f"{path}: its text is UTF-16, no profiler's", f"sqlite3 {path.name} .dump | sqlite3 new.db")
    return header


@contextlib.contextmanager
def raw_file(path: Path) -> Iterator[apsw.VFSFile]:
    """Open a file as SQLite does, for the length of a block; closing it keeps the locks of this process."""
    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0]
    try:
        file = apsw.VFSFile("", _real(path), flags)
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise InputError(f"{shown}: the name is not UTF-8, SQLite cannot open it", "give it another name") from error
    try:
        yield file
    finally:
        file.xClose()


def _check_last_page(path: Path, header: bytes) -> None:
    """Refuse a file that was cut within its last page: SQLite would silently read the missing part as zeros."""
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    if page and _size(path) % page:
        raise InputError(f"{path}: damaged: truncated within a page", COPY_AGAIN)


def _size(path: Path) -> int:
    status = status_of(path)
    return status.st_size if status else 0


def _is_hot_journal(journal: Path) -> bool:
    """Whether SQLite would roll the journal back: not empty and not zeroed (journal modes truncate and persist)."""
    if not _size(journal):
        return False
    with as_input_error(journal), journal.open("rb") as file:
        return file.read(1) != b"\0"


def _has_writer(path: Path) -> bool:
    with as_input_error(path), raw_file(path) as file:
        return file.xCheckReservedLock()


def _shm_in_use(shm: Path) -> bool:
    """Whether a live process holds the -shm: a killed process has lost its locks."""
    if _has_open(shm):
        return True  # closing a second descriptor would drop this process's own locks
    try:
        descriptor = os.open(shm, os.O_RDONLY)
    except OSError:
        return False
    try:
        form, place = _FLOCK.get(sys.platform, _FLOCK["linux"])
        kind, range_ = (fcntl.F_WRLCK, os.SEEK_SET), (_SHM_IN_USE_BYTE, 1, 0)
        request = struct.pack(form, *((*kind, *range_) if place == 0 else (*range_, *kind)))
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, request)
    finally:
        os.close(descriptor)
    return int(struct.unpack(form, answer)[place]) != fcntl.F_UNLCK


def _has_open(path: Path) -> bool:
    """Whether this process has a file open."""
    with contextlib.suppress(OSError):
        wanted = path.stat()
        for name in os.listdir("/dev/fd"):  # noqa: PTH208 (they are no paths)
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(int(name)), wanted):
                    return True
    return False


def first_open(paths: Iterable[Path]) -> Path | None:
    """Return a file that a process of this machine has open, as far as this user can see; None without /proc."""
    by_inode: dict[tuple[int, int], Path] = {}
    for path in paths:
        if status := status_of(path):
            by_inode[status.st_dev, status.st_ino] = path
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        status = status_of(link)
        if status and (status.st_dev, status.st_ino) in by_inode:
            return by_inode[status.st_dev, status.st_ino]
    return None


def _read_only(path: Path, busy_ms: int) -> Opening:
    """Return an opening with locks; where locks or the folder do not work, an immutable one with a note."""
    recent = time.time() - path.stat().st_mtime < _RECENT_S
    opening = Opening(path, uri_of(path, "mode=ro"), is_live=recent or _has_writer(path), busy_ms=busy_ms)
    try:
        _try(opening.uri, busy_ms)
    except (apsw.CantOpenError, apsw.IOError, apsw.PermissionsError) as error:
        if any(Path(_real(path) + ending).exists() for ending in ("-journal", "-wal")):
            raise InputError(f"{path}: cannot be locked, and a journal lies beside it: {error}") from error
        immutable = Opening(path, uri_of(path, _CONSTANT), FileNote(path, f"opened without locks ({error})"))
        with as_input_error(path):
            _try(immutable.uri, busy_ms)
        return immutable
    except apsw.BusyError:
        with as_input_error(path):  # here, not when the file is read: the user has waited once
            raise
    except apsw.Error:
        return opening  # damage is reported when the file is read, in the same words for every way of opening
    return opening


def _try(uri: str, busy_ms: int) -> None:
    with contextlib.closing(apsw.Connection(uri, flags=_FLAGS)) as connection:
        connection.set_busy_timeout(busy_ms)
        connection.pragma("schema_version")  # takes the lock, but does not read the schema, which takes a millisecond


def _recovered_copy(path: Path, journal: Path) -> Opening:
    """Copy the file and the journal of a killed writer, and let SQLite recover the copy."""
    import shutil
    import tempfile

    with as_input_error(path):
        folder = leftovers.make_folder(Path(tempfile.gettempdir()))
    try:
        copy = folder / "copy.db"
        with as_input_error(path):
            size = path.stat().st_size
            with raw_file(path) as source, copy.open("wb") as target:
                for offset in range(0, size, _COPY_BLOCK):
                    target.write(source.xRead(min(_COPY_BLOCK, size - offset), offset))
            shutil.copyfile(journal, copy.with_name(copy.name + os.fspath(journal)[len(_real(path)) :]))
            with contextlib.closing(apsw.Connection(os.fspath(copy))) as connection:
                connection.pragma("journal_mode", "delete")
                connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    note = FileNote(path, f"its writer was killed ({journal.name} is left); reading a recovered copy")
    return Opening(path, uri_of(copy, _CONSTANT), note, folder)


UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.IOError, apsw.BusyError, apsw.CantOpenError, apsw.ProtocolError)
"""Errors of SQLite that a file causes, not the statement."""


def check_file(opening: Opening) -> None:
    """Read a whole file.

    Raises:
        InputError: a page is damaged or cannot be read. Rows that break a constraint do not count as damage.
    """
    with contextlib.closing(opening.connect()) as connection:
        let_signals_in(connection)
        with as_input_error(opening.path):
            verdict = str(connection.execute("PRAGMA quick_check(1)").get)
            if verdict.startswith("***"):  # `*** in database main ***`, then the damage
                raise apsw.CorruptError(verdict.splitlines()[-1])


def raise_for_damaged_file(openings: Iterable[Opening], error: BaseException | None) -> None:
    """Raise an error that names the unreadable file if `error` is about one; else do nothing.

    Raises:
        InputError: naming the file.
    """
    if isinstance(error, UNREADABLE):
        files = list(dict.fromkeys(openings))
        for opening in files:
            check_file(opening)
        if files and isinstance(error, apsw.CorruptError):  # damage that the check does not look for
            where = f"{files[0].path}" if len(files) == 1 else f"one of {len(files)} files, {files[0].path} …"
            raise InputError(f"{where}: damaged: {error}", COPY_AGAIN)
