"""The command: what it prints, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from rocpd.base import Exit
from rocpd.view.server import ViewServer
from tests.conftest import Cli


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_when_asked_to(job: Path, number: signal.Signals) -> None:
    environment = {**os.environ, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}
    command = [sys.executable, "-m", "rocpd", "view", str(job), "--jobs", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    assert process.stdout
    address = process.stdout.readline().strip()
    with urllib.request.urlopen(f"{address}line") as response:
        assert response.status == 200  # so that a process has the job open
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == (Exit.GOOD if number == signal.SIGINT else 128 + number)
    assert f"ssh -L {address.split(':')[2].split('/')[0]}:127.0.0.1:" in said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_what_cannot_be_shown_is_said_before_a_browser_opens(cli: Cli, tmp_path: Path, server: ViewServer) -> None:
    assert cli("view", tmp_path).code == Exit.INPUT
    said = cli("view", *server.job.inputs, "--port", str(server.port))
    assert (said.code, f"port {server.port}" in said.err) == (Exit.USAGE, True)
    said = cli("view", *server.job.inputs, "--perfetto-ui", tmp_path)
    assert (said.code, "perfetto-ui.zip" in said.err) == (Exit.INPUT, True)
    assert said.out == ""
