"""A simulated job whose files grow."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocpd.simulator import JobOptions, simulate


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of a finished job."""
    folder = tmp_path_factory.mktemp("whole")
    return list(simulate(JobOptions(folder, ranks=2, steps=5, seed=3)))
