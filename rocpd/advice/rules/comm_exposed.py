"""Communication that no computation hides."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.budget import EXPOSED_COMMUNICATION
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    if not case.rows("communication"):
        raise CannotLookError(recording.COMMUNICATION)
    exposed = {rank: parts.get(EXPOSED_COMMUNICATION, 0.0) for rank, parts in case.job.shares.items()}
    # The rank with least exposed communication waits for nobody: what it has is transfer.
    rank = min(exposed, key=lambda each: (exposed[each], each))
    share = max(0.0, exposed[rank] - _waiting_in_turn(case))
    if share < case.limits["least_percent"]:
        return
    waiting = sum(exposed.values()) / len(exposed) - share  # the mean of the ranks
    example = case.example()
    are_absent = len(exposed) == 1 or any(finding.rule == "trace.ranks" for finding in case.tables["trace"].findings)
    what = "transfers between ranks" + (", or waiting for ranks whose files are absent," if are_absent else "")
    of = "step" if case.job.has_steps else "time" if case.job.is_part else "time, start-up included,"
    text = f"{what} that nothing hides take {share:.0f} % of the {of} on every rank"
    yield Finding(
        text,
        RULE.id,
        confidence=Confidence.CERTAIN if case.job.has_steps and not are_absent else Confidence.HINT,
        rank=rank,
        step=example.step,
        window=example.window,
        evidence={"exposed_percent": share, "waiting_percent": waiting},
        shown_by="rocpd summary budget overlap communication JOB --by rank",
        gain_percent=share,
        action="Start exchanges earlier and hide them behind computation: PyTorch DDP with another bucket_cap_mb, FSDP "
        "with backward_prefetch, exchanges on a stream of their own and no synchronisation after each. Or send less: "
        "reduce in bf16, accumulate gradients.",
        reference="https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/rccl-usage-tips.html",
    )


def _waiting_in_turn(case: Case) -> float:
    """Return the share of the time in which ranks wait for each other in turn [%], as the stages of a pipeline do.

    Then the rank that has least exposed communication waits for others, too.
    """
    rows = case.rows("communication")
    if not any(row["class"] == "point-to-point" and row["kernels"] for row in rows):
        return 0.0
    whole = sum(case.job.times.values())
    return sum(row["wait_ns"] or 0 for row in rows) * 100 / whole if whole else 0.0


RULE = Rule(
    id="comm.exposed",
    asks="does computation hide communication?",
    fires="on each rank transfers that nothing hides take {least_percent} % of the step or more (that of the rank that "
    "has least: the others wait besides), less the mean of all waiting where ranks send to each other. Gains that time",
    look=_look,
    needs=(
        Need("budget", recording.KERNELS),
        Need("communication", recording.COMMUNICATION),
        Need("trace", recording.KERNELS),
    ),
    thresholds=(Threshold("least_percent", 10.0, "share of the step on the rank that has least"),),
)
