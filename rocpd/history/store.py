"""A folder of entries that many jobs write at once without a lock. Entries are added whole, and never changed.

A name says what is in a file, so two writers of one name write the same. Of several summaries of a run the newest one
counts, and of several values of a label too. What is no entry is named and left out, never mended or removed. A folder
of other files never becomes a store: it may be a recording.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

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
_ROCM_NS = 1_451_606_400 * 10**9  # the first of January 2016
_FEW = 3  # files that are named
_OWN = 0.8  # values a run, of a label that tells runs apart


@frozen
class Stored:
    """The content of a folder.

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
        date: when they ran [ns since 1970]; None: what the store says of them already, else what their files say.
        now: the time [ns since 1970]; None: that of the clock.

    Raises:
        UsageError: there is a file of that name, or a folder of other files.
        OutputError: the folder can't be written.
    """
    _refuse_others(folder)
    added = time.time_ns() if now is None else now
    news = []
    for number, run in enumerate(runs):
        files = [written(run, _known_date(folder, run) if date is None else date, added + number)]
        if labels:
            files.append(labels_written(identity_of(run), labels, added))
        put = [_put(folder / name, text) for name, text in files]
        news.append(any(put))
    return news


def _refuse_others(folder: Path) -> None:
    """Refuse what is no store, and cannot become one."""
    hint = "the store comes first: rocpd history add STORE RUN..."
    if folder.is_file():
        raise UsageError(f"{folder}: a file, no folder", hint)
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 (as in read)
    if names and not any(name.endswith((ENDING, LABELS_ENDING)) for name in names):
        others = sorted(name for name in names if not (name.startswith(".") or is_temporary(folder / name)))
        if others:
            raise UsageError(f"{folder}: no store, it holds {_some(others)}", hint)


def _known_date(folder: Path, run: RunProfile) -> int | None:
    """Return the date that the newest summary of a run in a store has; None: there is none."""
    entries = []
    for path in folder.glob(f"{identity_of(run)}-*{ENDING}"):
        with contextlib.suppress(_LeftOutError):
            entries.append(_entry(path))
    return max(entries, key=_age).date if entries else None


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
    in_order = tuple(sorted(said, key=lambda entry: (entry.at, entry.added, entry.run)))
    return Stored(in_order, (*problems, *superseded, *_odd_dates(in_order), *twice, *_of_several(in_order)))


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
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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


def _age(entry: RunEntry) -> tuple[int, bool, str]:
    """Return what says which of two entries of a run is the newer one; of copies it is that of its own name."""
    return entry.added, entry.path.name.startswith(entry.run), entry.path.name


def _newest(entries: Iterable[RunEntry]) -> tuple[list[RunEntry], list[str]]:
    """Return the newest entry of each run, and what is to be said of the others."""
    newest: dict[str, RunEntry] = {}
    older: dict[str, list[str]] = defaultdict(list)
    for entry in sorted(entries, key=_age):
        if other := newest.get(entry.run):
            is_copy = replace(other, path=entry.path) == entry
            older["a copy of another file" if is_copy else "a newer summary of the run counts"].append(other.path.name)
        newest[entry.run] = entry
    return list(newest.values()), [f"{_some(names)}: left out: {why}" for why, names in older.items()]


def _odd_dates(entries: Sequence[RunEntry]) -> Iterator[str]:
    undated = [entry.name for entry in entries if entry.date is None]
    if undated:
        yield f"{_some(undated)}: nothing says when it ran: it stands where it was added; --date says so"
    odd = {
        "dated after it was added": [entry for entry in entries if entry.at > entry.added + _DAY_NS],
        "dated before ROCm was there": [entry for entry in entries if entry.at < _ROCM_NS],
    }
    for why, some in odd.items():
        if some:
            dates = ", ".join(date_text(entry.at) for entry in some[:_FEW])
            yield f"{_some([entry.name for entry in some])}: {why} ({dates}): a clock was wrong; --date says better"


def _labelled(entries: Sequence[RunEntry], labels: Sequence[Mapping[str, Any]]) -> tuple[list[RunEntry], list[str]]:
    """Return entries with their labels, of which the newest value counts, and what is to be said of labels."""
    known: dict[str, dict[str, str]] = defaultdict(dict)
    names = {entry.run: entry.name for entry in entries}
    twice: list[str] = []
    for content in sorted(labels, key=lambda content: int(content["added"])):
        of_run = known[content["run"]]
        for name, value in content["labels"].items():
            if of_run.get(name, value) != value and content["run"] in names:
                twice.append(f"{names[content['run']]}: {name}={of_run[name]} and {name}={value}")
            of_run[str(name)] = str(value)
    problems = [f"{'; '.join(twice[:_FEW])}: the newer label counts"] if twice else []
    return [replace(entry, labels=known.get(entry.run, {})) for entry in entries], problems


def _of_several(entries: Sequence[RunEntry]) -> Iterator[str]:
    """Yield labels of several runs, where nearly each run has a value of its own: of commits, but not of branches."""
    for name in dict.fromkeys(name for entry in entries for name in entry.labels):
        runs = Counter(entry.labels[name] for entry in entries if name in entry.labels)
        several = [f"{name}={value}" for value, count in runs.items() if count > 1]
        if several and len(runs) >= _OWN * runs.total():
            yield f"{_some(several)}: said of several runs"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
