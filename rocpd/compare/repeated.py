"""Finds runs that are there more than once, by the GUIDs of their ranks: they are one observation, not several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocpd.amount import amount
from rocpd.compare.options import STEP
from rocpd.compare.run_profile import RunProfile
from rocpd.federate.federation import OnNote


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
