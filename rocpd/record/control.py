"""Owns commands to the recorder of another process, through the Unix socket that it listens on."""

from __future__ import annotations

import json
import os
import socket
from enum import StrEnum
from pathlib import Path

from rocpd.errors import InputError, RocpdError
from rocpd.record.recorder import Status

_PATIENCE_S = 30.0  # a flush may have to write much


class Action(StrEnum):
    """A command to the recorder of a process."""

    START = "start"
    STOP = "stop"
    FLUSH = "flush"
    STATUS = "status"


def control(pid: int, action: Action) -> Status:
    """Start, stop or flush the recorder of process `pid`, or ask its status.

    Stop and flush return when everything recorded so far is in the file.

    Raises:
        InputError: there is no such process, or it has no recorder that listens.
        RocpdError: the recorder failed.
    """
    reply = _ask(pid, action)
    status = Status(
        recording=bool(reply.get("recording")),
        failed=bool(reply.get("failed")),
        written=int(str(reply.get("written", 0))),
        lost=int(str(reply.get("lost", 0))),
        file=Path(str(reply["file"])) if reply.get("file") else None,
    )
    if not reply.get("ok"):
        raise RocpdError(f"process {pid}: could not {action}", "its stderr says why")
    return status


def _ask(pid: int, action: Action) -> dict[str, object]:
    path = socket_of(pid)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(_PATIENCE_S)
        try:
            link.connect(str(path))
            link.sendall(f"{action}\n".encode())
            with link.makefile("rb") as stream:
                line = stream.readline()
        except OSError as error:
            raise InputError(
                f"process {pid}: no recorder listens ({error.strerror or error})",
                "it listens from its first marker on, unless ROCPD_CONTROL=0",
            ) from error
    try:
        reply = json.loads(line.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"process {pid}: its recorder did not answer") from error
    return dict(reply)


def socket_of(pid: int) -> Path:
    """Return the path of a process's socket.

    Raises:
        InputError: there is no such process, or it belongs to another user.
    """
    process = Path("/proc") / str(pid)
    try:
        owner = process.stat().st_uid
        space = (process / "ns" / "pid").stat().st_ino
    except OSError as error:
        raise InputError(f"process {pid}: {error.strerror}") from error
    folder = os.environ.get("ROCPD_CONTROL_DIR") or f"/tmp/rocpd-{owner}"  # the recorder makes it with mode 0700
    return Path(folder) / f"{space}-{pid}.sock"
