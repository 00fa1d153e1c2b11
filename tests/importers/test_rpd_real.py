"""Real RPD traces: what a vLLM server and a matrix product left."""

from __future__ import annotations

import rocpd
from tests.conftest import private


def test_regions_are_all_calls() -> None:
    with rocpd.connect(private("rpd/*", 2)) as session:
        counts = session.sql("SELECT hostname, count(*) AS n FROM regions GROUP BY 1 ORDER BY 1").fetchall()
    assert counts == [("matmul_result.rpd", 125), ("mytrace.rpd.gz", 14_736)]
