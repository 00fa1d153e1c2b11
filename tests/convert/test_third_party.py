"""The format of the manual, installed like a third party's package, on the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.build import TraceBuilder

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "convert.md"


def test_the_format_of_the_manual_works_when_installed(tmp_path: Path) -> None:
    source = next(
        block for block in re.findall(r"^```python\n(.*?)^```", MANUAL.read_text(), re.M | re.S) if "def write" in block
    )
    entry = next(block for block in re.findall(r"^```toml\n(.*?)^```", MANUAL.read_text(), re.M | re.S))
    assert len(source.splitlines()) <= 32
    name, target = re.search(r'^(\w+) = "(.*)"', entry, re.M).groups()  # type: ignore[union-attr]
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / f"{target.partition(':')[0]}.py").write_text(source)
    package = tmp_path / "lib" / "rocpd_folded-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: rocpd-folded\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[rocpd.formats]\n{name} = {target}\n")
    TraceBuilder().kernel("k", 1000, 9000, region="step").kernel("k", 9000, 10_000, region="step").write(
        tmp_path / "a.db"
    )

    command = [sys.executable, "-m", "rocpd", "convert", "-f", name, "csv", "-d", "o", "a.db"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "lib"), str(MANUAL.parents[1])])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "o" / "out.folded").read_text() == "rank 0;step;k 9\n"
    assert (tmp_path / "o" / "out_kernel_trace.csv").exists()
