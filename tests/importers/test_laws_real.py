"""Laws of imported jobs: the same bytes each time, the same numbers merged, windows that add up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import rocpd
from tests.conftest import private

INPUTS = ("kineto/mi250_minitoy.json.gz", "nsys/mfu_2gpu_after.sqlite", "rocprof-compute/path_MI200/workload")
IMPORT = "import rocpd, sys; rocpd.import_traces(sys.argv[2:], sys.argv[1])"


def test_importing_again_gives_the_same_bytes_whatever_sets_and_dicts_do(tmp_path: Path) -> None:
    paths = [str(path) for pattern in INPUTS for path in private(pattern, 1)]
    folders = [tmp_path / seed for seed in ("1", "2")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", IMPORT, str(folder), *paths], env={**os.environ, "PYTHONHASHSEED": folder.name}
        )
        for folder in folders
    ]
    assert [process.wait() for process in running] == [0, 0]
    first, second = ({path.name: path.read_bytes() for path in folder.glob("*.db")} for folder in folders)
    assert len(first) == 4
    assert first == second


def test_a_merged_import_answers_as_its_files(tmp_path: Path) -> None:
    with rocpd.connect(private("kineto/hta_sampled*", 2)) as session:
        session.merge(tmp_path / "all.db")
        with rocpd.connect(tmp_path / "all.db") as merged:
            for table in ("kernels", "budget", "operators"):
                assert merged.summary(table).fetchall() == session.summary(table).fetchall(), table


def test_clipped_windows_add_up_to_the_whole() -> None:
    (path,) = private("nsys/mfu_2gpu_before.sqlite", 1)
    with rocpd.connect(path) as session:
        whole = Counter({row[0]: row[2] for row in session.summary("kernels")})
        parts = Counter[str]()
        for start, end in ((None, "40%"), ("40%", None)):
            window = session.within(rocpd.Window(start, end, clip=True))
            parts += Counter({row[0]: row[2] for row in window.summary("kernels")})
    assert parts == whole
