"""Groups in step are told apart by whom each rank waits for; what nothing tells apart is not divided."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.base import Ints
from rocpd.facts.communication.divisions import divide

JITTER_NS = 25_000.0


def collectives(random: np.random.Generator, groups: list[list[int]], noise: float, times: int) -> tuple[Ints, Ints]:
    """Return start and end of collectives: ranks come with noise [ns], and leave after the last of their group."""
    ranks = sum(map(len, groups))
    came = np.arange(times) * 1e6 + noise * random.standard_normal((ranks, times))
    left = random.random((ranks, times)) * JITTER_NS + 20_000 + random.random(times) * 200_000
    for group in groups:
        left[group] += came[group].max(0)
    return came.astype(np.int64), left.astype(np.int64)


@pytest.mark.parametrize(("ranks", "size"), [(4, 2), (6, 3), (8, 2), (8, 4), (16, 4), (16, 2)])
def test_groups_that_end_together_are_divided_by_who_waits_for_whom(ranks: int, size: int) -> None:
    """They end no further apart than members of one do; which ranks are in which group is left to chance."""
    random = np.random.default_rng(ranks * size)
    for _ in range(5):
        order = random.permutation(ranks) if ranks <= 8 else np.arange(ranks)
        groups = sorted(sorted(group) for group in order.reshape(-1, size).tolist())
        start, end = collectives(random, groups, 12_000, 256)
        assert sorted(rows.tolist() for rows in divide(start, end)) == groups
        assert sorted(rows.tolist() for rows in divide(start, end, size)) == groups


@pytest.mark.parametrize("noise", [0, 300, 3_000, 12_000, 100_000])
def test_what_is_divided_is_true_or_nothing(noise: int) -> None:
    """Where ranks come together, nothing shows who waits for whom."""
    random = np.random.default_rng(noise)
    for groups in ([[0, 1, 2, 3]], [[0, 2], [1, 3]], [[0, 1, 2, 3, 4, 5, 6, 7]], [[0, 3, 5, 6], [1, 2, 4, 7]]):
        for times in (12, 40):
            found = [rows.tolist() for rows in divide(*collectives(random, groups, noise, times))]
            assert found in ([], groups)
            if noise == 100_000 and times == 40:
                assert found == groups


def test_what_others_wait_for_elsewhere_is_not_divided() -> None:
    """Each rank meets one of another machine, of which nothing is seen here."""
    random = np.random.default_rng(5)
    for noise in (1_000, 12_000, 100_000):
        start, end = collectives(random, [[rank, 4 + rank] for rank in range(4)], noise, 200)
        assert divide(start[:4], end[:4]) == []


def test_few_ranks_or_collectives_are_not_divided() -> None:
    start, end = collectives(np.random.default_rng(1), [[0, 1], [2, 3]], 50_000, 100)
    assert len(divide(start, end)) == 2
    assert divide(start[:3], end[:3]) == []
    assert divide(start[:, :5], end[:, :5]) == []
