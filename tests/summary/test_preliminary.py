"""The verdict from the ranks that were read so far: said once, of some ranks, and the answer stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import rocpd
from rocpd.simulator.job import simulate
from rocpd.simulator.options import JobOptions
from rocpd.summary.findings import Finding
from rocpd.summary.reading import Reading
from rocpd.summary.time import overview


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preliminary") / "job"
    simulate(JobOptions(folder, ranks=4, steps=6, seed=5, plant="straggler=40,exposed-communication"))
    return folder


def told(job: Path) -> tuple[list[tuple[int, list[Finding]]], list[str]]:
    """Return what was said while ranks were read, and the findings of all."""
    heard: list[tuple[int, list[Finding]]] = []

    def hear(done: int, findings: Sequence[Finding]) -> None:
        heard.append((done, list(findings)))

    with rocpd.connect(job, jobs=1) as session:
        reading = Reading(session)
        reading.on_preliminary = hear
        tables = list(overview.overview(reading))
    return heard, [finding.text for table in tables for finding in table.findings]


def test_it_is_said_once_and_changes_nothing(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, answer = told(job)
    assert said == []  # nobody waits
    monkeypatch.setattr(overview, "_PATIENCE_S", 0)
    monkeypatch.setattr(overview, "_LONG_S", 0)
    ((done, findings),), same = told(job)
    assert same == answer
    assert done == 2
    assert {finding.rule for finding in findings} >= {"comm.exposed", "gpu.compute"}


def test_nothing_compares_ranks(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the ranks that are missing yet, nothing is known."""
    monkeypatch.setattr(overview, "_PATIENCE_S", 0)
    monkeypatch.setattr(overview, "_LONG_S", 0)
    ((_, findings),), answer = told(job)
    assert any("a straggler" in text for text in answer)
    assert [finding.text for finding in findings if "straggler" in finding.text or "of 4 ranks" in finding.text] == []
