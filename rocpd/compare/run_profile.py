"""What a comparison knows of one run: its units of time, what they consist of, kernels, ranks and facts.

Small, whatever the size of the trace: a JSON file keeps it as a baseline. Made of the measures of ranks by `profiling`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from rocpd.base.amount import amount
from rocpd.base.errors import InputError
from rocpd.base.frozen import frozen
from rocpd.compare.measure import CodeFacts, KernelLaunch
from rocpd.compare.options import STEP
from rocpd.facts.agent_time import CAUSES
from rocpd.federate.federation import OnNote

COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES = (
    "compute",
    "exposed communication: transfer",
    "exposed communication: waiting",
    "exposed communication: not matched",
    "exposed copies",
)

IDLE = "idle: "
"""In front of the causes of idle time."""

PARTS = (COMPUTE, TRANSFER, WAITING, UNMATCHED, COPIES, *(f"{IDLE}{cause}" for cause in CAUSES))
"""What the time of a unit consists of, in the order in which it is shown."""

STEPS, COLLECTIVES, WINDOW = "step", "interval between collectives", "window"
"""What a unit is: of the window, from the first to the last operation, only the time in which GPUs work counts."""

PLURALS = {STEPS: "steps", COLLECTIVES: "intervals between collectives", WINDOW: "windows"}
"""What several of them are called."""


@frozen
class LaunchUse:
    """What a kind of launch took on the critical rank, in all units; numbers are scaled, see `RunProfile.scale`.

    Args:
        launch: what was launched.
        calls: how often.
        time: sum of durations [ns].
        exposed: time by part [ns].
        median: of a call, as the median of the medians of the units; the mean of the ranks by their calls [ns]; None:
            none starts in the units.
    """

    launch: KernelLaunch
    calls: int
    time: int
    exposed: Mapping[str, int]
    median: float | None


@frozen
class RankUse:
    """What a rank did in all units, on average [ns per unit].

    Args:
        rank: its number in the run.
        host: its host.
        own: its time without waiting for others, and without communication that may be waiting.
        parts: its time by part.
        counted: in how many units it was the critical rank, or counted.
    """

    rank: int
    host: str | None
    own: float
    parts: Mapping[str, float]
    counted: int


@frozen
class RunFacts:
    """What a run was, as far as it matters for whether two compare.

    Args:
        ranks, hosts: how many.
        gpus: product, and compute units, of the GPUs; those that are unknown are left out.
        versions: of the schema.
        recorded: kinds of events.
        clock_mhz: mean of the samples of the clocks of GPUs; None without any.
        environment: settings of libraries that all ranks share.
        commands: of the processes, without numbers of ranks.
    """

    ranks: int = 0
    hosts: int = 0
    gpus: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    clock_mhz: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()


@frozen
class RunProfile:
    """What is known of a run.

    Args:
        name: where it was read from.
        unit: what a unit is.
        numbers: of the units.
        warm_up: how many units before them are warm-up.
        samples: metric -> its value in each unit: `step` has the time of the critical rank [ns].
        scale: calls, times of launches and idle time are so many times as large, so that shares of agents are whole.
        uses: launches, in the order of their first one.
        idle: idle time of the critical rank by part, in all units [ns].
        ranks: its ranks.
        facts: what it was.
        selection: what of it counts, in words; empty: all of it.
        guids: of its ranks with GPU work, in alphabetical order; empty: a baseline of older versions does not know.
    """

    name: str
    unit: str
    numbers: tuple[int, ...]
    warm_up: int
    samples: Mapping[str, tuple[float, ...]]
    scale: int
    uses: tuple[LaunchUse, ...]
    idle: Mapping[str, int]
    ranks: tuple[RankUse, ...]
    facts: RunFacts
    selection: str = ""
    guids: tuple[str, ...] = ()

    @property
    def units(self) -> int:
        """How many units it has."""
        return len(self.numbers)


def without_repeated(runs: Sequence[RunProfile], on_note: OnNote) -> list[RunProfile]:
    """Return each run of a side once; `on_note` is called with a line on each that is left out.

    Runs with a rank in common are one, whatever part of it each holds: the whole, a window, some ranks. Of these the
    one with most ranks counts, then most units, then the first. Runs of baselines that know no GUIDs are all different.
    That rows differ makes no second run, as it makes a second rank elsewhere: what varies from run to run, which only
    several runs show, is the same in both.
    """
    counted: list[RunProfile] = []
    for run in sorted(runs, key=lambda run: (-len(run.guids), -run.units)):
        other = next((other for other in counted if not set(run.guids).isdisjoint(other.guids)), None)
        if other:
            on_note(_left_out(run, other))
        else:
            counted.append(run)
    return [run for run in runs if any(run is each for each in counted)]


def _left_out(run: RunProfile, other: RunProfile) -> str:
    common = len(set(run.guids).intersection(other.guids))
    if common < len(run.guids):
        ranks = amount(len(run.guids), "rank")
        return f"{run.name}: left out, {other.name} has {common} of its {ranks}, and a run counts once"
    where = "there more than once" if run.name == other.name else f"also in {other.name}"
    return f"{run.name}: the run counts once, it is {where}"


def on_both_sides(base: Sequence[RunProfile], new: Sequence[RunProfile]) -> Iterator[str]:
    """Yield the names of runs that both sides have, with the same times: parts of a run can be compared."""
    for run in base:
        for other in new:
            is_same = run.guids and run.guids == other.guids and run.samples[STEP] == other.samples[STEP]
            if is_same:
                yield run.name if run.name == other.name else f"{run.name} (on the other side {other.name})"


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
