"""The law of digits: what shipped views compute does not depend on the strategy, nor on how rows lie in files."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rocpd
from rocpd.federate.limits import Limits
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.soak import sized

SUMMARIES = ("kernel_summary", "kernel_summary_region", "memory_copy_summary", "memory_allocation_summary", "busy")
DURATIONS = st.one_of(st.integers(0, 200), st.integers(10**6 - 300, 10**6), st.integers(0, 10**11))


def bits(session: rocpd.Session, view: str, strategy: str) -> list[str]:
    """All rows, with every digit of their numbers."""
    return sorted(map(repr, session.execute(f"SELECT * FROM {view}", strategy=strategy)))


@pytest.mark.parametrize("seed", [5, 71])
def test_strategies_give_the_same_bits(seed: int, tmp_path: Path) -> None:
    files = list(simulate(JobOptions(out=tmp_path, ranks=3, nodes=2, events_per_rank=900, seed=seed)))
    with rocpd.connect(files, limits=Limits(small_bytes=0)) as session:
        for view in SUMMARIES:
            assert bits(session, view, "auto") == bits(session, view, "attached"), view
        assert session.explain("SELECT * FROM kernel_summary").fetchall()[0][1] == "aggregates"


@settings(max_examples=sized(6, 120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(durations=st.lists(st.lists(DURATIONS, max_size=12), min_size=1, max_size=3).filter(any), data=st.data())
def test_deviation_is_exact_in_any_order(
    durations: list[list[int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    every = [duration for of_rank in durations for duration in of_rank]
    shuffled = data.draw(st.permutations(every))
    answers = {_deviation(parts, tmp_path_factory.mktemp("job")) for parts in (durations, [shuffled])}
    assert len(answers) == 1
    (deviation,) = answers
    count = len(every)
    if count < 2:
        assert deviation is None
        return
    variance = Fraction(count * sum(d * d for d in every) - sum(every) ** 2, count * (count - 1))
    assert deviation == pytest.approx(math.sqrt(variance), rel=1e-12)


def _deviation(ranks: list[list[int]], folder: Path) -> float | None:
    files = []
    for number, durations in enumerate(ranks):
        trace = TraceBuilder(number)
        for place, duration in enumerate(durations):
            trace.kernel("gemm", 10 + place, 10 + place + duration)
        files.append(trace.write(folder / f"{number}.db"))
    with rocpd.connect(files) as session:
        deviation: float | None
        ((deviation,),) = session.execute("SELECT std_ns FROM kernel_summary", strategy="attached")
        assert [(deviation,)] == session.execute("SELECT std_ns FROM kernel_summary", strategy="aggregates").fetchall()
    return deviation
