"""Names what is asked of ranks: the same name for the same work on the same rows by the same code, in every process."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base.sqlite import apsw
from rocpd.federate.run.rank_reader import RankTask, Work, Works
from rocpd.index.described import Indescribable, described

_DIGEST = 16


def works_of(task: RankTask[Any]) -> tuple[Work, ...]:
    """Return the works of a task: one, or several that share what they read."""
    return task.work.works if isinstance(task.work, Works) else (task.work,)


def names_of(tasks: Sequence[RankTask[Any]]) -> Iterator[list[str]]:
    """Yield the names of the works of each task; an empty one where something can't be described."""
    by_id: dict[int, str] = {}

    def known(value: object) -> str:
        """Return the description of a part of a task: most are those of other tasks too."""
        if id(value) not in by_id:
            by_id[id(value)] = _described(value)
        return by_id[id(value)]

    for task in tasks:
        rows = map(known, (*_parts(task.rank, {"opening"}), *_parts(task.tables, ())))
        of_rank = [*rows, _described(os.fspath(task.rank.opening.path))]
        yield [_hashed([known(work), *of_rank]) for work in works_of(task)]


def _parts(value: Any, left_out: Collection[str]) -> list[Any]:
    """Return the values of the fields of a dataclass."""
    return [getattr(value, each.name) for each in dataclasses.fields(value) if each.name not in left_out]


def _described(value: object) -> str:
    try:
        return described(value)
    except (Indescribable, RecursionError):
        return ""


def _hashed(parts: Sequence[str]) -> str:
    if not all(parts):
        return ""
    return hashlib.blake2b("\0".join((_code(), *parts)).encode(), digest_size=_DIGEST).hexdigest()


@functools.cache
def _code() -> str:
    """Return what distinguishes this rocpd from others: what it computes with, size and time of each of its files."""
    versions = sys.version, np.__version__, apsw.sqlite_lib_version()
    return repr((versions, sorted(_states(Path(__file__).parent.parent))))


def _states(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as files:
        for each in files:
            status = each.stat()
            if not each.is_dir():
                yield each.path, status.st_size, status.st_mtime_ns
            elif each.name != "__pycache__":
                yield from _states(Path(each.path))
