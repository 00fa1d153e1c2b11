"""Owns `rocpd doctor`: what this machine can record, and why not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.base.output import destination
from rocpd.base.visible import visible
from rocpd.cli.diagnostics import standard_output

_NAME, _STATE = 11, 7  # characters


@frozen
class DoctorOptions:
    """Where would be recorded, and how the answer looks."""

    folder: Annotated[
        Path | None,
        Option("Folder to record into. Else $ROCPD_OUTPUT_PATH or ./rocpd-output-data.", "DIR", ("-o", "-d"),
               Heading.OUTPUT),
    ] = None  # fmt: skip
    json: Annotated[bool, Option("One JSON object: checks with name, state, says and fix.", heading=Heading.OUTPUT)] = (
        False
    )


def doctor(asked: DoctorOptions) -> None:
    """Say what this machine can record, and what to do where it cannot.

    Ten lines, which name no user and no host: they can go into a bug report.

    Examples:
        rocpd doctor
        srun -N 1 rocpd doctor --json
    """
    from rocpd.record.doctor import examine

    checks = examine(asked.folder or destination(None, None, ()).folder, os.environ)
    if asked.json:
        values = [{"name": c.name, "state": c.state.value, "says": c.says, "fix": c.fix} for c in checks]
        with standard_output() as out:
            out.write(json.dumps({"checks": values}, indent=2) + "\n")
        return
    with standard_output() as out:
        for check in checks:
            fix = f" -> {check.fix}" if check.fix else ""
            out.write(f"{check.state:{_STATE}} {check.name:{_NAME}} {visible(check.says + fix)}\n")
