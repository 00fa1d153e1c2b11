"""The command: how it ends, and what it says where it cannot begin."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rocpd.base import Exit
from tests.conftest import Cli

_ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"


def _asked(address: str, sql: str) -> HTTPConnection:
    """Ask a statement, without waiting for the answer."""
    asked = {"name": "query", "arguments": {"sql": sql}}
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked})
    kinds = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    where = urlsplit(address)
    connection = HTTPConnection(where.netloc)
    connection.request("POST", where.path, call, kinds)
    return connection


def _answered(connection: HTTPConnection) -> Any:
    with contextlib.closing(connection):
        return json.load(connection.getresponse())["result"]["structuredContent"]


@pytest.mark.parametrize("is_busy", [False, True])
def test_ctrl_c_ends_the_server_and_what_it_answers(job: Path, is_busy: bool) -> None:
    command = [sys.executable, "-m", "rocpd", "mcp", str(job), "--http"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        waiting = _asked(address, _ENDLESS) if is_busy else None
        assert _answered(_asked(address, "select 41 + 1"))["tables"][0]["rows"] == [[42]]
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate()
    assert process.returncode == Exit.GOOD
    assert said == "rocpd: Ctrl-C ends it\nrocpd: the server has ended\n"
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    if waiting:
        assert "error" in _answered(waiting)


def test_a_port_that_another_program_has(cli: Cli, job: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli("mcp", job, "--http", "--port", str(port))
    assert (said.code, said.out, f"port {port}: " in said.err) == (Exit.USAGE, "", True)
