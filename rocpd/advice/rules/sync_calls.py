"""Calls that make the host wait for the GPU, which then has nothing to do."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, window_of
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.trace.host_calls import HostCall

_CAUSES = (HostCall.SYNCHRONISE.value, HostCall.COPY.value, HostCall.ALLOCATE.value)


def _look(case: Case) -> Iterator[Finding]:
    rows = case.of_critical("idle-calls")
    if not rows:
        raise CannotLookError(recording.HIP)
    case.needs_known_calls()
    every = [row for row in rows if row["cause"] in _CAUSES]
    # Where copies are not recorded, a GPU that copies seems idle.
    has_copies = "copy-calls" in case.tables
    calls = [row for row in every if has_copies or row["cause"] != HostCall.COPY.value]
    share, suspected = (case.job.share(sum(int(row["begun_ns"]) for row in some)) for some in (calls, every))
    if share < case.limits["least_idle_percent"]:
        if suspected >= case.limits["least_idle_percent"]:
            raise CannotLookError(recording.COPIES)
        return
    worst = max(calls, key=lambda row: int(row["begun_ns"]))
    where = f", {worst['in_marker_percent']:.0f} % of it in {worst['in_marker']}" if worst["in_marker"] else ""
    yield Finding(
        f"the GPU of rank {case.job.critical} idles {share:.0f} % of the time in gaps that begin while its host waits "
        f"for it, most in {worst['name']}{where}",
        RULE.id,
        confidence=case.sure(Confidence.CERTAIN),
        rank=case.job.critical,
        agent=worst["agent"],
        window=window_of(worst, "longest_ns"),
        evidence={str(row["name"]): row["begun_ns"] for row in calls if row["begun_ns"]},
        shown_by="rocpd summary idle-calls JOB --by rank",
        gain_percent=share,
        action="Wait less often: leave out hipDeviceSynchronize between kernels, let streams wait for events "
        "(hipStreamWaitEvent) in place of the host, copy with hipMemcpyAsync, and do not read results back each time "
        "(PyTorch: .item(), .cpu(), print of a tensor). `rocpd summary calls JOB` shows who calls.",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/asynchronous.html",
    )


def _explains(cause: Finding, other: Finding) -> bool:
    """Whether it explains another finding: after each wait the host has to launch anew while the GPU idles."""
    return other.rule == "gpu.starved" and (cause.gain_percent or 0.0) * 2 >= (other.gain_percent or 0.0)


RULE = Rule(
    id="sync.calls",
    asks="does the host wait for the GPU in the midst of the work?",
    fires="on the critical rank gaps that begin while the host synchronises, copies with a blocking call, allocates or "
    "frees take {least_idle_percent} % of the time or more, work of the host aside. Gains these gaps",
    look=_look,
    needs=(Need("kernels", recording.KERNELS), Need("idle-calls", recording.KERNELS)),
    thresholds=(Threshold("least_idle_percent", 5.0, "share of the time of the critical rank"),),
    explains=_explains,
)
