"""GPUs that idle because their host does not launch in time."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import Case, Row, window_of
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.summary.idle_causes import HOST
from rocpd.trace.host_calls import HostCall

_CAUSES = (HostCall.LAUNCH.value, HOST)
_LAUNCHING = (
    "Launch less or earlier: capture repeated work in a graph (hipGraphLaunch; PyTorch: "
    'torch.compile(mode="reduce-overhead")), fuse small kernels, and keep the launching thread on cores near its GPU '
    "(`numactl --cpunodebind`)."
)
_WORKING = (
    "Let the host prepare while the GPU works: load input in other processes ahead of time (PyTorch DataLoader: "
    "num_workers, prefetch_factor, pin_memory), and move work between launches to another thread."
)


def _look(case: Case) -> Iterator[Finding]:
    rows = case.of_critical("idle")
    case.needs_known_calls()
    starved = [row for row in rows if row["cause"] in _CAUSES]
    share = sum(float(row["span_percent"]) for row in starved)
    if share < case.limits["least_idle_percent"]:
        return
    cause = str(max(starved, key=lambda row: int(row["idle_ns"]))["cause"])
    longest = _longest(case, cause)
    what = "launches" if cause == HostCall.LAUNCH else "works for itself"
    named = f", most in {longest['name']}" if longest else ""
    text = f"the GPU of rank {case.job.critical} idles {share:.0f} % of the time while its host {what}{named}"
    yield Finding(
        text,
        RULE.id,
        confidence=case.sure(Confidence.CERTAIN),
        rank=case.job.critical,
        agent=longest["agent"] if longest else None,
        window=window_of(longest, "longest_ns") if longest else None,
        evidence={str(row["cause"]): row["idle_ns"] for row in starved},
        shown_by="rocpd summary idle idle-calls JOB --by rank",
        gain_percent=share,
        action=_LAUNCHING if cause == HostCall.LAUNCH else _WORKING,
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/hipgraph.html"
        if cause == HostCall.LAUNCH
        else "https://docs.pytorch.org/docs/stable/data.html",
    )


def _longest(case: Case, cause: str) -> Row | None:
    """Return the call or marker that the GPU idles most for."""
    rows = [row for row in case.of_critical("idle-calls") if row["cause"] == cause]
    return max(rows, key=lambda row: int(row["idle_ns"]), default=None)


def _explains(cause: Finding, other: Finding) -> bool:
    """Whether it explains another finding: there would be work to hide communication behind, were it launched."""
    return other.rule == "comm.exposed" and (cause.gain_percent or 0.0) > (other.gain_percent or 0.0)


RULE = Rule(
    id="gpu.starved",
    asks="does the GPU wait for its host?",
    fires="on the critical rank the GPU idles for {least_idle_percent} % of the time or more while its host launches "
    "or works for itself. Gains that time",
    look=_look,
    needs=(Need("kernels", recording.KERNELS), Need("idle", recording.KERNELS)),
    thresholds=(Threshold("least_idle_percent", 10.0, "share of the time of the critical rank"),),
    explains=_explains,
)
