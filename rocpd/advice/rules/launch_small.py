"""Kernels that run shorter than they take to launch."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import Case, short
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.trace.host_calls import HostCall


def _look(case: Case) -> Iterator[Finding]:
    kernels = case.computing("kernels")
    calls = sum(int(row["calls"]) for row in kernels)
    small = [
        row for row in kernels if row["median_ns"] is not None and row["median_ns"] < case.limits["small_us"] * 1000
    ]
    count = sum(int(row["calls"]) for row in small)
    if not calls or count * 100 < calls * case.limits["small_percent"]:
        return
    idle = {row["cause"]: row for row in case.of_critical("idle")}
    case.needs_known_calls()
    share = float(idle[HostCall.LAUNCH.value]["span_percent"]) if HostCall.LAUNCH.value in idle else 0.0
    if share < case.limits["least_idle_percent"]:
        return
    most = sorted(small, key=lambda row: -int(row["calls"]))[:3]
    named = ", ".join(short(row["name"]) for row in most)
    example = case.example()
    yield Finding(
        f"{count * 100 / calls:.0f} % of the kernels of rank {case.job.critical} take less than "
        f"{case.limits['small_us']:g} us, and the GPU idles {share:.0f} % of the time while they are launched: {named}",
        RULE.id,
        confidence=case.sure(Confidence.LIKELY),
        rank=case.job.critical,
        step=example.step,
        window=example.window,
        evidence={"small": count, "kernels": calls, "launching_percent": share},
        shown_by="rocpd summary kernels idle JOB --by rank",
        gain_percent=share,
        action="Make fewer and larger kernels: fuse element-wise ones (torch.compile, hipBLASLt epilogues), use "
        "foreach or fused optimizers, larger batches; or launch them together as a graph (hipGraphLaunch).",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/hipgraph.html",
    )


def _explains(cause: Finding, other: Finding) -> bool:
    return other.rule == "gpu.starved" or (
        other.rule == "comm.exposed" and (cause.gain_percent or 0.0) > (other.gain_percent or 0.0)
    )


RULE = Rule(
    id="launch.small",
    asks="are kernels too short for the host to keep up?",
    fires="{small_percent} % of the computing kernels of the critical rank or more are of kinds whose median is under "
    "{small_us} us, and its GPU idles {least_idle_percent} % of the time or more while its host launches. Gains "
    "that time",
    look=_look,
    needs=(Need("kernels", recording.KERNELS), Need("idle", recording.KERNELS)),
    thresholds=(
        Threshold("small_us", 10.0, "a kernel with a shorter median is small"),
        Threshold("small_percent", 50.0, "share of small kernels"),
        Threshold("least_idle_percent", 5.0, "share of the time in which the GPU idles while its host launches"),
    ),
    explains=_explains,
)
