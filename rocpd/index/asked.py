"""Names what is asked of ranks: the same name for the same work on the same rows by the same code, in every process."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rocpd.federate.run.rank_reader import RankTask, Work, Works
from rocpd.index.described import Indescribable, described

_DIGEST = 16


def works_of(task: RankTask[Any]) -> tuple[Work, ...]:
    """Return the works of a task: one, or several that share what they read."""
    return task.work.works if isinstance(task.work, Works) else (task.work,)


def names_of(tasks: Sequence[RankTask[Any]]) -> Iterator[list[str]]:
    """Yield the names of the works of each task; an empty one where something can't be described."""
    by_work: dict[int, str] = {}
    for task in tasks:
        rows = _described_rows(task)
        for work in works_of(task):
            if id(work) not in by_work:
                by_work[id(work)] = _described(work)
        yield [_hashed(by_work[id(work)], rows) for work in works_of(task)]


def _described_rows(task: RankTask[Any]) -> str:
    """Describe the rank of a task, and which of its rows count."""
    fields = {each.name: getattr(task.rank, each.name) for each in dataclasses.fields(task.rank)}
    return _described(({**fields, "opening": os.fspath(task.rank.opening.path)}, task.tables))


def _described(value: object) -> str:
    try:
        return described(value)
    except (Indescribable, RecursionError):
        return ""


def _hashed(work: str, rows: str) -> str:
    if not (work and rows):
        return ""
    return hashlib.blake2b("\0".join((_code(), work, rows)).encode(), digest_size=_DIGEST).hexdigest()


@functools.cache
def _code() -> str:
    """Return what tells this rocpd from others: size and time of the last change of every file that belongs to it."""
    return repr((sys.version, sorted(_states(Path(__file__).parent.parent))))


def _states(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as files:
        for each in files:
            status = each.stat()
            if not each.is_dir():
                yield each.path, status.st_size, status.st_mtime_ns
            elif each.name != "__pycache__":
                yield from _states(Path(each.path))
