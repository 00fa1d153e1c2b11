"""Owns `rocpd control`: start, stop and flush the recorder of a running process."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from rocpd.cli import options


class Action(StrEnum):
    """What can be asked of a process."""

    START = "start"
    STOP = "stop"
    FLUSH = "flush"
    STATUS = "status"


def control(
    action: Annotated[Action, typer.Argument(metavar="start|stop|flush|status", help="What to do.")],
    pid: Annotated[int, typer.Argument(metavar="PID", min=1, help="Process that is recorded.")],
    verbose: options.Verbose = False,
) -> None:
    """Switch the recording of a running process, or ask how it is.

    Stop and flush return when everything recorded so far is in the file.

    \b
    rocpd record --off -- ./server &
    rocpd control start PID
    rocpd control stop PID
    """
    from rocpd.record.control import Action as Wanted
    from rocpd.record.control import control as ask

    status = ask(pid, Wanted(action.value))
    state = "failed" if status.failed else "recording" if status.recording else "off"
    lost = f", {status.lost} lost" if status.lost else ""
    sys.stdout.write(f"{pid}: {state}, {status.written} events{lost}, {status.file or 'no file yet'}\n")
