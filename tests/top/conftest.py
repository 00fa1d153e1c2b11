"""A simulated job of four ranks with a straggler, whose files grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocpd.simulator import JobOptions, simulate

STRAGGLER_STEPS = 14


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished job."""
    folder = tmp_path_factory.mktemp("finished")
    simulate(JobOptions(folder, ranks=4, steps=STRAGGLER_STEPS, seed=7, plant="straggler=35"))
    return folder
