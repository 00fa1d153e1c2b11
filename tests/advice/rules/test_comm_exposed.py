"""Exposed transfers, which nobody can tell from waiting where filters leave ranks out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocpd.advice.case import CannotLookError
from rocpd.advice.rules.communication import COMM_EXPOSED
from tests.advice.made import JOB, found

SHARES = {rank: {"compute": 70.0, "exposed communication": 30.0} for rank in (0, 1)}
ROWS = {"communication": [{"rank": rank, "class": "collective", "kernels": 4} for rank in (0, 1)]}


def test_it_is_not_judged_where_partners_are_left_out() -> None:
    job = replace(JOB, shares=SHARES)
    (finding,) = found(COMM_EXPOSED, ROWS, job)
    assert finding.text == "exposed transfers between ranks take up to 30 % of the step on every rank"
    with pytest.raises(CannotLookError, match="partners are left out by --rank or --host"):
        found(COMM_EXPOSED, ROWS, replace(job, left_out=14))
