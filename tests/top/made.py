"""Glances made by hand."""

from __future__ import annotations

from dataclasses import replace

from rocpd.top.glance import Glance, JobState, RankNow, StepTime

_PARTS = {"compute": 70.0, "exposed communication": 20.0, "exposed copies": 0.0, "idle": 10.0}

RANKS = (
    RankNow(4, "node17", "/job/rank4.db", parts=_PARTS, cost_ns=2e6, cost_percent=20.0, mainly="compute", chance=1e-9),
    RankNow(0, "node3", "/job/rank0.db", JobState.SILENT, 42.0, parts=_PARTS, memory_bytes=2**30),
)
GLANCE = Glance(
    1_000.0,
    JobState.RUNNING,
    "2 ranks on 2 nodes; ./secret-program",
    (*(StepTime(number, 10e6) for number in range(9)), StepTime(9, 20e6)),
    "steps 0 to 9",
    _PARTS,
    RANKS,
    ("rank 4 on node17 costs 2 ms of a step",),
    (("gemm", 10, 1000, 80.0),),
    ("/job/rank7.db: empty",),
    ("hang: rank 3 has not come to ncclAllReduce 7 of tp 2,3", "held up by rank 3: rank 2 on node17"),
)


def glance(**changed: object) -> Glance:
    """Return a glance with some attributes changed."""
    return replace(GLANCE, **changed)  # type: ignore[arg-type]
