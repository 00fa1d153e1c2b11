"""Everything but the recorder works on systems that lack what Linux has, and where the package cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocpd.schema.versions import suffix_of
from tests.build import TraceBuilder, guid_of
from tests.costs import ROOT
from tests.federate.writers import HALF_DONE, LIVE_WAL, killed_writer, writer

ELSEWHERE = ROOT / "tests" / "library" / "elsewhere"
"""The folder of a `sitecustomize` that takes away what macOS lacks."""

STRINGS = f"rocpd_string{suffix_of(guid_of(1))}"


def run_elsewhere(folder: Path, program: str) -> str:
    """Run a program as on macOS; return what it writes."""
    path = {**os.environ, "PYTHONPATH": f"{ELSEWHERE}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMANDS = """
import os, sys
from rocpd.cli import run

assert not hasattr(os, "sched_getaffinity") and not os.path.exists("/proc/self")
for words in (
    "simulate -o job --ranks 3 --events-per-rank 100 --seed 1",
    "info job", "summary job -j 2", "index job", "summary kernels job", "summary stragglers job --format json",
    "query select(count(*))from(kernels) job -j 2", "query select(count(*))from(kernels) killed.db",
    "query select(count(*))from(kernels) live.db", "merge job -o merged.db", "trim job --end 50% -d trimmed",
    "convert -f pftrace -d out job -j 2", "convert -f parquet -d tables job", "convert -f json -d out job",
    "report job -o report.html", "diff merged.db job", "advise job", "whatif job", "history add store job",
    "history store runs", "history report store -o history.html", "history export store", "hang job", "top job --once",
    "redact job -d redacted", "import out/out.json -d imported", "questions idle", "counters job",
    "package job -o packed", "doctor", "schema kernels", "cache list",
):
    code = run(words.split())
    assert code == 0, (words, code)
sys.platform = "darwin"  # the recorder of this checkout may be built
assert run(["record", "--", "true"]) == 2
"""


def test_every_command_works_without_what_linux_has_and_writes_nothing_to_the_package(tmp_path: Path) -> None:
    for name in ("killed", "live"):
        TraceBuilder(1).kernel("gemm", 1, 2).write(tmp_path / f"{name}.db")
    killed_writer(tmp_path / "killed.db", HALF_DONE, STRINGS)
    with writer(tmp_path / "live.db", LIVE_WAL, STRINGS):
        run_elsewhere(tmp_path, COMMANDS)


def test_the_guard_of_the_package_works(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the package's folder is written to"):
        run_elsewhere(tmp_path, f"open({os.fspath(ROOT / 'rocpd' / 'new')!r}, 'w')")


LEAVES = """
import sys
from pathlib import Path
from rocpd.base.leftovers import temporary_path
path = temporary_path(Path())
path.write_text("half")
print(path, flush=True)
sys.stdin.read()
"""

SWEEPS = f"""
import subprocess, sys
from pathlib import Path
from rocpd.base.leftovers import sweep
child = subprocess.Popen([sys.executable, "-c", {LEAVES!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
path = Path(child.stdout.readline().strip())
sweep(Path())
assert path.read_text() == "half"
child.communicate("")
sweep(Path())
assert not path.exists()
"""


def test_what_a_live_process_has_not_finished_stays_without_proc(tmp_path: Path) -> None:
    run_elsewhere(tmp_path, SWEEPS)
