"""The identity of a file, regardless of its name: the key of all data that is derived from it and kept.

Two identities: `identity_of` is fast and changes whenever the file does, so caches use it; `digest_of` reads the whole
content, so it is the same on every machine and for every copy, and stable names are made of it.
"""

from __future__ import annotations

import os
from _blake2 import blake2b as blake2b  # `hashlib` gives the same one, and loads OpenSSL, which takes 3 ms
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

JOURNALS = ("-journal", "-wal", "-shm")
"""Endings of the files that SQLite keeps beside a database and reads with it."""

STATE = ".live"
"""Ending of the state file beside a database, in which its recorder notes current calls."""
STATE_MAGIC = b"ROCPDLIV"
"""First bytes of a state file."""

BESIDE = (*JOURNALS, STATE)
"""Endings of all files that are read with a database."""

_SAMPLES, _SAMPLE = 16, 1 << 14
_BLOCK = 1 << 20
_DIGITS = 16  # bytes of a hash


def identity_of(path: Path) -> str:
    """Return a hash that differs for any other file or folder, and for this one after a change.

    It goes by the state in the file system and by samples of the content, also of SQLite's files beside it, so that its
    cost does not grow with the file. The change time of the inode reveals a change after which a tool reset the time of
    the last write (`cp -p`, `rsync -t`, `touch -r`); a moved file counts as a different one, too.

    Raises:
        OSError: it cannot be read.
    """
    key = _new_hash()
    for name, file in _files(path):
        status = file.stat()
        key.update(f"{name}\0{seen(status)}\0".encode("utf-8", "surrogateescape"))
        with file.open("rb") as content:
            for sample in range(min(_SAMPLES, -(-status.st_size // _SAMPLE))):
                content.seek(max(0, status.st_size - _SAMPLE) * sample // (_SAMPLES - 1))
                key.update(content.read(_SAMPLE))
    return key.hexdigest()


def status_of(path: Path) -> os.stat_result | None:
    """Return the status of a file; None if it is gone, or cannot be read."""
    try:
        return path.stat()
    except OSError:
        return None


def seen(status: os.stat_result) -> tuple[int, ...]:
    """Return the part of a file's status that changes with each change of its content."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def digest_of(path: Path) -> str:
    """Return a hash of the whole content of a file, or of all files in a folder with their names.

    Raises:
        OSError: it cannot be read.
    """
    key = _new_hash()
    for name, file in _files(path):
        if path.is_dir():
            key.update(f"{name}\0{file.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        with file.open("rb") as content:
            _add_content(key, content)
    return key.hexdigest()


def digest_of_stream(content: BinaryIO) -> str:
    """Return the result of `digest_of` for a file with this content."""
    key = _new_hash()
    _add_content(key, content)
    return key.hexdigest()


def _new_hash() -> blake2b:
    return blake2b(digest_size=_DIGITS)


def _add_content(key: blake2b, content: BinaryIO) -> None:
    while block := content.read(_BLOCK):
        key.update(block)


def _files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of the files of a path: the file and SQLite's files beside it, or all files of a folder."""
    if path.is_dir():
        yield from ((file.relative_to(path).as_posix(), file) for file in sorted(path.rglob("*")) if file.is_file())
        return
    yield "", path
    for ending in JOURNALS[:2]:
        beside = Path(os.path.realpath(path) + ending)
        if beside.is_file():
            yield ending, beside
