"""Exposed transfers, which nobody can tell from waiting where filters leave ranks out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rocpd.advice.case import CannotLookError
from rocpd.advice.rules.communication import COMM_EXPOSED
from rocpd.summary.findings import Finding
from rocpd.summary.result import Summary
from tests.advice.made import JOB, Cells, found, table

SHARES = {rank: {"compute": 70.0, "exposed communication": 30.0} for rank in (0, 1)}
SPLIT = Finding(
    "exposed communication: 40 % of it waits for others, 60 % transfers",
    "comm.split",
    evidence={"waiting_percent": 40.0, "transfer_percent": 60.0, "unmatched_percent": 0.0, "most": ""},
)
ROWS: dict[str, Sequence[Cells] | Summary] = {
    "communication": [{"class": "transfer", "kernels": 4}],
    "exposed-communication": table("exposed-communication", [{"exposed_ns": 6_000_000}], [SPLIT]),
}


def test_it_is_not_judged_where_partners_are_left_out() -> None:
    job = replace(JOB, shares=SHARES)
    (finding,) = found(COMM_EXPOSED, ROWS, job)
    said = "exposed communication takes 30 % of the step: 40 % of it waits for others, 60 % transfers"
    assert (finding.text, finding.gain_percent) == (said, 18.0)
    with pytest.raises(CannotLookError, match="partners are left out by --rank or --host"):
        found(COMM_EXPOSED, ROWS, replace(job, left_out=14))
