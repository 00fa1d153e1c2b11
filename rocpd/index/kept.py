"""Keeps what ranks answered to works on them, for the next command that asks the same while files are what they were.

An answer belongs to the state of a file, to what was asked, and to the code of rocpd. What is asked has a name, the
same in every process: a hash of a text that stands for one value, where a function stands for its name, everything else
for all that it holds. Answers are values of Python, which only pickle stores, and who writes a pickle has code run
where it is read: they lie in the user's own cache, to which nobody else may write, wherever the index lies.
"""

from __future__ import annotations

import contextlib
import copyreg
import dataclasses
import functools
import os
import pickle
import stat
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from rocpd.base import RocpdError, frozen
from rocpd.base.cache import file_entries, write_complete
from rocpd.base.identity import blake2b
from rocpd.base.sqlite import apsw
from rocpd.federate.run.rank_reader import DoTasks, RankTask, Work, Works, run_task
from rocpd.index.entries import is_still

_MOST_OF_AN_ANSWER = 1 << 20  # bytes; larger ones are columns, which are kept as facts
_MOST_OF_A_RANK = 256 << 20  # bytes
_DIGEST = 16
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ENDING = ".pickle"


class KeptAnswers:
    """The answers of the ranks of a job.

    Args:
        states: rank number -> state of its file; see `rocpd.index.entries.state_of`.

    Raises:
        OutputError: there is no cache folder.
    """

    def __init__(self, states: Mapping[int, str]) -> None:
        self._cache = file_entries("answers")
        self._states = states
        self._has_kept = False
        self._used: set[Path] = set()

    def each(self, tasks: Sequence[RankTask[Any]], do: DoTasks[Any]) -> Iterator[Any]:
        """Yield the answers of tasks, in order: what is kept, and what `do` yields of the rest, which is kept then.

        Raises:
            what the works raise.
        """
        asked = [
            _Asked(task, self._cache.root / self._states[task.rank.number], tuple(names))
            for task, names in zip(tasks, names_of(tasks), strict=True)
        ]
        lacking = [[number for number, path in enumerate(each.paths) if not _is_kept(path)] for each in asked]
        rest = [each.part(numbers) for each, numbers in zip(asked, lacking, strict=True) if numbers]
        with contextlib.ExitStack() as ending:
            new_answers: Iterator[Any] = ending.enter_context(contextlib.closing(do(rest))) if rest else iter(())
            for each, numbers in zip(asked, lacking, strict=True):
                new = dict(zip(numbers, next(new_answers), strict=True)) if numbers else {}
                self._keep(each, new)
                yield each.answer([new[n] if n in new else each.kept(n) for n in range(len(each.paths))])

    def close(self) -> None:
        """Remove what was not used for the longest time, if something was added; idempotent."""
        if self._has_kept:
            self._has_kept = False
            with contextlib.suppress(RocpdError):
                self._cache.evict()

    def _keep(self, asked: _Asked, new: Mapping[int, Any]) -> None:
        """Keep new answers where that is possible, and if the file of the rank has not changed meanwhile."""
        rank, worth = asked.task.rank, {path: new[n] for n, path in enumerate(asked.paths) if path and n in new}
        with contextlib.suppress(RocpdError, OSError):
            if worth and is_still(rank, self._states[rank.number]):
                self._has_kept = True
                self._cache.growing(asked.folder.name, rank.opening.path)
                for path, answer in worth.items() if _is_safe(asked.folder) else ():
                    if not isinstance(answer, RocpdError) or type(answer) is RocpdError:  # others may pass
                        _write(path, answer)
                _make_room(asked.folder)
            elif asked.folder not in self._used:
                self._cache.touch(asked.folder)
        self._used.add(asked.folder)


@frozen
class _Asked:
    """The question to one rank.

    Args:
        task: the works, and the rank.
        folder: of the answers of the rank.
        names: of the works; an empty one where its answer can't be kept.
    """

    task: RankTask[Any]
    folder: Path
    names: tuple[str, ...]

    @property
    def paths(self) -> list[Path | None]:
        """The file of each answer; None: it can't be kept."""
        return [self.folder / f"{name}{_ENDING}" if name else None for name in self.names]

    def part(self, numbers: Sequence[int]) -> RankTask[Any]:
        """Return the task of some of the works."""
        works = works_of(self.task)
        return dataclasses.replace(self.task, work=Works(tuple(works[number] for number in numbers)))

    def kept(self, number: int) -> Any:
        """Return the answer to a work that is kept; where it is damaged, or gone meanwhile, that of the rank."""
        path = self.paths[number]
        try:
            return _read(path) if path else None
        except Exception:  # noqa: BLE001 (a damaged pickle, or one of another time, may raise anything)
            (answer,) = run_task(self.part([number]))
            return answer

    def answer(self, answers: list[Any]) -> Any:
        """Return what the task asks for, by the answers to its works; raise the error of a single one."""
        if isinstance(self.task.work, Works):
            return answers
        if isinstance(answers[0], RocpdError):
            raise answers[0]
        return answers[0]


def _is_kept(path: Path | None) -> bool:
    try:
        return path is not None and path.exists() and _is_safe(path.parent)
    except OSError:  # a folder of somebody else
        return False


def _is_safe(folder: Path) -> bool:
    """Whether nobody but this user may have written to the folder of a rank."""
    for each in (folder, folder.parent):
        status = each.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
            return False
    return True


def _read(path: Path) -> Any:
    content = path.read_bytes()
    digest, pickled = content[:_DIGEST], memoryview(content)[_DIGEST:]
    if blake2b(pickled, digest_size=_DIGEST).digest() != digest:
        raise ValueError("damaged")
    return pickle.loads(pickled)


def _write(path: Path, answer: object) -> None:
    pickled = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    if len(pickled) <= _MOST_OF_AN_ANSWER:
        write_complete(path, blake2b(pickled, digest_size=_DIGEST).digest() + pickled)


def _make_room(folder: Path) -> None:
    """Remove the oldest answers of a rank where they take too much."""
    left = _MOST_OF_A_RANK
    with os.scandir(folder) as files:
        kept = [(Path(each.path), each.stat()) for each in files if each.name.endswith(_ENDING)]
    for path, status in sorted(kept, key=lambda each: -each[1].st_mtime_ns):
        left -= status.st_size
        if left < 0:
            path.unlink(missing_ok=True)


def works_of(task: RankTask[Any]) -> tuple[Work, ...]:
    """Return the works of a task: one, or several that share what they read."""
    return task.work.works if isinstance(task.work, Works) else (task.work,)


def names_of(tasks: Sequence[RankTask[Any]]) -> Iterator[list[str]]:
    """Yield the names of the works of each task; an empty one where something can't be described."""
    by_id: dict[int, str] = {}

    def known(value: object) -> str:
        """Return the description of a part of a task, most of which are parts of others too; empty: it has none."""
        if id(value) not in by_id:
            by_id[id(value)] = ""
            with contextlib.suppress(Indescribable, RecursionError):
                by_id[id(value)] = described(value)
        return by_id[id(value)]

    for task in tasks:
        fields = [(part, each.name) for part in (task.rank, task.tables) for each in dataclasses.fields(part)]
        of_rank = [known(getattr(part, name)) for part, name in fields if name != "opening"]
        of_rank.append(described(os.fspath(task.rank.opening.path)))
        yield [_hashed([known(work), *of_rank]) for work in works_of(task)]


def _hashed(parts: Sequence[str]) -> str:
    if not all(parts):
        return ""
    return blake2b("\0".join((_code(), *parts)).encode(), digest_size=_DIGEST).hexdigest()


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


_PLAIN = (types.NoneType, bool, int, float, str, bytes)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)
_PACKAGES = ("rocpd", "builtins", "collections", "copyreg", "enum", "functools", "numpy", "operator", "re")


class Indescribable(Exception):  # noqa: N818 (a reason, not a failure)
    """A value is of another package, names a file, or can't be sent to another process."""


def described(value: Any) -> str:
    """Return the description of a value.

    >>> described((1, "a", {"b"})), described(frozenset("ba")) == described(frozenset("ab"))
    ("tuple(1,'a',set('b'))", True)
    >>> described(lambda: 1)
    Traceback (most recent call last):
    rocpd.index.kept.Indescribable: <lambda>

    Raises:
        Indescribable: it has none.
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind in (tuple, list):
        return _listed(kind.__name__, map(described, value))
    if kind in (set, frozenset):
        return _listed(kind.__name__, sorted(map(described, value)))
    if kind in (dict, types.MappingProxyType):
        return _listed("dict", (f"{described(key)}:{described(each)}" for key, each in value.items()))
    if kind is functools.partial:
        return _listed("partial", map(described, (value.func, value.args, value.keywords)))
    parts = value if isinstance(value, _NAMED) else _parts(value)
    if not isinstance(parts, tuple):
        return _name(value)
    return _listed("made", (described(tuple(part) if hasattr(part, "__next__") else part) for part in parts))


def _parts(value: Any) -> Any:
    """Return what a copy of a value is made of, as pickle has it; anything but a tuple: it is known by its name."""
    if isinstance(value, PurePath):
        raise Indescribable("a path, whose file may change")
    try:
        reduce = copyreg.dispatch_table.get(type(value))
        return reduce(value) if reduce else value.__reduce_ex__(4)
    except TypeError as error:
        raise Indescribable(str(error)) from error


def _name(value: Any) -> str:
    module, name = value.__module__ or "", value.__qualname__
    if module.partition(".")[0] not in _PACKAGES or "<" in name:
        raise Indescribable(name)
    return f"{module}:{name}"


def _listed(kind: str, parts: Iterable[str]) -> str:
    return f"{kind}({','.join(parts)})"
