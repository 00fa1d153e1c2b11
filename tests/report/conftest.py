"""One small job with planted facts, and its report, for all tests of reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import rocpd
from rocpd.report.build import build
from rocpd.report.model import Report
from rocpd.simulator import JobOptions, simulate


@pytest.fixture(scope="session")
def options(tmp_path_factory: pytest.TempPathFactory) -> JobOptions:
    return JobOptions(tmp_path_factory.mktemp("reported") / "job", ranks=4, nodes=2, steps=6, seed=83)


@pytest.fixture(scope="session")
def files(options: JobOptions) -> tuple[Path, ...]:
    return simulate(options)


@pytest.fixture(scope="session")
def base_files(options: JobOptions, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """The same job with nothing wrong."""
    return simulate(replace(options, out=tmp_path_factory.mktemp("base") / "before", plant="none"))


@pytest.fixture(scope="session")
def report(files: tuple[Path, ...]) -> Report:
    with rocpd.connect(files) as session:
        return build(session)
