"""Many small copies, each of which costs a call."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.copy_rates import size_label
from rocpd.summary.findings import Confidence, Finding

_SMALL = tuple(size_label(number) for number in (0, 1))  # up to 64 KiB


def _look(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    small = [row for row in case.of_critical("copy-calls") if row["size"] in _SMALL]
    if small and all(row["call"] is None for row in small):
        raise CannotLookError(recording.HIP)
    per_step = sum(float(row["copies_per_step"] or 0.0) for row in small)
    share = case.job.share(sum(int(row["api_ns"]) for row in small))
    if per_step <= case.limits["copies_per_step"] or share < case.limits["least_percent"]:
        return
    most = max(small, key=lambda row: int(row["copies"]))
    example = case.example()
    yield Finding(
        f"rank {case.job.critical} makes {per_step:.0f} copies of up to 64 KiB in each step, most {most['name']}: "
        f"their calls take {share:.0f} % of the time",
        RULE.id,
        confidence=Confidence.LIKELY,
        rank=case.job.critical,
        step=example.step,
        window=example.window,
        evidence={"copies_per_step": per_step, "api_ns": sum(int(row["api_ns"]) for row in small)},
        shown_by="rocpd summary copy-calls JOB --by rank",
        gain_percent=share,
        action="Put small pieces together and copy once, keep on the GPU what does not change, or let kernels read few "
        "bytes from pinned host memory.",
        reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/performance_guidelines.html",
    )


RULE = Rule(
    id="copy.small",
    asks="are there many small copies?",
    fires="the critical rank makes more than {copies_per_step} copies of up to 64 KiB in a step, whose calls take "
    "{least_percent} % of its time or more. Gains that time",
    look=_look,
    needs=(Need("copy-calls", recording.COPIES),),
    thresholds=(
        Threshold("copies_per_step", 100.0, "copies of up to 64 KiB in a step of a rank"),
        Threshold("least_percent", 2.0, "share of the time of the critical rank in their calls"),
    ),
)
