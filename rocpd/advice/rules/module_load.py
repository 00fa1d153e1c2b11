"""Code that is loaded or compiled while steps run."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, window_of
from rocpd.advice.rule import Need, Rule
from rocpd.summary.findings import Confidence, Finding
from rocpd.trace.host_calls import HostCall


def _look(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    rows = case.of_critical("idle-calls")
    if not rows:
        raise CannotLookError(recording.HIP)
    loads = [row for row in rows if row["cause"] == HostCall.MODULE.value]
    if not loads:
        return
    worst = max(loads, key=lambda row: int(row["idle_ns"]))
    time = sum(max(int(row["idle_ns"]), int(row["begun_ns"])) for row in loads)
    share = case.job.share(time)
    yield Finding(
        f"the GPU of rank {case.job.critical} idles {share:.0f} % of the time in steps after warm-up while code is "
        f"loaded, most in {worst['name']}",
        RULE.id,
        confidence=Confidence.CERTAIN,
        rank=case.job.critical,
        agent=worst["agent"],
        window=window_of(worst, "longest_ns"),
        evidence={str(row["name"]): row["idle_ns"] for row in loads},
        shown_by="rocpd summary idle-calls JOB --by rank",
        gain_percent=share,
        action="Load and compile before the first step: run each shape once as warm-up, keep shapes the same (PyTorch: "
        "torch.compile with dynamic=True, padded batches), and keep compiled code between runs (MIOPEN_USER_DB_PATH, "
        "TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR on a local disk).",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_rtc.html",
    )


RULE = Rule(
    id="module.load",
    asks="is code loaded or compiled while steps run?",
    fires="the GPU of the critical rank idles for calls that load or compile code (hipModuleLoad*, hiprtc*, hipLink*, "
    "__hipRegister*) in steps after warm-up. Gains that time",
    look=_look,
    needs=(Need("kernels", recording.KERNELS), Need("idle-calls", recording.KERNELS)),
)
