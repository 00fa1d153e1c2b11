"""Sends commands to the recorder of another process, through the Unix socket that it listens on.

Trusts only this process: others may create the folder first, listen in its place, or answer without end.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import stat
import struct
import time
from enum import StrEnum
from pathlib import Path

from rocpd.base import InputError, RocpdError
from rocpd.base.texts import json_object
from rocpd.record.recorder import Status

_PATIENCE_S = 5.0
_LONGEST = 1 << 16  # bytes of an answer: some numbers and a path
_CREDENTIALS = struct.Struct("3i")  # struct ucred of Linux: process, user, group
_ELSEWHERE = "who listens there is not the recorder of this process; ROCPD_CONTROL_DIR names another folder"
_STARTING_S = 10.0  # a recorder creates its socket, and listens a moment later


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
        InputError: there is no such process, it has no listening recorder, or another process listens in its place.
        RocpdError: the recorder failed.
    """
    owner, path = owner_and_socket(pid)
    _check(pid, owner, path)
    return _status(pid, action, json_object(_ask(pid, owner, path, action)))


def _check(pid: int, owner: int, path: Path) -> None:
    """Refuse everything but a private socket of the process's user, in a folder where no other user could listen.

    Raises:
        InputError: it is refused, or does not exist.
    """
    for place, is_kind, what in (
        (path.parent, stat.S_ISDIR, "folder of its user alone (mode 0700)"),
        (path, stat.S_ISSOCK, "socket of its user alone (mode 0600)"),
    ):
        try:
            facts = place.lstat()
        except OSError as error:
            raise _nobody_listens(pid, error) from error
        if not is_kind(facts.st_mode) or facts.st_uid != owner or facts.st_mode & 0o077:
            raise InputError(f"process {pid}: {place} is not a {what}", _ELSEWHERE)


def _ask(pid: int, owner: int, path: Path, action: Action) -> bytes:
    """Send a command; return the line of the answer.

    Raises:
        InputError: the process does not listen, or does not answer in time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        try:
            deadline = time.monotonic() + _PATIENCE_S
            link.settimeout(_PATIENCE_S)
            link.connect(str(path))
            credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            listener, user, _ = _CREDENTIALS.unpack(credentials)
            if (listener, user) != (pid, owner):
                raise InputError(f"process {pid}: process {listener} of user {user} listens in its place", _ELSEWHERE)
            link.sendall(f"{action}\n".encode())
            return _first_line(link, deadline)
        except ConnectionRefusedError as error:
            with contextlib.suppress(OSError):  # its recorder may end right now, and remove the socket
                if time.time() - path.lstat().st_mtime > _STARTING_S:
                    path.unlink()  # of an earlier process with this number, or of an earlier program in this process
            raise _nobody_listens(pid, error) from error
        except TimeoutError as error:
            hint = "it may be stopped, or still be writing: rocpd control status asks again"
            raise InputError(f"process {pid}: no answer within {_PATIENCE_S:g} s", hint) from error
        except OSError as error:
            raise _nobody_listens(pid, error) from error


def _first_line(link: socket.socket, deadline: float) -> bytes:
    """Return the received bytes up to the end of a line; at most `_LONGEST`.

    Raises:
        TimeoutError: it takes longer than the deadline, a value of time.monotonic() [s].
    """
    answer = b""
    while b"\n" not in answer and len(answer) <= _LONGEST:
        link.settimeout(max(deadline - time.monotonic(), 0.001))
        if not (piece := link.recv(_LONGEST)):
            break
        answer += piece
    return answer.partition(b"\n")[0] if len(answer) <= _LONGEST else b""


def _status(pid: int, action: Action, reply: dict[str, object] | None) -> Status:
    """Return the status in an answer.

    Raises:
        InputError: a part of the answer is missing, or in an unknown form.
        RocpdError: the answer reports that the recorder failed.
    """
    if reply is not None and reply.get("ok") is False:
        raise RocpdError(f"process {pid}: could not {action}", "its stderr says why")
    match reply:
        case {
            "ok": True,
            "recording": bool(recording),
            "failed": bool(failed),
            "written": int(written),
            "lost": int(lost),
            "file": str(file),
        } if not isinstance(written, bool) and not isinstance(lost, bool) and min(written, lost) >= 0:
            return Status(recording, failed, written, lost, Path(file) if file else None)
    raise InputError(f"process {pid}: its recorder gave an unreadable answer", "is it of the same version of rocpd?")


def _nobody_listens(pid: int, error: OSError) -> InputError:
    hint = "it listens from its first marker on, unless ROCPD_CONTROL=0"
    return InputError(f"process {pid}: no recorder listens ({error.strerror or error})", hint)


def owner_and_socket(pid: int) -> tuple[int, Path]:
    """Return the user of a process, and the path of its socket.

    Raises:
        InputError: there is no such process, or it belongs to another user.
    """
    process = Path("/proc") / str(pid)
    try:
        owner = process.stat().st_uid
    except FileNotFoundError as error:
        _clean_after(pid)
        raise InputError(f"process {pid}: there is no such process") from error
    if os.geteuid() not in (0, owner):
        hint = "its own user and root may ask its recorder, nobody else"
        raise InputError(f"process {pid} belongs to {_user(owner)}", hint)
    try:
        return owner, _folder(owner) / f"{_space(process)}-{pid}.sock"
    except OSError as error:
        raise InputError(f"process {pid}: {error.strerror}") from error


def _clean_after(pid: int) -> None:
    """Remove the socket of a process of this user that is gone, such as a killed one."""
    with contextlib.suppress(OSError, InputError):
        path = _folder(os.geteuid()) / f"{_space(Path('/proc/self'))}-{pid}.sock"
        _check(pid, os.geteuid(), path)
        path.unlink()


def _space(process: Path) -> int:
    """Return the number of a process's pid namespace: pids may repeat in containers that share /tmp."""
    return (process / "ns" / "pid").stat().st_ino


def _folder(owner: int) -> Path:
    """Return the folder with the sockets of a user's recorders; they create it with mode 0700."""
    return Path(os.environ.get("ROCPD_CONTROL_DIR") or f"/tmp/rocpd-{owner}")


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"
