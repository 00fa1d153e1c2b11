"""The ways to ask for a comparison: two sides of runs, or steps or ranks of one run. Opens the jobs that it reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import median
from typing import TypeAlias

from rocpd.base import Progress, UsageError, frozen
from rocpd.compare.baseline import is_baseline, load_baseline
from rocpd.compare.comparison import Comparison, Subject, compare, long_steps
from rocpd.compare.decision import decide_ranks, decide_steps, steps_apart
from rocpd.compare.options import MEMORY, STEP, DiffOptions
from rocpd.compare.run_profile import (
    PLURALS,
    MeasuredRun,
    RunProfile,
    asked_of,
    measured_runs,
    runs_of,
    without_repeated,
)
from rocpd.compare.tables import tables_of
from rocpd.facts.communication.collectives import listed
from rocpd.federate.federation import Federation, Notes, OnNote
from rocpd.federate.select.filters import number_ranges
from rocpd.importers import importer_of
from rocpd.summary.reading import Reading, Tables
from rocpd.table.human import readable

OpenSide: TypeAlias = Callable[[Sequence[str]], AbstractContextManager[Federation]]
"""Opens inputs as one job."""

OTHERS = "others"
"""Stands for all steps, or ranks, other than the compared ones."""

_MOST_LISTED = 8  # steps and ranges of steps
_ALONE = (".rpdb", ".yaml")


def jobs_among(inputs: Sequence[str]) -> int:
    """Return the number of jobs among inputs, by their names: each folder or package, and all files together."""
    alone = [word for word in inputs if Path(word).is_dir() or word.endswith(_ALONE)]
    return len(alone) + bool([word for word in inputs if word not in alone and not is_baseline(word)])


@frozen
class Comparing:
    """The way in which jobs are compared.

    Args:
        options: the options.
        open_side: opens a job.
        progress: shows progress while a job is read: (time that passed, expected time of all) [ms].
        steps: the steps that count, such as `3,5-7`; None: all.
        selection: the part of each job that counts, in words; empty: all of it.
        on_note: called with notes for the user.
    """

    options: DiffOptions
    open_side: OpenSide
    progress: Callable[[], AbstractContextManager[Progress | None]] = nullcontext
    steps: str | None = None
    selection: str = ""
    on_note: OnNote | None = None

    def runs(self, inputs: Sequence[str]) -> list[RunProfile]:
        """Return the runs of a side, each once: those of a baseline, or of jobs.

        Raises:
            InputError: an input can't be read.
            UsageError: it has none of the chosen steps.
            RocpdError: it has nothing to compare.
        """
        profiles: list[RunProfile] = []
        for name, job in self._jobs([word for word in inputs if not is_baseline(word)]):
            for run in self._measured(job, name):
                profile = run.profile() if self.steps is None else self._of_units(run, "--step", self.steps)
                profiles.append(replace(profile, selection=self.selection))
        for word in inputs:
            profiles += load_baseline(Path(word)).runs if is_baseline(word) else ()
        return without_repeated(profiles, Notes(self.on_note).add)

    def _jobs(self, inputs: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield name and inputs of each job: a folder or package is one; rocpd files are one together.

        Traces of other profilers are one together if they name different ranks of a job; else each is one, because most
        name no machine, and nothing else shows which of them ran at the same time.
        """
        files = [word for word in inputs if not (Path(word).is_dir() or word.endswith(_ALONE))]
        foreign = [word for word in files if len(files) > 1 and _is_foreign(Path(word))]
        apart = () if self._are_ranks(foreign) else foreign
        files = [word for word in files if word not in apart]
        yield from ((word, [word]) for word in inputs if word not in files)
        if files:
            yield files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more", files

    def _are_ranks(self, inputs: Sequence[str]) -> bool:
        """Whether inputs are different ranks of a job, by their rank numbers."""
        if not inputs:
            return True
        with self.open_side(inputs) as session:
            numbers = [rank.mpi_rank for rank in session.ranks]
        return None not in numbers and len(set(numbers)) == len(numbers)

    def _measured(self, inputs: Sequence[str], name: str) -> list[MeasuredRun]:
        with self.open_side(inputs) as session, self.progress() as report:
            return measured_runs(session, name, self.options, report)

    def _of_units(self, run: MeasuredRun, option: str, text: str) -> RunProfile:
        what = f"{run.about.unit} of all ranks{' after the warm-up' if run.about.warm_up else ''}"
        return run.of_units(self._there(run, option, text, run.about.numbers, what))

    def _there(self, run: MeasuredRun, option: str, text: str, known: Collection[int], what: str) -> list[int]:
        """Return the numbers in a text that a run has; a note names those that it lacks, unless it lacks all.

        Args:
            run: the run.
            option, text: the option, and its list of numbers.
            known: the numbers that the run has.
            what: noun for the numbered things.
        """
        asked = set(chain.from_iterable(number_ranges(text, option)))
        there = sorted(asked.intersection(known))
        missing = listed(sorted(asked.difference(known)))
        if there and missing and self.on_note:
            self.on_note(f"{run.about.name}: {option}: no {what} is numbered {missing}")
        return there

    def compare_steps(self, inputs: Sequence[str], step: str, against: str) -> Comparison:
        """Compare steps of one run with others of it.

        Raises:
            UsageError: there are no such steps, several runs, or a metric that steps do not have.
        """
        metric = self.options.decides
        if metric.kind == MEMORY:
            raise UsageError(f"--metric {MEMORY}: a run has one peak, its steps have none", "compare whole runs")
        run = self._only(inputs)
        new = self._of_units(run, "--step", step)
        left: list[int] = []
        if against == OTHERS:
            others = [number for number in run.about.numbers if number not in new.numbers]
            left = [*long_steps(run.of_units(others)).times]
            base = run.of_units([number for number in others if number not in left])
        else:
            base = self._of_units(run, "--against", against)
        base = replace(base, name=OTHERS if against == OTHERS else listed(base.numbers))
        new, unit = replace(new, name=listed(new.numbers)), run.about.unit
        places = {number: place for place, number in enumerate(run.about.numbers)}
        pairs = [zip(side.numbers, side.samples[metric.name], strict=True) for side in (base, new)]
        values = [{places[number]: value for number, value in of_side} for of_side in pairs]
        subject = Subject(
            f"{'' if metric.name == STEP else f'{metric.name}, '}{unit} {new.name} against {base.name}",
            f"{base.units} and {new.units} {PLURALS[unit]}{_without(unit, left)}",
            decide_steps(values[0], values[1], self.options),
            _common(unit, base.numbers, new.numbers),
        )
        return compare([base], [new], self.options, subject)

    def compare_ranks(self, inputs: Sequence[str], rank: str | None, host: str | None, against: str) -> Comparison:
        """Compare ranks of one run, or of some hosts, with its other ranks, by their time without communication.

        Raises:
            UsageError: there are no such ranks or hosts, or several runs.
        """
        run = self._only(inputs)
        known, what = [member.number for member in run.members], "rank with GPU work"
        if rank is not None:
            chosen = self._there(run, "--rank", rank, known, what)
        else:
            chosen = _on_hosts(run, (host or "").split(","))
        new = replace(run.of_ranks(chosen), name=listed(chosen))
        others = [number for number in known if number not in chosen]
        against_them = others if against == OTHERS else self._there(run, "--against", against, known, what)
        base = replace(run.of_ranks(against_them), name=OTHERS if against == OTHERS else listed(against_them))
        subject = Subject(
            f"rank{'s' if len(chosen) > 1 else ''} {new.name} against {base.name}, time without communication",
            f"{new.units} {PLURALS[run.about.unit]}",
            decide_ranks(base.samples[STEP], new.samples[STEP], self.options),
            _common("rank", against_them, chosen),
            run.about.unit,
            _apart(base, new, self.options),
        )
        return compare([base], [new], self.options, subject)

    def _only(self, inputs: Sequence[str]) -> MeasuredRun:
        if any(map(is_baseline, inputs)):
            raise UsageError("a file of --save-baseline has no single steps and ranks", "name the job itself")
        runs = self._measured(inputs, " ".join(inputs))
        if len(runs) > 1:
            raise UsageError(f"{len(runs)} separate runs, not one job", "compare them: rocpd diff BASE NEW")
        return runs[0]


def compare_sessions(base: Federation, new: Federation, options: DiffOptions) -> Comparison:
    """Compare two jobs that are open. Errors as `Comparing.runs`, and `metric_of`."""
    return compare(profiles_of(base, options), profiles_of(new, options), options)


def profiles_of(session: Federation, options: DiffOptions) -> list[RunProfile]:
    """Return the profiles of the runs of an open job. Errors as `Comparing.runs`."""
    runs = measured_runs(session, str(session.ranks[0].opening.path), options)
    return without_repeated([run.profile() for run in runs], session.note)


def compared_with(base: Sequence[RunProfile], options: DiffOptions, selection: str = "") -> Callable[[Reading], Tables]:
    """Return the analysis that compares a job with runs of a base: the tables of `rocpd diff`.

    Args:
        base: the runs.
        options: the options.
        selection: the part of the job that counts, in words; empty: all of it.
    """

    def compared(reading: Reading) -> Tables:
        yield (answers := asked_of(reading, options))
        runs = [run.profile() for run in runs_of(answers, "this job", options)]
        new = [replace(run, selection=selection) for run in without_repeated(runs, reading.session.note)]
        yield from tables_of(compare(base, new, options))

    return compared


def _on_hosts(run: MeasuredRun, names: Sequence[str]) -> list[int]:
    """Return the numbers of the ranks on some hosts.

    Raises:
        UsageError: one of the hosts has none.
    """
    known = {member.host or "" for member in run.members}
    for name in names:
        if name not in known:
            raise UsageError(f"--host {name}: no rank with GPU work is on it", f"hosts: {', '.join(sorted(known))}")
    return [member.number for member in run.members if member.host in names]


def _is_foreign(path: Path) -> bool:
    """Whether a file is a trace of another profiler."""
    try:
        return path.is_file() and importer_of(path) is not None
    except OSError:
        return False


def _without(unit: str, long: Sequence[int]) -> str:
    """Return the units that are left out of the others, in words: a mean would follow them, a median hardly."""
    if not long:
        return ""
    one = len(long) == 1
    return f", {unit if one else PLURALS[unit]} {listed(long)} left out as far longer than the others"


def _apart(base: RunProfile, new: RunProfile, options: DiffOptions) -> str:
    """Return the units in which ranks are far apart but alike in others, and by how much, in words; empty: none."""
    if not (apart := steps_apart(base.samples[STEP], new.samples[STEP], options)):
        return ""
    pairs = list(zip(base.samples[STEP], new.samples[STEP], strict=True))
    by = median(after - before for before, after in map(pairs.__getitem__, apart))
    ratios = [after / before for at, (before, after) in enumerate(pairs) if at not in apart and before]
    rest = round((median(ratios) - 1) * 100, 1) + 0.0  # no -0.0
    which = listed([new.numbers[at] for at in apart], _MOST_LISTED).replace(",", ", ")
    how, units = "longer" if by > 0 else "shorter", f"{new.units} {PLURALS[new.unit]}"
    return f"{readable(abs(by), 'ns')} {how} in {len(apart)} of {units}: {which}; in the others {rest:+.1f} %"


def _common(what: str, base: Sequence[int], new: Sequence[int]) -> str:
    """Return the numbers that both sides have, in words; empty: none."""
    common = listed(sorted({*base}.intersection(new)))
    return f"{what} {common}" if common else ""
