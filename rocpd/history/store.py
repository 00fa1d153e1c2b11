"""A folder of entries that many jobs write at once without a lock. Entries are added whole, and never changed.

A name says what is in a file, so two writers of one name write the same. Of several summaries of a run the newest one
counts, and of several values of a label too. What is no entry is named and left out, never mended or removed.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from rocpd.base.amount import amount
from rocpd.base.errors import InputError, UsageError
from rocpd.base.frozen import frozen
from rocpd.base.leftovers import is_temporary
from rocpd.base.output import complete_or_nothing
from rocpd.compare.run_profile import RunProfile
from rocpd.history.entry import (
    ENDING,
    LABELS_ENDING,
    VERSION,
    RunEntry,
    date_text,
    entry_of,
    identity_of,
    labels_written,
    written,
)

_DAY_NS = 86_400 * 10**9
_FEW = 3  # files that are named


@frozen
class Stored:
    """What a folder holds.

    Args:
        entries: of each run the newest one, in order of time.
        problems: what was left out or is odd, in sentences.
    """

    entries: tuple[RunEntry, ...]
    problems: tuple[str, ...]


def add(
    folder: Path, runs: Sequence[RunProfile], labels: Mapping[str, str], date: int | None = None, now: int | None = None
) -> list[bool]:
    """Write runs into a store; return of each whether something of it is new.

    Args:
        folder: the store; made where there is none.
        runs: their profiles.
        labels: what is said of each of them.
        date: when they ran [ns since 1970]; None: what their files say.
        now: the time [ns since 1970]; None: that of the clock.

    Raises:
        UsageError: there is a file of that name.
        OutputError: the folder can't be written.
    """
    if folder.is_file():
        raise UsageError(f"{folder}: a file, no folder", "the store comes first: rocpd history add STORE RUN...")
    added = time.time_ns() if now is None else now
    news = []
    for number, run in enumerate(runs):
        files = [written(run, date, added + number)]
        if labels:
            files.append(labels_written(identity_of(run), labels, added))
        put = [_put(folder / name, text) for name, text in files]
        news.append(any(put))
    return news


def _put(path: Path, text: str) -> bool:
    """Write a file unless it is there; return whether it was not."""
    if path.exists():
        return False
    with complete_or_nothing(path, force=True) as temporary:  # who was quicker wrote the same
        temporary.write_text(text, encoding="utf-8")
    return True


def read(folder: Path) -> Stored:
    """Read a store; what is no entry of it is left out, and named.

    Raises:
        InputError: there is no such folder, or no run in it.
    """
    entries: list[RunEntry] = []
    labels: list[Mapping[str, Any]] = []
    wrong: dict[str, list[str]] = defaultdict(list)
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 (names alone: of thousands of files)
    except OSError as error:
        raise InputError(f"{folder}: no history: {error.strerror}", "`rocpd history add STORE RUN` makes one") from None
    for name in names:
        path = folder / name
        if is_temporary(path):
            continue
        try:
            if name.endswith(ENDING):
                entries.append(_entry(path))
            elif name.endswith(LABELS_ENDING):
                labels.append(_labels(path))
            else:
                wrong["not of a history"].append(name)
        except _LeftOutError as error:
            wrong[str(error)].append(name)
    problems = [f"{_some(some)}: left out: {why}" for why, some in wrong.items()]
    if not entries:
        hint = "; ".join(problems) or "`rocpd history add STORE RUN` adds one"
        raise InputError(f"{folder}: no run in it", hint)
    newest, superseded = _newest(entries)
    said, twice = _labelled(newest, labels)
    return Stored(tuple(sorted(said, key=lambda entry: (entry.at, entry.run))), (*problems, *superseded, *twice))


class _LeftOutError(Exception):
    """Why a file is no entry, in words."""


def _entry(path: Path) -> RunEntry:
    try:
        with path.open("rb") as file:
            line = file.readline()
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise _LeftOutError(f"cannot be read: {error.strerror}") from error
    head = _object(line, "rocpd_history")
    try:
        entry = entry_of(head, path)
    except (KeyError, TypeError, ValueError) as error:
        raise _LeftOutError("not of a history") from error
    if size != len(line) + entry.body:
        raise _LeftOutError("half written")
    return entry


def _labels(path: Path) -> Mapping[str, Any]:
    try:
        content = _object(path.read_bytes(), "rocpd_labels")
    except OSError as error:
        raise _LeftOutError(f"cannot be read: {error.strerror}") from error
    is_whole = isinstance(content.get("labels"), dict) and isinstance(content.get("added"), int)
    if not is_whole or not isinstance(content.get("run"), str):
        raise _LeftOutError("not of a history")
    return content


def _object(line: bytes, form: str) -> Mapping[str, Any]:
    """Return the JSON object in a line, of a form that is known."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        why = "not of a history" if line.endswith(b"\n") else "half written"
        raise _LeftOutError(why) from error
    version = content.get(form) if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise _LeftOutError("not of a history")
    if version > VERSION:
        raise _LeftOutError("written by a newer rocpd, which reads it")
    return dict(content)


def _newest(entries: Iterable[RunEntry]) -> tuple[list[RunEntry], Iterator[str]]:
    """Return the newest entry of each run, and what is to be said of the others, and of odd dates."""
    newest: dict[str, RunEntry] = {}
    superseded = 0
    for entry in sorted(entries, key=lambda entry: (entry.added, entry.path.name)):
        superseded += entry.run in newest
        newest[entry.run] = entry
    chosen = list(newest.values())
    return chosen, _odd(chosen, superseded)


def _odd(entries: Sequence[RunEntry], superseded: int) -> Iterator[str]:
    if superseded:
        yield f"{amount(superseded, 'summary').replace('summarys', 'summaries')} of runs: a newer one counts"
    undated = [entry for entry in entries if entry.date is None]
    if undated:
        some = _some([entry.name for entry in undated])
        yield f"{some}: nothing says when it ran: it stands where it was added; --date says so"
    early = [entry for entry in entries if entry.at > entry.added + _DAY_NS]
    if early:
        dates = ", ".join(date_text(entry.at) for entry in early[:_FEW])
        yield f"{_some([entry.name for entry in early])}: dated after it was added ({dates}): a clock was wrong"


def _labelled(entries: Iterable[RunEntry], labels: Sequence[Mapping[str, Any]]) -> tuple[list[RunEntry], list[str]]:
    """Return entries with their labels, of which the newest value counts, and what has several."""
    known: dict[str, dict[str, str]] = defaultdict(dict)
    twice: list[str] = []
    for content in sorted(labels, key=lambda content: int(content["added"])):
        of_run = known[content["run"]]
        for name, value in content["labels"].items():
            if of_run.get(name, value) != value:
                twice.append(f"{name}={of_run[name]} and {name}={value}")
            of_run[str(name)] = str(value)
    problems = [f"labels of one run: {'; '.join(twice[:_FEW])}: the newer one counts"] if twice else []
    return [replace(entry, labels=known.get(entry.run, {})) for entry in entries], problems


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
