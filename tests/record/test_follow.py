"""`--follow` on a file that the recorder is writing: each kernel once, those before the end too."""

from __future__ import annotations

import io
import signal
import subprocess
import time
from pathlib import Path

import pytest

import rocpd
from rocpd.cli.summary import follow
from rocpd.facts.rank import Options
from rocpd.summary.kernels.op_trace import logduration
from rocpd.summary.reading import Reading
from tests.record.build import Build
from tests.record.runs import CODE, environment
from tests.waiting import PATIENCE

ROUNDS = 12_000
SLICE = 0.03  # seconds for which the writer runs between two looks


def test_kernels_are_printed_while_they_are_recorded(
    built: Build, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The writer runs a little between looks until some kernels are printed, then to its end."""
    preload = {"LD_PRELOAD": str(built.lib / "librocpd-tool.so"), "ROCPD_TRACE": "kernel", "ROCPD_FLUSH_MS": "200"}
    folder = tmp_path / "out"
    writer = subprocess.Popen(
        [str(built.program("client_probe")), "2", str(ROUNDS)],
        env=environment(folder, **preload, ROCPD_TOOL_WARNED="1"),
    )
    request.addfinalizer(writer.kill)
    out = io.StringIO()
    early: list[int] = []
    reports: list[str] = []

    def wait(_seconds: float) -> None:
        if writer.returncode is not None:
            raise KeyboardInterrupt
        writer.send_signal(signal.SIGCONT)
        if early:
            writer.wait(PATIENCE)
        else:
            time.sleep(SLICE)
            writer.send_signal(signal.SIGSTOP)
            early.extend([out.getvalue().count("\n")] if out.getvalue() else [])

    follow(lambda: rocpd.connect(folder), [str(folder)], Options(), out, reports.append, wait)
    assert writer.returncode == CODE
    with rocpd.connect(folder) as session:
        whole = "".join(logduration(Reading(session)))
    assert sorted(out.getvalue().splitlines()) == sorted(whole.splitlines())
    assert 1 < early[0] < 4 * ROUNDS + 1 == whole.count("\n")
    assert all(text.endswith("; waiting") for text in reports)  # before the first flush, and in the middle of others
