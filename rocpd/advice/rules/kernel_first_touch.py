"""Kernels whose first run takes far longer than all others: code and data come to the GPU then."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, Row, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.amount import amount
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    rows = [row for row in case.computing("kernel-shapes") if row["calls"] >= case.limits["least_calls"]]
    if not rows:
        raise CannotLookError(f"no kernel runs {case.limits['least_calls']:.0f} times with one grid")
    slow = [row for row in rows if int(row["first_ns"]) >= case.limits["least_times"] * float(row["median_ns"])]
    every = sum(int(row["total_ns"]) for row in case.computing("kernel-shapes"))
    lost = sum(map(_lost, slow))
    if not slow or 100 * lost < case.limits["least_percent"] * every:
        return
    worst = max(slow, key=_lost)
    times = float(worst["first_ns"]) / float(worst["median_ns"])
    name = short(worst["name"])
    yield Finding(
        f"the first runs of {amount(len(slow), 'kernel')} of rank {case.job.critical} take {lost / 1e6:.1f} ms "
        f"longer than later ones, {100 * lost / every:.0f} % of the compute time of the trace; that of {name} "
        f"{times:.0f} times as long",
        RULE.id,
        confidence=Confidence.HINT,
        rank=case.job.critical,
        evidence={name: worst[name] for name in ("name", "first_ns", "median_ns", "calls")},
        shown_by="rocpd summary kernel-shapes JOB --by rank",
        action="It costs once: leave it out of measurements. Where runs are short, touch memory before the kernel does "
        "(hipMemPrefetchAsync, hipMemset; managed memory and HSA_XNACK=1 move pages at the first access), load "
        "code early (HIP_ENABLE_DEFERRED_LOADING=0), and run each kernel once as warm-up.",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/"
        "unified_memory.html",
    )


def _lost(row: Row) -> float:
    return float(row["first_ns"]) - float(row["median_ns"])


RULE = Rule(
    id="kernel.first_touch",
    asks="do first runs of kernels take far longer than later ones?",
    fires="first runs of kernels of the critical rank ({least_calls} runs or more with one grid) that take "
    "{least_times} times the median or longer take {least_percent} % of the compute time of the trace or more. Gains "
    "nothing in a step",
    look=_look,
    needs=(Need("kernel-shapes", recording.KERNELS), Need("budget", recording.KERNELS)),
    thresholds=(
        Threshold("least_calls", 5.0, "runs of a kernel with one grid"),
        Threshold("least_times", 10.0, "first run by the median"),
        Threshold("least_percent", 2.0, "share of the compute time of the trace"),
    ),
)
