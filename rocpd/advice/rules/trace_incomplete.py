"""What the recording lacks: it limits what all other rules can say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rocpd.advice.case import Case
from rocpd.advice.rule import Need, Rule
from rocpd.summary.findings import Finding, Verdict
from rocpd.trace.recorders import Recordable, TraceProfiler

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
    "times": (None, "`rocpd info JOB --only problems --skip-bad` names damaged files; record these ranks again"),
    "clocks": (
        None,
        "do not compare times of different hosts in this trace. Let the clocks of the hosts run freely while it is "
        "recorded: no step of ntpd or chronyd, no suspend",
    ),
}
"""Check -> what would have to be recorded, which the profiler has options for, and what else to do."""


def _action(check: str, recorder: TraceProfiler) -> str:
    recordable, besides = _DO[check]
    how = recorder.how.get(recordable, "") if recordable else ""
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in (how, besides) if text)


def _look(case: Case) -> Iterator[Finding]:
    for finding in case.tables["trace"].findings:
        if finding.verdict is Verdict.PROBLEM:
            check = finding.rule.removeprefix(_PREFIX)
            evidence = {"check": check, **finding.evidence}
            yield replace(
                finding,
                rule=RULE.id,
                evidence=evidence,
                shown_by="rocpd summary trace JOB",
                action=_action(check, case.job.recorder) or None,
                reference=case.job.recorder.reference,
            )


def _explains(cause: Finding, other: Finding) -> bool:
    """Whether it explains another finding: the time of a step in which a clock jumps is none."""
    return other.rule == "step.outlier" and cause.evidence["check"] == "clocks"


RULE = Rule(
    id="trace.incomplete",
    asks="is anything missing that the analyses need?",
    fires="ranks of the job, kernels, calls, kernels of graphs or events are missing, times are invalid, or clocks of "
    "hosts do not fit together: each check of `rocpd summary trace` that finds a problem. Costs no time; comes first",
    look=_look,
    needs=(Need("trace", "the inputs hold no events"),),
    explains=_explains,
)
