"""`rocpd record` runs a command under the recorder, `rocpd control` controls it, `rocpd doctor` checks the machine."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

from rocpd.base import UsageError, frozen
from rocpd.base.option import REQUIRED, Heading, plain
from rocpd.base.output import destination
from rocpd.base.texts import visible
from rocpd.cli.diagnostics import note, standard_output
from rocpd.record.command import Settings, has_rocm, run
from rocpd.record.control import Action
from rocpd.record.control import control as ask


@frozen
class Program:
    """The command to record, and the folder of its files."""

    command: tuple[str, ...] = plain(
        (), "Command to record.", "-- COMMAND...", heading=Heading.INPUTS, is_positional=True
    )
    folder: Path | None = plain(
        None,
        "Folder of the files. Else $ROCPD_OUTPUT_PATH or ./rocpd-output-data.",
        "DIR",
        ("-o", "-d", "--output-path"),
        Heading.OUTPUT,
        hidden_flags=("--output-file",),
    )


def record(program: Program, settings: Settings) -> int:
    """Record a command: one database per process.

    It holds the ranges and marks of the command and its GPU work. The exit code is the command's own.

    Examples:
        rocpd record -- python train.py
        mpirun -n 4 rocpd record -o job -- ./app
        rocpd merge job/rank*.db --summary
    """

    if not program.command:
        raise UsageError("no command given", "rocpd record -o job -- python train.py")
    wanted = {"--trace": settings.trace, "--counters": settings.counters}
    wanted |= {name: os.environ.get(name) for name in ("ROCPD_TRACE", "ROCPD_COUNTERS")}
    if (asked := next((name for name, value in wanted.items() if value), None)) and not has_rocm(os.environ):
        note(f"{asked} finds nothing here: there is no rocprofiler-sdk; rocpd doctor says where it was looked for")
    folder = program.folder or destination(None, None, ()).folder
    look = partial(note, f"while it runs: rocpd top {shlex.quote(str(folder))}")
    outcome = run(list(program.command), replace(settings, folder=folder), look)
    for file in outcome.files:
        events = "an unknown number of" if file.events is None else str(file.events)
        lost = f", {file.lost} lost" if file.lost else ""
        note(f"wrote {file.path} ({events} events{lost}, {file.size / 1e6:.1f} MB)")
    if outcome.why_not:
        note(f"{program.command[0]}: not recorded: {outcome.why_not.message}")
        if outcome.why_not.hint:
            note(f"hint: {outcome.why_not.hint}")
    elif not outcome.files and not outcome.was_on:
        note(f"{program.command[0]}: nothing was recorded: recording was off")
        note("hint: rocpd control start PID, roctxProfilerResume or rocpd.record.Recorder turn it on")
    elif not outcome.files:
        note(f"{program.command[0]}: nothing was recorded: no markers, no GPU work")
        note("hint: roctx, NVTX or rocpd.record.range name parts of a program; rocpd doctor says what GPU work needs")
        if any((settings.python_stacks, settings.stacks, settings.stacks_wall, settings.smi, settings.sample_hz)):
            note("hint: what ends before its first sample, or has nothing to be sampled, leaves no file")
        else:
            note("hint: --stacks 100 samples what C++ does, --python-stacks 100 what Python does")
            note("hint: --smi 10 samples GPUs, --sample-hz 10 CPU and memory")
    return outcome.code


_NAME, _STATE = 11, 7  # characters


@frozen
class DoctorOptions:
    """The folder to record into, and the format of the answer."""

    folder: Path | None = plain(
        None,
        "Folder to record into. Else $ROCPD_OUTPUT_PATH or ./rocpd-output-data.",
        "DIR",
        ("-o", "-d"),
        Heading.OUTPUT,
    )
    json: bool = plain(False, "One JSON object: checks with name, state, says and fix.", heading=Heading.OUTPUT)


def doctor(asked: DoctorOptions) -> None:
    """Say what this machine can record, and what to do where it cannot.

    Eleven lines, which name no user and no host: they can go into a bug report.

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


@frozen
class ControlOptions:
    """The request, and the process."""

    action: Action = plain(REQUIRED, "What to do.", "start|stop|flush|status", is_positional=True, is_required=True)
    pid: int = plain(REQUIRED, "Process that is recorded.", "PID", is_positional=True, is_required=True, least=1)


def control(asked: ControlOptions) -> None:
    """Start, stop or flush a recorder, or ask how it is.

    Stop and flush return when everything recorded so far is in the file.

    Examples:
        rocpd record --off -- ./server &
        rocpd control start PID
        rocpd control stop PID
    """

    status = ask(asked.pid, asked.action)
    state = "failed" if status.failed else "recording" if status.recording else "off"
    lost = f", {status.lost} lost" if status.lost else ""
    file = visible(str(status.file or "no file yet"))
    with standard_output() as out:
        out.write(f"{asked.pid}: {state}, {status.written} events{lost}, {file}\n")
