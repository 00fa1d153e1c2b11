"""From a launch to one package: launchers that are here, and what the others set in the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import rocpd
from tests.record.build import Build
from tests.record.cli import cli, cli_command
from tests.record.runs import check_closed, databases

_WORKER = """
import os, subprocess, sys
from rocpd import record
with record.range("step 1"):
    child = os.fork()
    if child == 0:
        with record.range("forked"):
            pass
        os._exit(0)
    os.waitpid(child, 0)
    subprocess.run([sys.executable, "-c", "from rocpd import record\\nwith record.range('started'): pass"], check=True)
"""

_TORCHRUN = """
import os, subprocess, sys
from rocpd import record
# As torchrun starts its workers.
record.mark("launch")
workers = [
    subprocess.Popen([sys.executable, "worker.py"], env=os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": "none",
    })
    for rank in range(2)
]
sys.exit(max(worker.wait() for worker in workers))
"""


def _check(folder: Path, launchers: int = 0) -> None:
    """Each rank left a file of its own process, of its forked child and of the program that it started."""
    files = databases(folder / "job")
    for file in files:
        check_closed(file)
    prefixes = sorted(file.name.split("-")[0] for file in files)
    assert prefixes == sorted(["rank0"] * 3 + ["rank1"] * 3 + [os.uname().nodename] * launchers)
    done = cli(folder, "package", *map(str, files), "-o", "whole.rpdb")
    assert done.returncode == 0, done.stderr
    with rocpd.connect(next(path for path in folder.iterdir() if path.name.startswith("whole"))) as session:
        counts = session.execute("SELECT name, COUNT(*) FROM markers GROUP BY name ORDER BY name").fetchall()
        steps = session.execute("SELECT rank FROM markers WHERE name = 'step 1' ORDER BY rank").fetchall()
    assert [rank for (rank,) in steps] == [0, 1]
    ranges = [tuple(row) for row in counts if row[0] != "launch"]
    assert ranges == [("forked", 2), ("started", 2), ("step 1", 2)]


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    """A folder with a program that forks and starts another program."""
    (tmp_path / "worker.py").write_text(textwrap.dedent(_WORKER))
    return tmp_path


@pytest.mark.parametrize("launch", [["bin/torchrun"], ["-u", "-X", "dev", "-m", "torch.distributed.run"]])
def test_workers_of_torchrun_are_ranks_and_torchrun_is_none(launch: list[str], built: Build, worker: Path) -> None:
    """Below Slurm, too, which counts launchers."""
    for script in ("bin/torchrun", "torch/distributed/run.py"):
        (worker / script).parent.mkdir(parents=True)
        (worker / script).write_text(textwrap.dedent(_TORCHRUN))
    path = f"{worker}:{Path(rocpd.__file__).parents[1]}"
    slurm = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    done = cli(worker, "record", "-o", "job", "--", sys.executable, *launch, PYTHONPATH=path, **slurm)
    assert done.returncode == 0, done.stderr
    _check(worker, launchers=1)


def test_mpirun_with_forks_and_other_programs(built: Build, worker: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing (on Debian: apt-get install openmpi-bin)")
    command = ["mpirun", "-n", "2", "--oversubscribe", "--allow-run-as-root"]
    command += cli_command("record", "-o", "job", "--", sys.executable, "worker.py")
    done = subprocess.run(command, cwd=worker, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _check(worker)
