"""Kernels whose time differs from run to run, at the same grid on the same rank."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    rows = case.computing("kernel-shapes")
    least = case.limits["least_calls"]
    kernels = [row for row in rows if row["groups"] and row["calls"] >= least and row["unstable_ns"] is not None]
    if not kernels:
        raise CannotLookError(f"no kernel runs {least:.0f} times with one grid that is recorded")
    every = sum(int(row["total_ns"]) for row in rows)
    compute = case.job.shares.get(case.job.critical or 0, {}).get("compute", 0.0)
    share = sum(int(row["unstable_ns"]) for row in kernels) * 100 / every if every else 0.0
    if share < case.limits["least_percent"]:
        return
    worst = max(kernels, key=lambda row: int(row["unstable_ns"]))
    name = short(worst["name"])
    example = case.example()
    yield Finding(
        f"half of the runs of kernels of rank {case.job.critical} take so much longer than their fast ones that it "
        f"makes {share:.0f} % of the compute time, most in {name}",
        RULE.id,
        confidence=Confidence.HINT,
        rank=case.job.critical,
        step=example.step,
        window=example.window,
        evidence={"name": worst["name"], "unstable_ns": worst["unstable_ns"], "total_ns": worst["total_ns"]},
        shown_by="rocpd summary kernel-shapes variability JOB --by rank",
        gain_percent=share * compute / 100,
        action="If the runs do the same work, find what differs between them: what runs beside it on other streams "
        "(`rocpd summary variability JOB --sequence 1`), the input, or the clock (`amd-smi monitor`; `amd-smi set "
        "--perf-determinism` holds it still).",
        reference="https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",
    )


RULE = Rule(
    id="kernel.unstable",
    asks="do runs of a kernel with one grid take equally long?",
    fires="on the critical rank the time from the 5th percentile of each kernel and grid ({least_calls} runs or "
    "more) to its median, over all runs, is {least_percent} % of the compute time or more. Gains that time",
    look=_look,
    needs=(Need("kernel-shapes", recording.KERNELS), Need("budget", recording.KERNELS)),
    thresholds=(
        Threshold("least_percent", 10.0, "share of the compute time of the critical rank"),
        Threshold("least_calls", 20.0, "runs of a kernel with one grid"),
    ),
)
