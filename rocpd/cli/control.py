"""`rocpd control`: start, stop and flush the recorder of a running process."""

from __future__ import annotations

from typing import Annotated

from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.base.visible import visible
from rocpd.cli.diagnostics import standard_output
from rocpd.record.control import Action


@frozen
class ControlOptions:
    """The request, and the process."""

    action: Annotated[
        Action, Option("What to do.", "start|stop|flush|status", is_positional=True, is_required=True, is_plain=True)
    ]
    pid: Annotated[
        int, Option("Process that is recorded.", "PID", is_positional=True, is_required=True, least=1, is_plain=True)
    ]


def control(asked: ControlOptions) -> None:
    """Start, stop or flush a recorder, or ask how it is.

    Stop and flush return when everything recorded so far is in the file.

    Examples:
        rocpd record --off -- ./server &
        rocpd control start PID
        rocpd control stop PID
    """
    from rocpd.record.control import control as ask

    status = ask(asked.pid, asked.action)
    state = "failed" if status.failed else "recording" if status.recording else "off"
    lost = f", {status.lost} lost" if status.lost else ""
    file = visible(str(status.file or "no file yet"))
    with standard_output() as out:
        out.write(f"{asked.pid}: {state}, {status.written} events{lost}, {file}\n")
