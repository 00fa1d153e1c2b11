"""Ranks with more to do: all that have as much are named, and a replay says what one of them alone would gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

import rocpd
from rocpd.advice.rules.balance import RANK_IMBALANCE
from tests.advice.made import JOB, found
from tests.build import TraceBuilder
from tests.conftest import OpenJob


@pytest.mark.parametrize(
    ("last", "text", "rank", "changes"),
    [
        (1.199, "ranks 2-3 have 1.20 times", None, []),
        (0.9, "rank 2 has 1.20 times", 2, ["--without rank:2"]),
    ],
)
def test_it_names_all_ranks_with_as_much(last: float, text: str, rank: int | None, changes: list[str]) -> None:
    """The ranks of a stage with more layers compare with nothing but each other."""
    by_mean = {0: 0.8, 1: 0.8, 2: 1.2, 3: last}
    job = replace(JOB, ranks=tuple(by_mean), shares={each: {"compute": 60.0} for each in by_mean})
    rows = [{"rank": each, "compute_ns": 1e6 * times, "compute_by_mean": times} for each, times in by_mean.items()]
    (finding,) = found(RANK_IMBALANCE, {"ranks": rows}, job)
    assert text in finding.text
    assert finding.rank == rank
    assert finding.gain_percent == pytest.approx(60 * (1 - 1 / 1.2))
    assert [str(change) for change in RANK_IMBALANCE.without(finding)] == changes


def test_what_different_gpus_take_is_not_compared(open_job: OpenJob) -> None:
    """One program on two machines: on the slower GPU its kernels take three times as long."""

    def job(*products: str) -> rocpd.Session:
        ranks = [TraceBuilder(number, host=f"node{number}") for number in range(len(products))]
        for rank, product in zip(ranks, products, strict=True):
            rank.kernel("k", 1000, 2_000_000 * (rank.guid == ranks[1].guid) + 1_000_000)
            for agent in rank.rows["rocpd_info_agent"]:
                agent["product_name"] = product
        return open_job(*ranks)

    assert "rank.imbalance" in {each.rule for each in job("MI300X", "MI300X").advise().findings}
    advice = job("MI308X", "W7800").advise()
    assert "rank.imbalance" not in {each.rule for each in advice.findings}
    reasons = {each.rule: each.text for each in advice.unable}
    assert reasons["rank.imbalance"] == "ranks compute on different GPUs (MI308X, W7800): longer is not more work"
