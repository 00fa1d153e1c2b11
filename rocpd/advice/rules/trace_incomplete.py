"""What the recording lacks: it limits what all other rules can say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice.case import Case
from rocpd.advice.rule import Need, Rule
from rocpd.summary.findings import Finding, Verdict

_PREFIX = "trace."
_LESS = (
    "Record fewer kinds of events at a time (`rocprofv3 --kernel-trace --hip-trace` instead of `--sys-trace`), and let "
    "each process end by itself: what a killed one still held is lost."
)
_DO = {
    "ranks": "Open the files of all ranks together, as a folder. Of a rank that wrote none look at how it ended, and "
    "whether the launcher starts it under the profiler (`mpirun … rocprofv3 … -- APP`).",
    "kernel-trace": "Record these ranks with `rocprofv3 --kernel-trace` or `rocpd record --trace kernel,hip`.",
    "HIP-trace": "Record with `rocprofv3 --hip-trace --kernel-trace` or `rocpd record --trace hip,kernel`.",
    "lost-events": f"{_LESS} `rocpd record` without `--drop` lets the program wait rather than lose events.",
    "graphs": "Run it once with graphs off (PyTorch: without CUDA graphs, `torch.compile` without "
    'mode="reduce-overhead") to see the kernels, or record with a newer rocprofiler-sdk.',
    "links": "Record with a newer version of the profiler, or with `rocprofv3 --hip-trace --kernel-trace` or `rocpd "
    "record`: each call and what it launches have one correlation id there.",
    "dispatches": _LESS,
    "launches": _LESS,
    "order": "Do not trust delays between launch and start on these ranks; record again with a newer rocprofiler-sdk.",
    "communicators": "Record with `rocprofv3 --rccl-trace` or `rocpd record --trace rccl,kernel`, from the start of "
    "the program: communicators are made there.",
    "times": "`rocpd info JOB --only problems --skip-bad` names damaged files; record these ranks again.",
    "clocks": "Do not compare times of different hosts in this trace. Let the clocks of the hosts run freely while it "
    "is recorded: no step of ntpd or chronyd, no suspend.",
}
_REFERENCE = "https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html"


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
                action=_DO[check],
                reference=_REFERENCE,
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
