"""Follows the files of a running job: finds them, notices their changes, and keeps copies of their newest rows.

Readers of the job read the copies: small, complete in themselves, and without locks. `federate.open.opening` decides
each time how files are opened, so nothing is written or created beside them.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rocpd.base import ForeignError, InputError, RocpdError, leftovers
from rocpd.base.identity import JOURNALS
from rocpd.base.sqlite import apsw
from rocpd.federate.open.opening import Opening, opening_of
from rocpd.federate.open.source import find_sources
from rocpd.live.copy import FreshCopy
from rocpd.schema.live_state import ENDED, flags_of, state_file

_NEWEST, _FEWEST, _MOST = 400_000, 4_000, 50_000  # first rows of a table: of all files, of a file
_LEAST = 1_000  # rows of a table to go on with
_BUSY_MS = 200  # for a writer's lock: comparisons need rows of each rank
_SETTLED_S = 2.0  # a journal beside a file that was written to since then may belong to a live writer


class FileSignature(NamedTuple):
    """Values that change when rows come: the file's identity, and size and time of it and of its journals."""

    inode: tuple[int, int]
    size: int
    parts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, path: Path) -> FileSignature | None:
        """Return the signature of a file; None if it does not exist."""
        real = os.path.realpath(path)
        try:
            first = os.stat(real)  # noqa: PTH116 (quick)
        except OSError:
            return None
        parts = [(first.st_size, first.st_mtime_ns)]
        for ending in JOURNALS[:2]:
            with suppress(OSError):
                status = os.stat(real + ending)  # noqa: PTH116 (quick)
                parts.append((status.st_size, status.st_mtime_ns))
        return cls((first.st_dev, first.st_ino), first.st_size, tuple(parts))

    @property
    def written_s(self) -> float:
        """Time of the last write [s since 1970]."""
        return max(when for _, when in self.parts) / 1e9


class TailedFile:
    """A file of a running job, and the copy of its newest rows.

    Args:
        path: the file.
        copy: path of the copy.
        newest: rows of a table that it begins with.
        arguments: names of the arguments of calls that are copied; None: all.

        Attributes:
        rows: rows copied so far.
        grown_at: time of the last new rows; before the first, time of the last write to the file [s since 1970].
        has_grown: whether rows have come since the first look.
        problem: reason why it can't be read now; empty: it can.
        begun_again: number of times that it was replaced or cut.
    """

    def __init__(self, path: Path, copy: Path, newest: int = _MOST, arguments: Collection[str] | None = None) -> None:
        self.path, self.copy, self._newest, self._arguments = path, copy, newest, arguments
        self.rows, self.grown_at, self.has_grown = 0, 0.0, False
        self.problem, self.begun_again = "", 0
        self._had_state = False  # a process that ends by itself removes its state file
        self._signature: FileSignature | None = None
        self._noticed: FileSignature | None = None
        self._opening: Opening | None = None
        self._copy: FreshCopy | None = None

    @property
    def written_s(self) -> float:
        """Time of the last write; 0: the file does not exist [s since 1970]."""
        signature = FileSignature.of(self.path)
        return signature.written_s if signature else 0.0

    @property
    def is_live(self) -> bool:
        """Whether it has grown while watched, or its process has left its state file, or still writes it."""
        return self.has_grown or state_file(self.path).exists()

    @property
    def may_grow(self) -> bool:
        """Whether its process has not reported its end, by its state file or by its rows."""
        with suppress(OSError):
            return not flags_of(state_file(self.path)) & ENDED
        return not (self._had_state or (self._copy and self._copy.has_ended()))

    @property
    def has_rows(self) -> bool:
        """Whether there is a readable copy."""
        return self._copy is not None and self._copy.has_tables

    @property
    def fresh(self) -> FreshCopy:
        """The copy, for a file that has rows."""
        assert self._copy
        return self._copy

    def notice(self) -> None:
        """Note whether the file was written to since the last look; `poll` reads the rows."""
        signature = self._marks()
        if signature is None:
            self.problem = "it is gone"
        elif signature != self._noticed:
            self._noticed, self.grown_at, self.has_grown = signature, time.time(), True

    def catch_up(self) -> None:
        """Skip rows if too many have come to be worth copying."""
        signature = FileSignature.of(self.path)
        if not self._copy or not signature or signature == self._signature or self._is_another(signature):
            return
        try:
            with self._attached(signature) as copy:
                if copy.is_far_behind():
                    copy.skip_ahead()
        except (InputError, apsw.Error):  # `poll` reports the reason
            self._let_go()

    def poll(self) -> int:
        """Copy the new rows; return their number."""
        signature = self._noticed = self._marks()
        if signature is None:
            self.problem = "it is gone"
            return 0
        if signature == self._signature:
            return 0
        if self._is_another(signature):
            self._begin_again()
        try:
            with self._attached(signature) as copy:
                count = copy.update()
        except (InputError, apsw.Error) as error:
            self._let_go()
            message = error.message if isinstance(error, RocpdError) else str(error)
            self.problem = message if str(self.path) in message else f"{self.path}: {message}"
            self._signature = signature if isinstance(error, ForeignError) else self._signature
            return 0
        if count:
            self.has_grown = self._signature is not None
            self.grown_at = time.time() if self.has_grown else signature.written_s
        self.rows += count
        self.problem, self._signature = "", signature
        return count

    def complete(self) -> None:
        """Copy the arguments that were left out, for the kept rows, as far as the file can be read."""
        signature = FileSignature.of(self.path)
        if self._copy and signature and not self._is_another(signature):
            with suppress(InputError, apsw.Error), self._attached(signature) as copy:
                copy.complete()

    def expect(self, share: float) -> None:
        """Continue with `share` times the rows that are kept now, once too many have come to copy all."""
        self.fresh.newest = min(self._newest, max(_LEAST, round(share * self.fresh.kept())))

    def close(self) -> None:
        """Close the file and the copy."""
        self._let_go()
        if self._copy:
            self._copy.close()
            self._copy = None

    def _marks(self) -> FileSignature | None:
        self._had_state |= state_file(self.path).exists()
        return FileSignature.of(self.path)

    def _begin_again(self) -> None:
        self.close()
        self._had_state = False
        self.copy.unlink(missing_ok=True)
        self._signature = None
        self.begun_again += 1

    def _is_another(self, signature: FileSignature) -> bool:
        known = self._signature
        return known is not None and (signature.inode != known.inode or signature.size < known.size)

    @contextmanager
    def _attached(self, signature: FileSignature) -> Iterator[FreshCopy]:
        """Attach the file to the copy for the duration of a block.

        Raises:
            InputError, apsw.Error: the file cannot be read now.
        """
        was_open = self._opening is not None
        self._opening = self._opening or self._opened(signature)
        if self._copy is None:
            self._copy, was_open = FreshCopy(self.copy, _BUSY_MS, self._newest, self._arguments), False
        if not was_open:
            self._copy.attach(self._opening.uri)
        try:
            yield self._copy
        finally:
            if not self._may_stay_open(self._opening):
                self._let_go()

    def _opened(self, signature: FileSignature) -> Opening:
        opening = opening_of(self.path, _BUSY_MS)
        if opening.copy and time.time() - signature.written_s < _SETTLED_S:
            opening.discard()
            raise InputError(f"{self.path}: a journal beside it is being written")
        return opening

    def _may_stay_open(self, opening: Opening) -> bool:
        """Whether an open file is harmless: without locks new rows stay unseen; WAL's files go with their last user."""
        return "mode=ro" in opening.uri and not Path(os.path.realpath(self.path) + JOURNALS[1]).exists()

    def _let_go(self) -> None:
        if self._copy:
            self._copy.detach()
        if self._opening:
            self._opening.discard()
        self._opening = None


class Tail:
    """All files of a running job, and the copies of their newest rows; files may appear at any time.

    Args:
        inputs: files, globs and folders, as `rocpd.connect` takes them.
        arguments: names of the arguments of calls that are copied; None: all.

        Attributes:
        files: path -> file.
        waits_for: reason why there is no file yet; empty: there are files.
    """

    def __init__(self, inputs: Sequence[str], arguments: Collection[str] | None = None) -> None:
        self.inputs, self.waits_for, self._arguments = tuple(inputs), "", arguments
        self.files: dict[Path, TailedFile] = {}
        self._folder = leftovers.make_folder(Path(tempfile.gettempdir()))

    def poll(self) -> int:
        """Copy the new rows; return their number."""
        for file in self.files.values():  # before any copy, which takes a while: all skip to about the same time
            file.catch_up()
        return sum(file.poll() for file in self.files.values())

    def notice(self) -> None:
        """Note which files were written to, without copying."""
        for file in self.files.values():
            file.notice()

    def readable(self) -> dict[Path, TailedFile]:
        """Return path of the copy -> file, for files with copied rows."""
        return {file.copy: file for file in self.files.values() if file.has_rows}

    def complete(self) -> None:
        """Copy the arguments that were left out, for the kept rows."""
        for file in self.files.values():
            file.complete()

    def close(self) -> None:
        """Close the files, and remove the copies."""
        for file in self.files.values():
            file.close()
        leftovers.remove(self._folder)

    def find(self) -> None:
        """Find new files."""
        try:
            paths = find_sources(self.inputs).paths
        except InputError as error:
            paths, self.waits_for = (), error.message
        if paths:
            self.waits_for = ""
        newest = min(_MOST, max(_FEWEST, _NEWEST // max(1, len(paths))))
        for path in paths:
            if path not in self.files:
                copy = self._folder / str(len(self.files)) / path.name
                self.files[path] = TailedFile(path, copy, newest, self._arguments)
