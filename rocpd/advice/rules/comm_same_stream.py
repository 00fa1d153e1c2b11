"""Communication in the stream of the computation: one has to wait for the other."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.budget import EXPOSED_COMMUNICATION
from rocpd.summary.findings import Confidence, Finding


def _look(case: Case) -> Iterator[Finding]:
    rows = [row for row in case.of_critical("overlap") if row["communication_ns"]]
    if not rows:
        raise CannotLookError(recording.COMMUNICATION)
    if all(row["same_stream_percent"] is None for row in rows):
        raise CannotLookError("streams are not recorded: newer versions of profilers do")
    exposed = case.job.shares[rows[0]["rank"]].get(EXPOSED_COMMUNICATION, 0.0)
    for row in rows:
        same, hidden = float(row["same_stream_percent"] or 0.0), float(row["hidden_percent"])
        if same < case.limits["same_stream_percent"] or hidden >= case.limits["most_hidden_percent"]:
            continue
        example = case.example()
        yield Finding(
            f"{same:.0f} % of the communication of rank {row['rank']} is in streams that compute, and {hidden:.0f} "
            f"% of it is hidden: exposed communication takes {exposed:.0f} % of the {case.job.unit}",
            RULE.id,
            confidence=case.sure(Confidence.CERTAIN),
            rank=row["rank"],
            agent=row.get("agent"),
            step=example.step,
            window=example.window,
            evidence={"same_stream_percent": same, "hidden_percent": hidden, "exposed_percent": exposed},
            shown_by="rocpd summary overlap JOB --by agent",
            gain_percent=exposed,
            action="Call RCCL with a stream of its own, and let the streams wait for each other by events "
            "(hipStreamWaitEvent). In PyTorch: async_op=True, and wait() only where the result is needed; DDP and "
            "FSDP do so.",
            reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/asynchronous.html",
        )


def _explains(cause: Finding, other: Finding) -> bool:
    return other.rule == "comm.exposed"


RULE = Rule(
    id="comm.same_stream",
    asks="does communication have streams of its own?",
    fires="on the critical rank {same_stream_percent} % of the communication or more is in streams with a tenth of the "
    "compute time or more, and less than {most_hidden_percent} % of it is hidden. Gains all exposed communication",
    look=_look,
    needs=(Need("overlap", recording.KERNELS), Need("budget", recording.KERNELS)),
    thresholds=(
        Threshold("same_stream_percent", 90.0, "share of communication in streams that compute"),
        Threshold("most_hidden_percent", 10.0, "share of communication that computation hides"),
    ),
    explains=_explains,
)
