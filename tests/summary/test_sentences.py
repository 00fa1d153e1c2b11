"""Every number of a sentence stands in the table that it is of, with the same denominator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from statistics import median

import pytest

import rocpd
from rocpd.facts.rank import By, Options
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.findings import JOB, Finding
from rocpd.summary.reading import run
from rocpd.summary.result import Field, Summary
from rocpd.table.human import readable
from tests.soak import sized

pytestmark = pytest.mark.soak(2)  # of more jobs there

NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)? (?:%|ns|us|ms|s|times))(?!\w)")

OF_RULES = {  # where the numbers of the first screen stand
    JOB: ("steps",),
    "comm.straggler": ("causes",),
    "step.outlier": ("steps",),
    "comm.exposed": ("budget", "overlap", "exposed-communication", "exposed-parts"),
    "comm.overlap": ("budget", "overlap", "exposed-communication", "exposed-parts"),
    "copy.exposed": ("budget",),
    "gpu.compute": ("budget", "kernels"),
    "gpu.idle": ("budget", "idle", "largest-gaps", "gpu-time"),
    "job.startup": ("counted",),
}

LIMITS = {"1.2 times", "1 %", "0.01 %", "10 us"}
"""Thresholds that sentences name."""

JOBS = [
    "straggler,slow-step", "host-stall", "launch-bound,small-kernels", "pageable-copies", "exposed-communication",
    "slow-link", "synchronous-calls", "slow-input", "late-launch", "same-stream", "lost-overlap", "intermittent",
]  # fmt: skip


def shown(field: Field, value: float) -> Iterator[str]:
    """Yield how sentences write a value."""
    if field.unit == "%":
        yield from (f"{value:.0f} %", f"{value:.1f} %", f"{value:.2g} %")
    elif field.unit == "ns":
        yield readable(abs(value), "ns")
    else:
        yield from (f"{value:.2f} times", f"{(value - 1) * 100:.0f} %")


def known(session: rocpd.Session, names: tuple[str, ...], by: By | None = None) -> set[str]:
    """Return cells as sentences write them; also medians of columns, and causes of idle time two by two."""
    texts: set[str] = set()
    for table in (table for name in names for table in run(session, name, Options(by=by))):
        for field, column in columns(table):
            pairs = [sum(two) for two in combinations(column, 2)] if table.name == "idle" else []
            for value in (*column, *pairs, *([median(column)] if column else [])):
                texts.update(shown(field, value))
    return texts


def columns(table: Summary) -> Iterator[tuple[Field, list[float]]]:
    for field, column in zip(table.fields, zip(*table.fetchall(), strict=True), strict=True):
        yield field, [float(value) for value in column if isinstance(value, int | float)]


def missing(finding: Finding, texts: set[str]) -> list[str]:
    """Return the numbers of a sentence that are not in a table."""
    return [number for number in NUMBER.findall(finding.text) if number not in texts | LIMITS]


@pytest.fixture(scope="module", params=JOBS[: sized(4, None)])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    options = JobOptions(tmp_path_factory.mktemp("job"), ranks=4, steps=6, seed=41, plant=request.param)
    with rocpd.connect(simulate(options)) as session:
        yield session


def test_numbers_of_the_first_screen_stand_in_their_tables(job: rocpd.Session) -> None:
    findings = [finding for table in run(job, "overview") for finding in table.findings]
    assert {finding.rule for finding in findings} >= {JOB, "gpu.idle"}
    for finding in findings:
        if finding.rule in OF_RULES:
            by = By.HOST if "overlap" in OF_RULES[finding.rule] else None  # without, it has rows by agent
            texts = known(job, OF_RULES[finding.rule], by) | known(job, ("budget",), By.RANK)
            assert missing(finding, texts) == [], finding.text


OTHER_SUMS = {"copy.blocking", "copy.small"}
"""Rules whose share adds up calls of some sizes."""


def test_numbers_of_advice_stand_in_the_tables_that_it_shows(job: rocpd.Session) -> None:
    advice = job.advise()
    for finding in (*advice.findings, *(each.finding for each in advice.explained)):
        command = re.match(r"rocpd summary ([a-z -]*[a-z]) /\S+(?: --by (\w+))?$", finding.shown_by or "")
        assert command is not None
        texts = known(job, tuple(command[1].split()), By(command[2]) if command[2] else None)
        assert finding.rule in OTHER_SUMS or missing(finding, texts) == [], finding.text
