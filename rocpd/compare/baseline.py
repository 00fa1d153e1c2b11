"""The file of a baseline: profiles of runs as JSON, and the reasons why changes were accepted."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocpd.base import InputError, frozen
from rocpd.compare.calls import CallUse
from rocpd.compare.measure import CodeFacts, KernelLaunch, Moved
from rocpd.compare.run_profile import CallLengths, LaunchUse, RankUse, RunFacts, RunProfile

VERSION = 1
"""Version of the form of the file."""

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
        runs = [dataclasses.asdict(run) for run in self.runs]
        content = {"rocpd_baseline": VERSION, "accepted": list(self.accepted), "runs": runs}
        return json.dumps(content, separators=(",", ":")) + "\n"


def is_baseline(path: str) -> bool:
    """Whether an input is a file that holds a baseline; traces of other profilers are JSON, too."""
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
        return baseline_of(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "`rocpd diff --save-baseline FILE JOB` writes one"
        raise InputError(f"{path}: no baseline can be read: {type(error).__name__}: {error}", hint) from error


def baseline_of(text: str) -> Baseline:
    """Return the baseline of a text that `Baseline.text` wrote.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: the text is no baseline.
    """
    content = json.loads(text)
    if content["rocpd_baseline"] != VERSION:
        raise ValueError(f"form {content['rocpd_baseline']} instead of {VERSION}")
    if not content["runs"]:
        raise ValueError("no runs in it")
    return Baseline(tuple(map(_run, content["runs"])), tuple(content["accepted"]))


def _run(fields: Mapping[str, Any]) -> RunProfile:
    known = dict(fields)
    known["numbers"] = tuple(known["numbers"])
    known["samples"] = {metric: tuple(map(float, values)) for metric, values in known["samples"].items()}
    known["uses"] = tuple(map(_use, known["uses"]))
    known["guids"] = tuple(known.get("guids", ()))  # files of older versions have none, and no calls
    known["communication"] = tuple(known.get("communication", (0.0, 0.0)))
    known["calls"] = tuple(CallUse(*use) for use in known.get("calls", ()))
    # Files of older versions have more on ranks, but not when they are critical.
    ranks = known["ranks"]
    known["ranks"] = tuple(RankUse(r["rank"], r["host"], r.get("works"), r.get("critical", 0)) for r in ranks)
    facts: dict[str, Any] = known["facts"]
    facts |= {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
    known["facts"] = RunFacts(**facts)
    return RunProfile(**known)


def _use(values: Mapping[str, Any]) -> LaunchUse:
    lengths = values.get("lengths")
    made = {"launch": _launch(values["launch"]), "lengths": CallLengths(*lengths) if lengths else None}
    return LaunchUse(**{**values, **made})


def _launch(values: Sequence[Any]) -> KernelLaunch:
    kind, symbol, name, category, path, grid, code, operator, *more = values  # older versions have no moves
    shape = None if grid is None else tuple(grid)
    return KernelLaunch(
        kind, symbol, name, category, path, shape, CodeFacts(*code), operator, *(each and Moved(*each) for each in more)
    )


def accepted(baseline: Baseline, runs: Iterable[RunProfile], record: Mapping[str, Any]) -> Baseline:
    """Return a baseline of other runs, with a record of the reason for accepting them."""
    return Baseline(tuple(runs), (*baseline.accepted, record))
