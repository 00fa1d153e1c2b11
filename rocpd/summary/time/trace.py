"""Gaps of the recording, which other analyses can't see.

Each check has a verdict: a problem, none, or unknown if the data for the check itself is missing. Never guesses at the
missing events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from rocpd.base import Ints, Row, frozen
from rocpd.facts.columns import Names, distinct
from rocpd.facts.communication.communicators import with_communicator
from rocpd.facts.operations import KERNEL, Ops, split
from rocpd.facts.rank import RankReading
from rocpd.facts.recorders import Recordable, TraceProfiler, recorder_of
from rocpd.facts.regions import RankRegions, launches_graph, launches_kernel, read_recording
from rocpd.facts.units import steps_of_ranks
from rocpd.federate.describe import importers_of
from rocpd.federate.open.identify import world_size
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.categories import domain_of
from rocpd.schema.rules.kernel_categories import Categories, load
from rocpd.schema.rules.launch import launches as launching
from rocpd.schema.rules.launch import launching_regions
from rocpd.summary.findings import Confidence, Finding, Verdict
from rocpd.summary.grouping import Largest, Total
from rocpd.summary.reading import Reading, Tables
from rocpd.summary.result import Field, Summary, table_of

_WORK_OF_CALLS = ("dispatches", "graphs")
_CUT = 2  # steps that a recording may lack at its ends
_LOST = "SELECT value FROM rocpd_metadata WHERE tag = 'recorder_lost_events'"
_PROCESS = "SELECT environment, extdata FROM rocpd_info_process"
_OF_ONE = {"are": "is", "have": "has", "were": "was", "start": "starts"}
_OF_SEVERAL = {verb: verb for verb in _OF_ONE}


@frozen
class _Check:
    """One thing that a recording may lack.

    Args:
        name: name of the check.
        problem: the meaning of a gap, after "N of M "; the verb in braces agrees with N.
        recordable: the data to record.
        unknown: the reason why the check is not possible, if no rank has the data for it.
        tolerated: share that may be missing [%]: the last events of a process are often not written.
        of_one: sentence for a job of one rank in place of "1 of 1 ...".
    """

    name: str
    problem: str
    unknown: str
    recordable: Recordable | None = None
    tolerated: float = 0.0
    of_one: str = ""


_CHECKS = (
    _Check("ranks", "ranks {are} not among the files", "no environment says how many ranks the job has"),
    _Check(
        "kernel trace",
        "ranks whose calls launch kernels {have} none",
        "neither kernels nor calls that launch them are recorded",
        Recordable.KERNELS,
        of_one="calls launch kernels, and there are none",
    ),
    _Check(
        "HIP trace",
        "ranks {have} kernels and no calls of HIP or CUDA, so who launches, and why GPUs idle, is unknown",
        "no kernels are recorded",
        Recordable.CALLS,
        of_one="there are kernels and no calls of HIP or CUDA, so who launches, and why GPUs idle, is unknown",
    ),
    _Check("lost events", "events {were} lost by the recorder", "the recorder does not say how many events it lost"),
    _Check("graphs", "launches of graphs {have} no operations: the time of their kernels is missing", "no graphs"),
    _Check(
        "links",
        "kernels {are} of ranks where no kernel is linked to a call, so the launching call is unknown",
        "no calls of HIP",
    ),
    _Check(
        "dispatches", "calls that launch a kernel {have} none: kernels are missing", "no calls of HIP", tolerated=1.0
    ),
    _Check(
        "launches", "kernels {have} no call that launched them: calls are missing", "no calls of HIP", tolerated=1.0
    ),
    _Check("order", "kernels {start} before the call that launches them: clocks of CPU and GPU disagree", "no calls"),
    _Check(
        "communicators",
        "communication kernels {have} no known communicator, so groups are inferred",
        "no communication kernels",
        Recordable.COLLECTIVES,
    ),
    _Check(
        "clocks",
        "clocks of hosts can't be aligned: their collectives do not fit together, as if a clock had been set",
        "fewer than two hosts have clocks that collectives would align",
    ),
    _Check(
        "steps",
        "steps of ranks {are} missing that other ranks have: their recordings end earlier, or begin later",
        "fewer than two ranks have steps",
    ),
    _Check("times", "operations and regions {have} invalid timestamps: they count as calls, not as time", "no events"),
)

TABLES = {
    "trace": table_of(
        "trace",
        "What the recording lacks, problems first.",
        Field("check", "", "the possible loss"),
        Field("verdict", "", "problem, none; unknown: there is nothing to look at"),
        Field("missing", "", "events or ranks"),
        Field("of", "", "of how many"),
        Field("ranks", "", "how many ranks lack them", True),
        Field("meaning", "", "its meaning"),
    )
}


@frozen
class _Count(Total):
    """Number missing, number in all, ranks concerned; `outside`: events beyond the reach of a merged window."""

    missing: int
    of: int
    ranks: int
    outside: int = 0


def trace(reading: Reading) -> Tables:
    """Return a row for each check; gaps are findings."""
    worlds, counts = yield from reading.summed(partial(_counts_of_rank, categories=load(None)), _CHECKED)
    lacking = _Count(*reading.session.job.lacking(worlds), 0)  # of worlds: run -> number of its ranks, 0: not known
    counts |= {"ranks": lacking, "clocks": _clocks(reading), "steps": _steps(reading)}
    checked = [(check, counts.get(check.name, _Count(0, 0, 0))) for check in _CHECKS]
    recorder = recorder_of(importers_of(reading.session))
    findings = [_finding(check, count, recorder) for check, count in checked]
    if jumps := reading.session.job.alignment.jumps:
        findings = [
            replace(finding, text="; ".join(jumps)) if finding.rule == "trace.clocks" else finding
            for finding in findings
        ]
    problems = [finding for finding in findings if finding.verdict is Verdict.PROBLEM]
    order = (Verdict.PROBLEM, Verdict.UNKNOWN, Verdict.NONE)
    rows = sorted(map(_row, checked, findings), key=lambda row: order.index(Verdict(str(row[1]))))
    nothing = Finding("nothing is missing that can be checked", "trace", Verdict.NONE, Confidence.CERTAIN)
    yield Summary.whole(TABLES["trace"], rows, findings=problems or [nothing])


def _clocks(reading: Reading) -> _Count:
    alignment = reading.session.job.alignment
    clocks = sum(clock.method in ("collectives", "reference", "utc", "start") for clock in alignment.clocks)
    if missing := len(alignment.contradicted or alignment.jumps):
        return _Count(missing, clocks, len(reading.session.ranks))
    return _Count(0, sum(clock.method in ("collectives", "reference") for clock in alignment.clocks), 0)


def _steps(reading: Reading) -> _Count:
    """Count the steps that ranks lack and others of their run have; recordings may cut the outermost two."""
    of_ranks, missing, of, ranks = steps_of_ranks(reading.session, reading.options.step_marker), 0, 0, 0
    for run in reading.session.job.by_run:
        known = [set(of_ranks[rank.number]) for rank in run if of_ranks.get(rank.number)]
        if len(known) < 2:
            continue
        seen = set().union(*known)
        lacking = [len(seen - steps) for steps in known if len(seen - steps) > _CUT]
        missing, of, ranks = missing + sum(lacking), of + len(seen) * len(known), ranks + len(lacking)
    return _Count(missing, of, ranks)


def _finding(check: _Check, count: _Count, recorder: TraceProfiler) -> Finding:
    rule = f"trace.{check.name.replace(' ', '-')}"
    evidence = {"missing": count.missing, "of": count.of, "ranks": count.ranks}
    if count.missing * 100 > count.of * check.tolerated:
        is_alone = check.of_one and count.of == 1
        problem = check.problem.format_map(_OF_ONE if count.missing == 1 else _OF_SEVERAL)
        text = check.of_one if is_alone else f"{count.missing:,} of {count.of:,} {problem}"
        text = recorder.missing(text, check.recordable) if check.recordable else text
        return Finding(text, rule, Verdict.PROBLEM, Confidence.CERTAIN, evidence=evidence)
    if count.outside:
        text = f"{count.outside:,} calls launch what may have run outside of the window that the files hold"
        return Finding(text, rule, Verdict.UNKNOWN, Confidence.CERTAIN, evidence=evidence)
    if not count.of:
        return Finding(check.unknown, rule, Verdict.UNKNOWN, Confidence.CERTAIN, evidence=evidence)
    return Finding("", rule, Verdict.NONE, Confidence.CERTAIN, evidence=evidence)


def _row(checked: tuple[_Check, _Count], finding: Finding) -> Row:
    check, count = checked
    return (check.name, finding.verdict.value, count.missing, count.of, count.ranks, finding.text or None)


_CHECKED = Fact("checked", 4, (Largest, _Count))


def _counts_of_rank(reading: RankReading, categories: Categories) -> tuple[dict[int, Largest], dict[str, _Count]]:
    """Return run -> number of its ranks by the environment of this one (0: not given), and the counts of checks."""
    ops, kernels, regions, names, invalid = read_recording(reading)
    dispatches = ops.take((ops.kind == KERNEL).nonzero()[0])
    has_hip = any(domain_of(names.texts[code]) in ("HIP", "CUDA") for code in distinct(regions.category).tolist())
    called = [names.texts[code] for code in distinct(regions.name).tolist()]
    launches_some = has_hip and any(launches_kernel(text) or launches_graph(text) for text in called)
    talking = split(ops, categories, kernels)["communication"]
    known = with_communicator(reading.reader, ops.row[talking]) if len(talking) else 0
    counts = {
        "kernel trace": _some(not len(dispatches), bool(len(dispatches)) or launches_some),
        "HIP trace": _some(not has_hip, bool(len(dispatches))),
        "times": _some(invalid, invalid + len(ops) + len(regions.start)),
        "communicators": _some(len(talking) - known, len(talking)),
        **_lost(reading.reader, len(ops) + len(regions.start)),
    }
    if has_hip and len(dispatches):
        counts |= _links(ops, dispatches, regions, names)
    if reading.rank.window:
        counts |= {name: _known(counts[name]) for name in _WORK_OF_CALLS if name in counts}
    world = world_size(text for row in reading.reader.rows(_PROCESS) for text in row)
    return {reading.rank.run: Largest(world)}, counts


def _some(missing: int, of: int) -> _Count:
    return _Count(int(missing if of else 0), int(of), int(bool(missing and of)))


def _known(count: _Count) -> _Count:
    """Return the count for a merged window, which has all calls of its work, but not all work of its calls."""
    return _Count(0, count.of - count.missing, 0, count.missing)


def _links(ops: Ops, dispatches: Ops, regions: RankRegions, names: Names) -> dict[str, _Count]:
    """Count calls without operations, and operations without calls."""
    call = launching_regions(regions.stack, regions.start, regions.end, dispatches.stack)
    known = call >= 0
    early = dispatches.start[known] < regions.start[call[known]]
    innermost = launching(regions.stack, regions.start, regions.end)
    has_work = np.isin(regions.stack, ops.stack)

    def calls(of: Callable[[str | None], bool]) -> Ints:
        return np.flatnonzero(innermost & np.array([of(text) for text in names.texts], bool)[regions.name])

    singles, graphs = calls(launches_kernel), calls(launches_graph)
    # If no kernel at all is linked to a call, links are missing, not all kernels and calls.
    linked = known.any() or not len(singles) or has_work[singles].any()
    return {
        "links": _some(0 if linked else len(known), len(known)),
        "launches": _some(int((~known).sum()), len(known) if linked else 0),
        "order": _some(int(early.sum()), int(known.sum())),
        "dispatches": _some(int((~has_work[singles]).sum()), len(singles) if linked else 0),
        "graphs": _some(int((~has_work[graphs]).sum()), len(graphs)),
    }


def _lost(reader: RankReader, events: int) -> dict[str, _Count]:
    words = [str(value) for (value,) in reader.rows(_LOST) if str(value).isdecimal()]
    return {"lost events": _some(int(words[0]), int(words[0]) + events)} if words else {}
