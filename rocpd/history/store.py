"""A folder of entries that many jobs write at once without a lock. Entries are added whole, and never changed.

An entry is one run: a file of two lines, named by its content. The first line holds the data for lists and series
(`RunEntry`), so that thousands are read in a moment; the second one is a baseline of `rocpd diff` with the whole
profile. The first line holds the length of the second, so that an incomplete file is found without reading it. Labels
are files of their own, so that they can be added later.

Two writers of one name write the same. Of several summaries of a run the newest one counts, and so does the newest of
several values of a label. Other files are named and left out, never mended or removed. A folder of other files never
becomes a store: it may be a recording.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from rocpd.base import InputError, UsageError, attributes, few, frozen
from rocpd.base.identity import blake2b
from rocpd.base.leftovers import is_temporary
from rocpd.base.output import complete_or_nothing
from rocpd.base.texts import json_object
from rocpd.compare.baseline import Baseline, baseline_of
from rocpd.compare.options import ENERGY, MEMORY, STEP
from rocpd.compare.run_profile import NUMBER, RunProfile
from rocpd.redact.options import Clue
from rocpd.redact.texts import Pseudonyms, Redactor

VERSION = 1
"""Version of the first line; counts changes of its meaning."""

ENDING = ".rocpd-run.json"
"""Ending of the files of runs."""

LABELS_ENDING = ".rocpd-labels.json"
"""Ending of the files of labels."""

PART, KERNEL = "part:", "kernel:"
"""Prefixes of the names of metrics: parts of a step, and kernels."""

GRID = "grid of "
"""Prefix of the names of kernels whose grids are a part of the configuration."""

COMMAND = "command"
"""Name of the command of a run, in the configuration."""

_UNITS = {MEMORY: "bytes", ENERGY: "J"}
_MOST_KERNELS = 40  # kernels of a run, by time
_GRIDS = 0.1  # least share of the compute time of kernels whose grids belong to the configuration
_DIGITS = 8  # bytes of a hash
_LAST = 2**63  # ns: the largest number in SQL, for dates until 2262


@frozen
class RunEntry:
    """The summary of a run.

    Args:
        run: its identity, by the GUIDs of its ranks.
        name: its path when it was added.
        added: time of the summary [ns since 1970].
        date: time of the run [ns since 1970]; None: unknown to the user and the files.
        unit: kind of unit, such as a step.
        units: number of units.
        warm_up: number of warm-up units before them.
        ranks: number of ranks.
        hosts: hosts of its ranks.
        config: its configuration: name -> value.
        recorded: kinds of recorded events.
        metrics: name -> value: `step` and other medians of units, and mean times of parts and kernels per unit.
        compute: kernel -> its share of the compute time.
        labels: labels from the user.
        path: the file.
        body: length of the second line [bytes].
    """

    run: str
    name: str
    added: int
    date: int | None
    unit: str
    units: int
    warm_up: int
    ranks: int
    hosts: tuple[str, ...]
    config: Mapping[str, str]
    recorded: tuple[str, ...]
    metrics: Mapping[str, float]
    compute: Mapping[str, float]
    labels: Mapping[str, str]
    path: Path
    body: int

    @property
    def at(self) -> int:
        """Its place in time [ns since 1970]."""
        return self.added if self.date is None else self.date

    def profile(self) -> RunProfile:
        """Read the whole profile of the run.

        Raises:
            InputError: the file is damaged or missing.
        """
        try:
            with self.path.open(encoding="utf-8") as file:
                file.readline()
                (run,) = baseline_of(file.readline()).runs
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{self.path}: damaged: {error}", "remove it, and add the run again") from error
        return run


def unit_of(metric: str) -> str:
    """Return the unit of a metric; most have ns."""
    return _UNITS.get(metric, "ns")


def identity_of(run: RunProfile) -> str:
    """Return the identity of a run: the same for every copy, part and summary of it."""
    return _hash(map(_opaque, run.guids) if run.guids else (run.name, *map(str, run.samples[STEP])))


def written(run: RunProfile, date: int | None, added: int) -> tuple[str, str]:
    """Return name and text of the file of a run. The name does not depend on the time of adding.

    Args:
        run: its profile.
        date: time of the run [ns since 1970]; None: the time in the files.
        added: time of adding [ns since 1970].
    """
    body = Baseline((run,)).text()
    head = {**_head(run), "added": added, "date": _date(run, date), "body": len(body.encode())}
    digest = _hash([body, str(head["date"]), str(VERSION)])
    return f"{head['run']}-{digest}{ENDING}", f"{json.dumps(head, separators=(',', ':'))}\n{body}"


def unwritten(run: RunProfile) -> RunEntry:
    """Return the entry of a run that is not in a file."""
    return entry_of({**_head(run), "added": 0, "date": _date(run, None), "body": 0}, Path())


def _date(run: RunProfile, given: int | None) -> int | None:
    return run.facts.started if given is None else given


def _head(run: RunProfile) -> dict[str, Any]:
    return {
        "rocpd_history": VERSION,
        "run": identity_of(run),
        **attributes(run, "name unit units warm_up"),
        "ranks": run.facts.ranks,
        "hosts": sorted({rank.host for rank in run.ranks if rank.host}),
        "config": _config(run),
        "recorded": run.facts.recorded,
        "metrics": _metrics(run),
        "compute": _compute(run),
    }


def labels_written(run: str, labels: Mapping[str, str], added: int) -> tuple[str, str]:
    """Return name and text of the file of labels of a run."""
    content = {"rocpd_labels": VERSION, "run": run, "labels": dict(labels), "added": added}
    digest = _hash([json.dumps(labels, sort_keys=True)])
    return f"{run}-{digest}{LABELS_ENDING}", json.dumps(content, separators=(",", ":")) + "\n"


def entry_of(head: Mapping[str, Any], path: Path) -> RunEntry:
    """Return the entry of a first line.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the line is not the head of an entry.
    """
    known = {field.name: head[field.name] for field in fields(RunEntry) if field.name not in ("labels", "path")}
    known["hosts"], known["recorded"] = tuple(head["hosts"]), tuple(head["recorded"])
    entry = RunEntry(**known, labels={}, path=path)
    if not (_has_types(entry) and entry.metrics[STEP] > 0):
        raise ValueError("no times of a run in it")
    return entry


def _has_types(entry: RunEntry) -> bool:
    """Return whether the values of an entry have the right types, and its times are dates."""
    texts = entry.run, entry.name, entry.unit, *entry.hosts, *entry.recorded, *entry.config.values()
    counts = entry.units, entry.warm_up, entry.ranks, entry.body
    numbers = *entry.metrics.values(), *entry.compute.values()
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(count, int) and 0 <= count < _LAST for count in counts)
        and all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
        and all(isinstance(time, int) and abs(time) < _LAST for time in (entry.added, entry.at))
    )


def _hash(texts: Iterable[str]) -> str:
    return blake2b("\0".join(texts).encode("utf-8", "surrogateescape"), digest_size=_DIGITS).hexdigest()


def _metrics(run: RunProfile) -> dict[str, float]:
    """Return medians of units, and mean times of parts and kernels per unit [ns or bytes]."""
    each = run.scale * run.units
    metrics = {name: float(median(values)) for name, values in run.samples.items() if values}
    parts, kernels = Counter[str](), Counter[str]()
    for use in run.uses:
        parts.update(use.exposed)
        kernels[use.launch.name] += sum(use.exposed.values())
    parts.update(run.idle)
    metrics |= {f"{PART}{name}": time / each for name, time in parts.items()}
    return metrics | {f"{KERNEL}{name}": time / each for name, time in kernels.most_common(_MOST_KERNELS) if time}


def _compute(run: RunProfile) -> dict[str, float]:
    times = Counter[str]()
    for use in run.uses:
        if use.launch.kind == "compute":
            times[use.launch.name] += use.time
    total = sum(times.values())
    return {name: round(time / total, 4) for name, time in times.most_common(_MOST_KERNELS) if time}


def _config(run: RunProfile) -> dict[str, str]:
    """Return the configuration of a run: a change that comes with a difference here is no regression."""
    facts = run.facts
    config = {
        "what counts": run.selection,
        "ranks": str(facts.ranks),
        "hosts": str(facts.hosts),
        "GPU": ", ".join(facts.gpus),
        "ROCm": ", ".join(facts.rocm),
        "schema": ", ".join(facts.versions),
        COMMAND: "; ".join(facts.commands),
        **facts.environment,
    }
    for name in (name for name, share in _compute(run).items() if share >= _GRIDS):
        grids = {use.launch.grid for use in run.uses if use.launch.name == name and use.launch.grid}
        config[f"{GRID}{name}"] = ", ".join(sorted("x".join(map(str, grid[:3])) for grid in grids))
    return {name: value for name, value in config.items() if value}


def redacted(run: RunProfile) -> RunProfile:
    """Return a profile without the places and users of the run, in which machines stay distinct.

    Hosts, commands and GUIDs are hashes, the same in each run of a history: a known name can be recognised.
    """
    hosts = {rank.host: f"host-{_hash([rank.host])[:6]}" for rank in run.ranks if rank.host}
    redactor = Redactor(Pseudonyms(), dict.fromkeys(hosts, Clue.HOST))
    environment = json_object(redactor.environment(json.dumps(dict(run.facts.environment)))) or {}
    forms = {NUMBER.sub("#", command) for command in run.facts.commands}
    commands = tuple(sorted(f"command-{_hash([form])[:6]}" for form in forms))
    uses = [replace(use, launch=use.launch._replace(path=redactor.text(use.launch.path))) for use in run.uses]
    return replace(
        run,
        name=f"run-{identity_of(run)[:6]}",
        uses=tuple(uses),
        ranks=tuple(replace(rank, host=hosts.get(rank.host or "")) for rank in run.ranks),
        facts=replace(run.facts, commands=commands, environment=environment),
        guids=tuple(map(_opaque, run.guids)),
        problems={},
    )


def _opaque(guid: str) -> str:
    return guid if guid.startswith("#") else f"#{_hash([guid])}"


def date_of(text: str) -> int:
    """Return the time in a text [ns since 1970]; without a zone it is UTC.

    >>> date_of("2026-11-12"), date_of("2026-11-12T03:00:00+03:00") == date_of("2026-11-12")
    (1794441600000000000, True)

    Raises:
        UsageError: the text is not a date.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--date {text}: no date", "such as 2026-11-12 or 2026-11-12T03:00:00+01:00") from error
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    since = round(at.timestamp()) * 10**9
    if abs(since) >= _LAST:
        raise UsageError(f"--date {text}: beyond the years 1678 to 2261", "such as 2026-11-12")
    return since


def date_text(at: int) -> str:
    """Return a time for people, in UTC."""
    return f"{datetime.fromtimestamp(at // 10**9, UTC):%Y-%m-%d %H:%M}"


def labels_of(words: Iterable[str]) -> dict[str, str]:
    """Return the labels in words such as `commit=abc`.

    Raises:
        UsageError: a word has another form, or repeats a label.
    """
    labels: dict[str, str] = {}
    for word in words:
        name, is_given, value = word.partition("=")
        if not (is_given and name and value):
            raise UsageError(f"--label {word}: not of the form NAME=VALUE", "such as commit=9f2c1")
        if labels.get(name, value) != value:
            raise UsageError(f"--label {name}: {labels[name]} and {value}", "a label has one value")
        labels[name] = value
    return labels


_DAY_NS = 86_400 * 10**9
_ROCM_NS = 1_451_606_400 * 10**9  # the first of January 2016
_FEW = 3  # files named in a message
_OWN = 0.8  # values per run of a label that identifies runs


@frozen
class Stored:
    """The content of a folder.

    Args:
        entries: the newest entry of each run, in order of time.
        problems: parts that were left out or are odd, as sentences.
    """

    entries: tuple[RunEntry, ...]
    problems: tuple[str, ...]


def add(
    folder: Path, runs: Sequence[RunProfile], labels: Mapping[str, str], date: int | None = None, now: int | None = None
) -> list[bool]:
    """Write runs into a store; return for each whether the store changed.

    Args:
        folder: the store; created if missing.
        runs: their profiles.
        labels: labels for all of them.
        date: time of the runs [ns since 1970]; None: the date in the store, else in their files.
        now: current time [ns since 1970]; None: by the clock.

    Raises:
        UsageError: the path is a file, or a folder of other files.
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
    """Refuse paths that are no stores and cannot become one."""
    hint = "the store comes first: rocpd history add STORE RUN..."
    if folder.is_file():
        raise UsageError(f"{folder}: a file, no folder", hint)
    names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 (as in read)
    if names and not any(name.endswith((ENDING, LABELS_ENDING)) for name in names):
        others = sorted(name for name in names if not (name.startswith(".") or is_temporary(folder / name)))
        if others:
            raise UsageError(f"{folder}: no store, it holds {few(others, _FEW)}", hint)


def _known_date(folder: Path, run: RunProfile) -> int | None:
    """Return the date in the newest summary of a run in a store, or None."""
    entries = []
    for path in folder.glob(f"{identity_of(run)}-*{ENDING}"):
        with contextlib.suppress(_LeftOutError, OSError):
            entries.append(_entry(path))
    return max(entries, key=_age).date if entries else None


def _put(path: Path, text: str) -> bool:
    """Write a file unless it exists; return whether it was written."""
    if path.exists():
        return False
    with complete_or_nothing(path, force=True) as temporary:  # a quicker writer wrote the same
        temporary.write_text(text, encoding="utf-8")
    return True


def read(folder: Path) -> Stored:
    """Read a store; files that are not entries are left out, and named.

    Raises:
        InputError: the folder does not exist, or has no runs.
    """
    entries: list[RunEntry] = []
    labels: list[Mapping[str, Any]] = []
    wrong: dict[str, list[str]] = defaultdict(list)
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 (only names, of thousands of files)
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
        except OSError as error:
            wrong[f"cannot be read: {error.strerror}"].append(name)
    problems = [f"{few(some, _FEW)}: left out: {why}" for why, some in wrong.items()]
    if not entries:
        hint = "; ".join(problems) or "`rocpd history add STORE RUN` adds one"
        raise InputError(f"{folder}: no run in it", hint)
    newest, superseded = _newest(entries)
    said, twice = _labelled(newest, labels)
    in_order = tuple(sorted(said, key=lambda entry: (entry.at, entry.added, entry.run)))
    return Stored(in_order, (*problems, *superseded, *_odd_dates(in_order), *twice, *_of_several(in_order)))


class _LeftOutError(Exception):
    """The reason why a file is not an entry."""


def _entry(path: Path) -> RunEntry:
    with path.open("rb") as file:
        line = file.readline()
        size = os.fstat(file.fileno()).st_size
    head = _object(line, "rocpd_history")
    try:
        entry = entry_of(head, path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _LeftOutError("not of a history") from error
    if size != len(line) + entry.body:
        raise _LeftOutError("half written")
    return entry


def _labels(path: Path) -> Mapping[str, Any]:
    content = _object(path.read_bytes(), "rocpd_labels")
    is_whole = isinstance(content.get("labels"), dict) and isinstance(content.get("added"), int)
    if not is_whole or not isinstance(content.get("run"), str):
        raise _LeftOutError("not of a history")
    return content


def _object(line: bytes, form: str) -> Mapping[str, Any]:
    """Return the JSON object in a line, if `form` is a known one."""
    try:
        content = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        why = "not of a history" if line.endswith(b"\n") else "half written"
        raise _LeftOutError(why) from error
    version = content.get(form) if isinstance(content, dict) else None
    if not isinstance(version, int):
        raise _LeftOutError("not of a history")
    if version > VERSION:
        raise _LeftOutError("written by a newer rocpd, which reads it")
    return dict(content)


def _age(entry: RunEntry) -> tuple[int, bool, str]:
    """Return the sort key by age of entries of a run; of copies the one under its own name is newer."""
    return entry.added, entry.path.name.startswith(entry.run), entry.path.name


def _newest(entries: Iterable[RunEntry]) -> tuple[list[RunEntry], list[str]]:
    """Return the newest entry of each run, and sentences about the others."""
    newest: dict[str, RunEntry] = {}
    older: dict[str, list[str]] = defaultdict(list)
    for entry in sorted(entries, key=_age):
        if other := newest.get(entry.run):
            is_copy = replace(other, path=entry.path) == entry
            older["a copy of another file" if is_copy else "a newer summary of the run counts"].append(other.path.name)
        newest[entry.run] = entry
    return list(newest.values()), [f"{few(names, _FEW)}: left out: {why}" for why, names in older.items()]


def _odd_dates(entries: Sequence[RunEntry]) -> Iterator[str]:
    if undated := [entry.name for entry in entries if entry.date is None]:
        yield f"{few(undated, _FEW)}: nothing says when, so the order is that of `add`; --date says it"
    odd = {
        "dated after it was added": [entry for entry in entries if entry.at > entry.added + _DAY_NS],
        "dated before ROCm was there": [entry for entry in entries if entry.at < _ROCM_NS],
    }
    for why, runs in odd.items():
        if runs:
            dates = ", ".join(date_text(entry.at) for entry in runs[:_FEW])
            yield f"{few([entry.name for entry in runs], _FEW)}: {why} ({dates}): a clock was wrong; --date says better"


def _labelled(entries: Sequence[RunEntry], labels: Sequence[Mapping[str, Any]]) -> tuple[list[RunEntry], list[str]]:
    """Return entries with the newest value of each of their labels, and sentences about labels."""
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
    """Yield labels that several runs share, if nearly each run has its own value, as for commits but not branches."""
    for name in dict.fromkeys(name for entry in entries for name in entry.labels):
        runs = Counter(entry.labels[name] for entry in entries if name in entry.labels)
        several = [f"{name}={value}" for value, count in runs.items() if count > 1]
        if several and len(runs) >= _OWN * runs.total():
            yield f"{few(several, _FEW)}: said of several runs"
