"""Rules on the recording itself: what it lacks, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rocpd.advice.case import HIP, Case, some
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.facts.recorders import Recordable, TraceProfiler
from rocpd.facts.regions import launches_kernel
from rocpd.summary.findings import Confidence, Finding, Verdict

_PREFIX = "trace."
_ENDING = "let each process end by itself: what a killed one still held is lost"
_DO: Mapping[str, tuple[Recordable | None, str]] = {
    "ranks": (
        None,
        "open the files of all ranks together, as a folder. Of a rank that wrote none look at how it ended, and "
        "whether the launcher starts the profiler for each rank",
    ),
    "kernel-trace": (Recordable.KERNELS, ""),
    "HIP-trace": (Recordable.CALLS, ""),
    "lost-events": (Recordable.LESS, "`rocpd record` without `--drop` lets the program wait rather than lose events"),
    "graphs": (
        None,
        "run it once with graphs off (PyTorch: without CUDA graphs, `torch.compile` without "
        'mode="reduce-overhead") to see the kernels, or record with a newer version of the profiler',
    ),
    "links": (
        Recordable.CALLS,
        "newer versions of profilers write one correlation id for each call and what it launches",
    ),
    "dispatches": (Recordable.LESS, _ENDING),
    "launches": (
        None,
        "what was launched before the recording started has no call: record from earlier on. Else record fewer kinds "
        f"of events at a time, and {_ENDING}",
    ),
    "order": (None, "do not trust delays between launch and start on these ranks; record with a newer profiler"),
    "communicators": (Recordable.COLLECTIVES, "record from the start of the program: communicators are made there"),
    "steps": (
        None,
        "`rocpd hang JOB` says what each rank did last. Look at how those ended that stop first, and record all ranks "
        "from and to the same step. Ranks are compared in the steps that all have",
    ),
    "times": (None, "`rocpd info JOB --only problems --skip-bad` names damaged files; record these ranks again"),
    "clocks": (
        None,
        "do not compare times of hosts whose clocks can't be aligned. What was under way on a host when its clock was "
        "set looks as much longer there. Let the clocks of the hosts run freely while it is recorded: no step of ntpd "
        "or chronyd, no suspend",
    ),
}
"""Check -> the kind of events to record, for which the profiler has options, and what else to do."""


def _trace_action(check: str, recorder: TraceProfiler) -> str:
    recordable, besides = _DO[check]
    how = recorder.how.get(recordable, "") if recordable else ""
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in (how, besides) if text)


def _trace_incomplete(case: Case) -> Iterator[Finding]:
    for finding in case.tables["trace"].findings:
        if finding.verdict is Verdict.PROBLEM:
            check = finding.rule.removeprefix(_PREFIX)
            evidence = {"check": check, **finding.evidence}
            action, reference = _trace_action(check, case.job.recorder), case.job.recorder.reference
            yield replace(finding, evidence=evidence, action=action or None, reference=reference)


TRACE_INCOMPLETE = Rule(
    id="trace.incomplete",
    asks="is anything missing that the analyses need?",
    fires="ranks of the job or steps of a rank, kernels, calls, kernels of graphs or events are missing, times are "
    "invalid, or clocks of hosts do not fit together: each check of `rocpd summary trace` that finds a problem. Costs "
    "no time; comes first",
    look=_trace_incomplete,
    needs=(Need("trace", "the inputs hold no events"),),
    shown_by="rocpd summary trace JOB",
)


def _profiler_cost(case: Case) -> Iterator[Finding]:
    every = (row for row in case.of_critical("api") if launches_kernel(row["name"]))
    launches = some([row for row in every if row["median_ns"] is not None], HIP)
    most_ns = case.limits["usual_us"] * 1000 * case.limits["times"]
    slow = [row for row in launches if row["median_ns"] > most_ns and row["calls"] >= case.limits["least_calls"]]
    if not slow:
        return
    less = case.job.recorder.how.get(Recordable.LESS, "record fewer kinds of events at a time")
    most = max(slow, key=lambda row: int(row["calls"]))
    text = (
        f"{most['name']} takes {most['median_ns'] / 1000:.0f} us on rank {case.job.critical}, without a profiler "
        f"usually {case.limits['usual_us']:g} us or less: what the host does looks slower than it is"
    )
    found = case.finding(text, None, {str(row["name"]): row["median_ns"] for row in slow}, Confidence.HINT, most)
    action = f"{less[0].upper()}{less[1:]}; what GPUs do in one run, what calls take in another."
    yield replace(found, action=action, reference=case.job.recorder.reference)


PROFILER_COST = Rule(
    id="profiler.cost",
    asks="does recording itself slow the host down?",
    fires="the median of a call that launches one kernel, of {least_calls} or more on the critical rank, is more than "
    "{times} times {usual_us} us. Says no gain: the job without profiler is faster than it looks",
    look=_profiler_cost,
    needs=(Need("api", HIP),),
    thresholds=(
        Threshold("usual_us", 5.0, "what launching a kernel takes at most without a profiler"),
        Threshold("times", 2.0, "median by that"),
        Threshold("least_calls", 20.0, "calls with which it looks"),
    ),
    shown_by="rocpd summary api JOB --by rank",
)
