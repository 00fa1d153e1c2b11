"""Keeps the profiles of runs as a small JSON file, to compare with later, and what was accepted since."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocpd.compare.launches import CodeFacts, KernelLaunch
from rocpd.compare.run_profile import LaunchUse, RankUse, RunFacts, RunProfile
from rocpd.errors import InputError
from rocpd.frozen import frozen

VERSION = 1
"""Of the form of the file."""

_HEAD = b'{"rocpd_baseline":'


@frozen
class Baseline:
    """Runs to compare with.

    Args:
        runs: their profiles.
        accepted: changes that were accepted, the oldest first.
    """

    runs: tuple[RunProfile, ...]
    accepted: tuple[Mapping[str, Any], ...] = ()

    def text(self) -> str:
        """Return the content of the file."""
        content = {
            "rocpd_baseline": VERSION,
            "accepted": list(self.accepted),
            "runs": [_plain(run) for run in self.runs],
        }
        return json.dumps(content, separators=(",", ":")) + "\n"


def is_baseline(path: str) -> bool:
    """Whether an input is a file that `text` was written to; traces of other profilers are JSON too."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_HEAD)) == _HEAD
    except OSError:
        return False


def load_baseline(path: Path) -> Baseline:
    """Read a file.

    Raises:
        InputError: it can't be read, or is no baseline.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["rocpd_baseline"] != VERSION:
            raise ValueError(f"form {content['rocpd_baseline']} instead of {VERSION}")
        if not content["runs"]:
            raise ValueError("no runs in it")
        return Baseline(tuple(map(_run, content["runs"])), tuple(content["accepted"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "`rocpd diff --save-baseline FILE JOB` writes one"
        raise InputError(f"{path}: no baseline can be read: {type(error).__name__}: {error}", hint) from error


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; dataclasses become lists of their fields, so that names stand there once."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _run(fields: Mapping[str, Any]) -> RunProfile:
    known = dict(fields)
    known["numbers"] = tuple(known["numbers"])
    known["samples"] = {metric: tuple(map(float, values)) for metric, values in known["samples"].items()}
    known["uses"] = tuple(LaunchUse(**{**use, "launch": _launch(use["launch"])}) for use in known["uses"])
    known["guids"] = tuple(known.get("guids", ()))  # files of older versions have none
    known["ranks"] = tuple(RankUse(**rank) for rank in known["ranks"])
    facts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in known["facts"].items()
    }
    known["facts"] = RunFacts(**facts)
    return RunProfile(**known)


def _launch(values: Sequence[Any]) -> KernelLaunch:
    kind, symbol, name, category, path, grid, code, operator = values
    shape = None if grid is None else tuple(grid)
    return KernelLaunch(kind, symbol, name, category, path, shape, CodeFacts(*code), operator)


def accepted(baseline: Baseline, runs: Iterable[RunProfile], record: Mapping[str, Any]) -> Baseline:
    """Return a baseline of other runs, with a record of why they were accepted."""
    return Baseline(tuple(runs), (*baseline.accepted, record))
