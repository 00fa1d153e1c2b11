"""The documentation site, built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    pytest.importorskip("material", reason="the site's packages are not installed: make site")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run([sys.executable, "-m", "docs.site", folder], cwd=ROOT, capture_output=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder
