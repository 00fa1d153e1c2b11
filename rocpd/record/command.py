"""Runs a command under the recorder: its environment, its signals, its exit code, the files it wrote."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from rocpd.base import UsageError, frozen
from rocpd.base.option import declare, plain
from rocpd.record import library

TRACES = (
    "hip", "hsa", "marker", "kernel", "memcpy", "alloc", "scratch", "rccl", "counters", "rocdecode", "rocjpeg", "graph",
    "event", "ompt", "kfd", "other",
)  # fmt: skip
"""Domains that `trace` may name; by default the tool records all but hsa, event, ompt and kfd. `other` stands for every
API without a word here. Words in capitals are rocprofiler-sdk's own names of kinds, such as HIPFILE_API."""

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_NAMES = re.compile(r"[A-Za-z_]\w*(,[A-Za-z_]\w*)*")
_OFF = ("0", "off", "false", "no")
"""Values of a variable that mean no."""
_SHELL_SIGNAL = 128
"""A shell's exit code after a signal is this number plus the number of the signal."""
_HANDLED_S = 1.0  # longest delay of passing on a signal


@frozen
class Settings:
    """Options of `rocpd record`; each field declares its own. Options that are not given come from `ROCPD_…` variables.

    Args:
        trace: domains, such as `hip,kernel`; None: the tool's default.
        counters: hardware counters, or None.
        sample_hz: samples of the process and its machine per second; 0 for none, None: by the environment.
        smi: samples of the node's GPUs per second, through libamd_smi; as `sample_hz`.
        python_stacks: samples of the call stacks of all Python threads per second; as `sample_hz`.
        stacks: samples of the call stacks of C and C++ per second of each thread's CPU time; as `sample_hz`.
        stacks_wall: the same per second, whether threads run or wait.
        stack_threads: threads that `stacks` samples: `all`, `main`, or a regular expression for names of threads.
        flush_ms: the most that a killed process loses [ms]; None: by the environment.
        drop: lose events rather than make the program wait for the writer.
        off: start without recording.
        group: let the group of the files read them.
        keep_env: names of variables whose values are stored although they look like secrets, or `all`.
        best_effort: run the command even if there is no recorder.
        folder: folder of the files.
    """

    trace: str | None = plain(None, f"What to record of the GPU: {','.join(TRACES)}.", "LIST")
    counters: str | None = plain(None, "Hardware counters, as A,B.", "LIST")
    sample_hz: float | None = plain(
        None, "Samples of CPU, memory, disks and network per second.", "HZ", least=0, most=10000
    )
    smi: float | None = plain(None, "Samples of GPU load, memory, power, clocks per second.", "HZ", least=0, most=1000)
    python_stacks: float | None = plain(
        None, "Samples of the call stacks of all Python threads per second.", "HZ", least=0, most=1000
    )
    stacks: float | None = declare(
        None, "Samples of the call stacks of C and C++ per second of CPU time.", "HZ", least=0, most=1000
    )
    stacks_wall: float | None = declare(None, "The same per second: threads that wait, too.", "HZ", least=0, most=1000)
    stack_threads: str | None = declare(
        None, "Which threads: all, main, or a regular expression for their names.", "all|main|REGEX"
    )
    flush_ms: int | None = declare(None, "Most that a killed process may lose [ms]; 1000 without it.", "MS", least=1)
    drop: bool = declare(False, "When a buffer is full, lose events (counted) rather than wait.")
    off: bool = plain(False, "Start with recording off; `rocpd control start PID`.")
    group: bool = declare(False, "Let your group read the files, too (mode 0640, not 0600).")
    keep_env: str | None = declare(
        None, "Variables to store although they look like secrets; `all` of them.", "NAME,..."
    )
    best_effort: bool = plain(False, "Run the command even if it cannot be recorded.")
    folder: Path = Path()


@frozen
class Written:
    """One file of a run.

    Args:
        path: the database.
        events: rows of rocpd_event; None when its process was killed while it wrote.
        lost: events that found no room in a buffer.
        size: size of the file [bytes].
    """

    path: Path
    events: int | None
    lost: int
    size: int


@frozen
class Outcome:
    """The end of a command, and the files of all its processes.

    Args:
        code: exit code.
        files: the written files.
        was_on: whether recording was on from the start.
        why_not: reason why it was not recorded, if so.
    """

    code: int
    files: tuple[Written, ...] = ()
    was_on: bool = True
    why_not: UsageError | None = None


def run(command: Sequence[str], settings: Settings, begins: Callable[[], None] = lambda: None) -> Outcome:
    """Run `command` with the recorder in it and in all processes that it starts.

    Args:
        command: program and arguments.
        settings: the options.
        begins: called before the program runs, if it is recorded.

    Returns:
        its exit code (128 + N after signal N), and the written files.

    Raises:
        UsageError: the libraries are missing or the folder cannot be written, and `best_effort` was not asked for.
    """
    token = os.urandom(8).hex()
    try:
        environment = environment_of(settings, os.environ) | {"ROCPD_RUN": token}
        library.writable(settings.folder)
    except (library.NoRecorderError, library.NoFolderError) as error:
        if not settings.best_effort:
            raise
        return Outcome(_wait(command, os.environ), why_not=error)
    begins()
    code = _wait(command, environment)
    written = filter(None, (_describe(path, token) for path in sorted(settings.folder.glob("*.db"))))
    return Outcome(code, tuple(written), environment.get("ROCPD_START", "") not in _OFF)


def environment_of(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for recording a command."""
    preload = [str(library.find(library.ROCTX, environ))]
    values = dict(environ)
    if has_rocm(environ):
        tool = str(library.find(library.TOOL, environ))
        values["ROCP_TOOL_LIBRARIES"] = ":".join(filter(None, (tool, environ.get("ROCP_TOOL_LIBRARIES"))))
        # Markers come through AMD's roctx, with the kernels they enclose: also those of programs that link the old one.
        roctx = library.find_rocm(library.SDK_ROCTX, environ)
        preload = [tool, str(roctx)] if roctx else [tool]
    if bad := [path for path in preload if " " in path or ":" in path]:
        raise UsageError(f"{bad[0]}: LD_PRELOAD takes no blanks or colons", "move the libraries to another folder")
    values.setdefault("NVTX_INJECTION64_PATH", str(library.find(library.ROCTX, environ)))
    values["LD_PRELOAD"] = ":".join(filter(None, (*preload, environ.get("LD_PRELOAD"))))
    values["ROCPD_OUTPUT_PATH"] = str(settings.folder.absolute())
    if settings.keep_env is not None and not _NAMES.fullmatch(settings.keep_env):
        raise UsageError(f"--keep-env {settings.keep_env}: not names of variables", "as A,B; or all")
    values |= _variables(settings)
    _refuse_two_samplers(settings)
    domains = values.get("ROCPD_TRACE", "").replace(",", " ").split()
    if unknown := [name for name in domains if name not in TRACES and not name.isupper()]:
        asked = "--trace " if settings.trace is not None else "ROCPD_TRACE="
        raise UsageError(f"{asked}{unknown[0]}: unknown domain", f"one or more of {','.join(TRACES)}")
    return values


def _refuse_two_samplers(settings: Settings) -> None:
    """Raise UsageError if a thread's time would be counted twice."""
    if settings.stacks and settings.stacks_wall:
        raise UsageError("--stacks and --stacks-wall: stacks are sampled by CPU time or by wall time", "choose one")
    if settings.python_stacks and (settings.stacks or settings.stacks_wall):
        hint = "--stacks alone shows the frames of Python 3.11 to 3.13 among those of C and C++"
        raise UsageError("--stacks and --python-stacks: both sample what Python does", hint)


_PASSED_ON = (
    "trace", "counters", "sample_hz", "smi", "python_stacks", "stacks", "stacks_wall", "stack_threads", "flush_ms",
    "keep_env",
)  # fmt: skip
"""Settings whose variables are called like them, in capitals after `ROCPD_`."""


def _variables(settings: Settings) -> dict[str, str]:
    """Return the variables for the given options; the others stay as in the environment."""
    given = {f"ROCPD_{name.upper()}": getattr(settings, name) for name in _PASSED_ON} | {
        "ROCPD_OVERFLOW": "drop" if settings.drop else None,
        "ROCPD_START": "0" if settings.off else None,
        "ROCPD_GROUP": "1" if settings.group else None,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def has_rocm(environ: Mapping[str, str]) -> bool:
    """Whether the program would find rocprofiler-sdk; `ROCPD_ROCM=0|1` overrides a wrong guess."""
    if chosen := environ.get("ROCPD_ROCM"):
        return chosen != "0"
    return library.find_rocm(library.SDK, environ) is not None


def _wait(command: Sequence[str], environment: Mapping[str, str]) -> int:
    with _forwarding() as forward_to:
        try:
            child = subprocess.Popen(command, env=environment)
        except FileNotFoundError as error:
            raise UsageError(f"{command[0]}: no such command") from error
        except PermissionError as error:
            raise UsageError(f"{command[0]}: cannot be run: {error.strerror}") from error
        forward_to(child)
        code = None
        while code is None:  # short waits: a signal that comes just before a wait is handled only after it
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = child.wait(_HANDLED_S)
    return code if code >= 0 else _SHELL_SIGNAL - code


@contextlib.contextmanager
def _forwarding() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Yield a function that names the child to pass signals on to; earlier signals are passed on then."""
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        if not children:
            early.append(number)
            return
        # Ctrl-C and Ctrl-\ reach the child from the terminal, as they reached us.
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        with contextlib.suppress(ProcessLookupError):
            children[0].send_signal(number)

    def forward_to(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for number in early:
            child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield forward_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_foreground() -> bool:
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 (no path of the user's)
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _describe(path: Path, token: str) -> Written | None:
    """Return the description of a file; None if another run wrote it."""
    from rocpd.base.sqlite import apsw
    from rocpd.schema.quote import quote_name

    size = path.stat().st_size
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro"
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error:
        return None
    try:
        metadata = dict(connection.execute("SELECT tag, value FROM rocpd_metadata"))
        if metadata.get("recorder_run") != token:
            return None
        event = quote_name("rocpd_event" + str(metadata["uuid"]))
        events = connection.execute(f"SELECT COALESCE(MAX(id), 0) FROM {event}").fetchone()  # noqa: S608 (quoted)
        return Written(path, int(events[0]) if events else 0, int(metadata.get("recorder_lost_events", 0)), size)
    except apsw.Error:
        # Its process was killed: it left a journal, or the file is incomplete.
        return Written(path, None, 0, size) if path.with_name(path.name + "-journal").exists() else None
    finally:
        connection.close()
