"""Copies that make the host wait, on the critical rank alone or on others alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocpd.advice.rules.memory import COPY_BLOCKING
from tests.advice.made import JOB, found

WAITING = {"call": "hipMemcpyAsync", "name": "MEMORY_COPY_HOST_TO_DEVICE", "size": "1 MiB", "waiting_copies": 9}
FOUR = replace(JOB, ranks=(0, 1, 2, 3), times=dict.fromkeys(range(4), 10_000_000))


@pytest.mark.parametrize(
    ("waited_ms", "where"),
    [
        ([2, 0, 0, 0], "the memory of the host is not pinned"),
        ([2, 2, 2, 0], "; it is so on 3 of 4 ranks: 0-2"),
        ([2, 1, 2, 3], "; it is so on all 4 ranks"),
    ],
)
def test_it_says_on_which_ranks_it_is_so(waited_ms: list[int], where: str) -> None:
    rows = [{**WAITING, "rank": rank, "waited_ns": time * 1_000_000} for rank, time in enumerate(waited_ms)]
    (finding,) = found(COPY_BLOCKING, {"copy-calls": rows}, FOUR)
    assert finding.text.startswith("rank 0 waits 20 % of the time in hipMemcpyAsync ")
    assert finding.text.endswith(where)


def test_of_many_ranks_the_first_ones_are_said() -> None:
    rows = [{**WAITING, "rank": rank, "waited_ns": 2_000_000 * (rank % 2 == 0)} for rank in range(100)]
    job = replace(JOB, ranks=tuple(range(100)), times=dict.fromkeys(range(100), 10_000_000))
    (finding,) = found(COPY_BLOCKING, {"copy-calls": rows}, job)
    assert finding.text.endswith("; it is so on 50 of 100 ranks: 0,2,4,6,8,10,12,14 …")
