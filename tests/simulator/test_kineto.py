"""The second recording of a simulated job, as PyTorch's profiler makes it: it says the same of the job as the first."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.communication.verdict import RULE
from tests.soak import sample


@pytest.mark.soak
@pytest.mark.parametrize("layout", sample([{}, {"tp": 2}, {"ep": 2}, {"pp": 2}], 2, 1))
def test_both_recordings_blame_the_rank_that_was_planted(layout: dict[str, int], tmp_path: Path) -> None:
    job, traces = tmp_path / "job", tmp_path / "traces"
    simulate(JobOptions(job, ranks=4, steps=6, seed=2, plant="straggler,profiler-cost", kineto=traces, **layout))  # type: ignore[arg-type]
    blamed = []
    for folder in job, traces:
        with rocpd.connect(folder) as session:
            findings = session.summary("ranks").findings
            groups = {row[1] for row in session.summary("collectives")}
        blamed.append((next(each.rank for each in findings if each.rule == RULE), groups))
    assert blamed[0][0] is not None
    assert blamed[0] == blamed[1]


def test_ranks_that_are_late_together_are_named_where_no_file_names_their_host(tmp_path: Path) -> None:
    job, traces = tmp_path / "job", tmp_path / "traces"
    simulate(JobOptions(job, ranks=6, nodes=3, steps=6, seed=2, plant="late-node", kineto=traces))
    verdicts = []
    for folder in job, traces:
        with rocpd.connect(folder) as session:
            verdicts.append(next(each for each in session.summary("ranks").findings if each.rule == RULE))
    assert "(ranks 4-5) costs" in verdicts[0].text
    assert verdicts[1].text.startswith("ranks 4-5 cost ")
