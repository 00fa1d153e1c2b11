"""What is held of ranks while others are read: answers that add up are one, and clocks meet where ranks compare."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.advice.judge import analysis_function
from rocpd.facts.communication import meetings
from rocpd.simulator.job import simulate
from rocpd.simulator.options import JobOptions
from rocpd.summary import reading
from rocpd.summary.reading import Reading, known_tables
from rocpd.summary.registry import joined_analyses


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("held") / "job"
    simulate(JobOptions(folder, ranks=6, nodes=3, steps=6, seed=5))
    return folder


def concluded(job: Path) -> dict[str, object]:
    """Return rows and findings of what the overview puts together."""
    functions = {name: analysis_function(name) for name in joined_analyses()}
    with rocpd.connect(job, jobs=1) as session:
        asked = Reading(session)
        every = known_tables(asked, functions, dict.fromkeys(functions, asked.options))
        return {
            name: tables if isinstance(tables, str) else [(t.fetchall(), t.findings) for t in tables.values()]
            for name, tables in every
        }


@pytest.mark.parametrize("held", [2, 4])
def test_answers_that_add_up_are_those_of_each_rank(held: int, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = concluded(job)
    monkeypatch.setattr(reading, "_HELD", held)
    assert concluded(job) == expected


def test_clocks_are_aligned_by_what_compares_ranks(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectives are not read once more, and say the same."""
    with rocpd.connect(job) as session:
        expected = session.alignment
    monkeypatch.setattr(meetings, "times_of_meetings", None)
    with rocpd.connect(job, jobs=1) as session:
        list(session.summary("overview"))
        assert session.alignment == expected
    assert {clock.method for clock in expected.clocks} == {"reference", "collectives"}
