"""Without the files of real profilers their tests are skipped, which the summary says in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/real/test_rocprofiler_systems.py",
    "tests/importers/test_rpd_real.py",
    "tests/schema/test_hardware_views.py::test_agents_of_the_real_files",
)


def test_skips_are_one_line(tmp_path: Path) -> None:
    environment = {**os.environ, "ROCPD_TEST_DATA": str(tmp_path)}
    own = f"--basetemp={tmp_path / 'pytest'}"  # else it deletes the folders of earlier runs, for half a minute
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", own, *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    (line,) = re.findall(r"^SKIPPED .*", done.stdout, re.M)
    (skipped,) = re.findall(r"(\d+) skipped", done.stdout)
    assert line.startswith(f"SKIPPED [{skipped}] ")
    assert int(skipped) > 5
    assert line.endswith("files of real profilers, which are not part of the project, are absent")
