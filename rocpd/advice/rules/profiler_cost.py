"""Calls that take so long that the profiler itself is in the picture."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.trace.host_calls import launches_kernel
from rocpd.trace.recorders import Recordable


def _look(case: Case) -> Iterator[Finding]:
    launches = [row for row in case.of_critical("api") if launches_kernel(row["name"]) and row["median_ns"] is not None]
    if not launches:
        raise CannotLookError(recording.HIP)
    usual = case.limits["usual_us"] * 1000
    slow = [
        row
        for row in launches
        if row["median_ns"] > usual * case.limits["times"] and row["calls"] >= case.limits["least_calls"]
    ]
    if not slow:
        return
    less = case.job.recorder.how.get(Recordable.LESS, "record fewer kinds of events at a time")
    most = max(slow, key=lambda row: int(row["calls"]))
    yield Finding(
        f"{most['name']} takes {most['median_ns'] / 1000:.0f} us on rank {case.job.critical}, without a profiler "
        f"usually {case.limits['usual_us']:g} us or less: what the host does looks slower than it is",
        RULE.id,
        confidence=Confidence.HINT,
        rank=case.job.critical,
        evidence={str(row["name"]): row["median_ns"] for row in slow},
        shown_by="rocpd summary api JOB --by rank",
        action=f"{less[0].upper()}{less[1:]}; what GPUs do in one run, what calls take in another.",
        reference=case.job.recorder.reference,
    )


RULE = Rule(
    id="profiler.cost",
    asks="does recording itself slow the host down?",
    fires="the median of a call that launches one kernel, of {least_calls} or more on the critical rank, is more than "
    "{times} times {usual_us} us. Says no gain: the job without profiler is faster than it looks",
    look=_look,
    needs=(Need("api", recording.HIP),),
    thresholds=(
        Threshold("usual_us", 5.0, "what launching a kernel takes at most without a profiler"),
        Threshold("times", 2.0, "median by that"),
        Threshold("least_calls", 20.0, "calls with which it looks"),
    ),
)
