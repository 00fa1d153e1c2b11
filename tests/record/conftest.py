"""Builds the recorder once for all tests of this folder and gives the programs and libraries that came out."""

from __future__ import annotations

import pytest

from tests.record.build import Build, build


@pytest.fixture(scope="session")
def built() -> Build:
    """The recorder, its libraries and test programs; skipped where there is no compiler."""
    return build()
