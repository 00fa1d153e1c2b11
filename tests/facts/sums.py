"""Laws of the time of agents, as tests of several kinds of jobs ask for them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import rocpd
from rocpd.facts.timeline import PARTS
from tests.summary.cells import cells

IDLE = PARTS[-1]


def times_of(session: rocpd.Session, column: str, condition: str) -> Counter[object]:
    """Return the time of agents by a column of `agent_time` [ns]."""
    sql = f"SELECT {column}, sum(duration) FROM agent_time WHERE NOT taken AND {condition} GROUP BY 1"
    return Counter(dict(session.sql(sql).fetchall()))


def assert_same_sums(session: rocpd.Session, *, everything: bool) -> None:
    """agent_time, budget, idle, gpu-time and overlap have the same sums, whole and by step; of no shared agents."""
    counts = "1" if everything else "counts"
    budget = Counter(dict(cells(session, "budget", "part time_ns", everything=everything)))
    assert times_of(session, "part", counts) == budget
    by_step = cells(session, "budget", "step time_ns", "step", everything=everything)
    expected: Counter[object] = Counter()
    for step, time in by_step:
        expected[step] += time
    assert times_of(session, "step", counts) == expected
    idle = Counter(dict(cells(session, "idle", "cause idle_ns", everything=everything)))
    assert times_of(session, "cause", f"{counts} AND part = '{IDLE}'") == idle
    assert idle.total() == budget[IDLE]
    columns = "busy_ns compute_ns exposed_communication_ns exposed_copy_ns"
    overlap = [sum(column) for column in zip(*cells(session, "overlap", columns, everything=everything), strict=True)]
    assert overlap == [budget.total() - budget[IDLE], *(budget[part] for part in PARTS[:-1])]
    spans = cells(session, "gpu-time", "span_ns busy_ns idle_ns", everything=everything)
    assert [sum(column) for column in zip(*spans, strict=True)] == [budget.total(), overlap[0], budget[IDLE]]


def assert_partition(session: rocpd.Session) -> None:
    """The pieces of each agent touch, and have its time of `gpu-time --all`."""
    rows = session.sql("SELECT rank, agent, start, end FROM agent_time ORDER BY 1, 2, 3").fetchall()
    for (rank, agent, _, end), (next_rank, next_agent, start, _) in pairwise(rows):
        assert (rank, agent) != (next_rank, next_agent) or end == start
    spans: Counter[object] = Counter()
    for rank, agent, start, end in rows:
        spans[rank, agent] += end - start
    by_agent = cells(session, "gpu-time", "rank agent span_ns", everything=True)
    assert spans == {(rank, agent): span for rank, agent, span in by_agent}


def assert_heat(session: rocpd.Session) -> None:
    """The heat map of agents, which has all time of the trace, has the time of their parts; of no shared agents."""
    times = times_of(session, "part", "1")
    rows = cells(
        session, "heat", "slice_ns compute_percent exposed_communication_percent exposed_copies_percent", "agent"
    )
    for at, part in enumerate(PARTS[:-1], 1):
        shown = sum(row[0] * row[at] / 100 for row in rows)
        assert abs(shown - times[part]) <= 1e-9 * shown
