"""Runs `rocpd` as a process without starting Python for it: a process that has imported everything forks one.

A test starts the program that `program` returns where it would start `python -m rocpd`: arguments, folder,
environment, stdin, stdout, stderr and exit code are those of a process, in a shell and on a terminal too. Python code
in the environment variable `BEFORE` runs first. What is about the start of Python, limits of a process or signals
needs `python -m rocpd` itself. `run_code` runs a program of Python so.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "ROCPD_TESTS_RUN_BEFORE"

_PROGRAM = """#!{python} -IS
import _socket, marshal, os, sys
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
request = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(request)
os._exit(server.recv(1)[0])
"""

_NOT_IMPORTED = {
    "rocpd.__main__", "rocpd.summary.__main__",
    "rocpd.agents.server", "rocpd.report.writers.pdf", "rocpd.top.screen",  # half of the time, for few commands
}  # fmt: skip


@functools.cache
def program() -> Path:
    """Return the program; the process behind it ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="rocpd-warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(folder / "socket")
    command = [sys.executable, "-m", "tests.warm", address]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.wait)
    atexit.register(process.stdin.close)
    (folder / "used").touch()
    path = folder / "rocpd"
    path.write_text(_PROGRAM.format(python=sys.executable, address=address), encoding="utf-8")
    path.chmod(0o755)
    return path


def run_code(code: str, folder: Path) -> None:
    """Run a program of Python in a folder, as `python -W error -c` does; it must end well."""
    strict = (
        f"import warnings\nwarnings.simplefilter('error')\nexec({code!r}, {{'__name__': '__main__'}})\nraise SystemExit"
    )
    subprocess.run([program()], cwd=folder, env={**os.environ, BEFORE: strict}, check=True)


class _Used:
    """The CPU time that was noted so far [s], and where in the file the next note begins."""

    seconds, at = 0.0, 0


def cpu_seconds() -> float:
    """Return the CPU time of the commands so far [s]; they are no children of this process."""
    if program.cache_info().currsize:
        with program().with_name("used").open("rb") as notes:
            notes.seek(_Used.at)
            new = notes.read()
        _Used.seconds, _Used.at = _Used.seconds + sum(map(float, new.split())), _Used.at + len(new)
    return _Used.seconds


def shell_path() -> str:
    """Return a PATH on which `rocpd` is the program, and `python` and what else is installed are those of the tests."""
    return os.pathsep.join([str(program().parent), str(Path(sys.executable).parent), os.environ["PATH"]])


def sync_nothing() -> None:
    """Let this process wait for no disk, 10 ms for each output: no test can see what a loss of power leaves."""
    setattr(os, "fsync", lambda _: None)  # noqa: B010


def _serve(address: str) -> None:
    """Answer requests until stdin is closed."""
    _import_all()
    sync_nothing()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _answer(connection, Path(address).with_name("used"))
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _import_all() -> None:
    import rocpd

    for module in pkgutil.walk_packages(rocpd.__path__, "rocpd."):
        if module.name not in _NOT_IMPORTED:
            importlib.import_module(module.name)


def _answer(connection: socket.socket, used: Path) -> None:
    """Run one command in a process below this one, note its CPU time, send its exit code, and end."""
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as request:
        words, folder, environment = marshal.loads(request.read(int.from_bytes(length, "big")))
    child = os.fork()
    if child == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        _run(words)
    ended = os.pidfd_open(child)
    if ended not in select.select([connection.fileno(), ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)  # who asked has gone, as after a timeout
    _, status, usage = os.wait4(child, 0)
    with contextlib.suppress(FileNotFoundError):  # who asked may have gone, with its folder
        note = os.open(used, os.O_WRONLY | os.O_APPEND)
        os.write(note, b"%.3f\n" % (usage.ru_utime + usage.ru_stime))
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(BrokenPipeError):
        connection.send(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _output(number: int) -> io.TextIOWrapper:
    """Return stdout or stderr as Python opens them."""
    is_unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    binary = open(number, "wb", 0 if is_unbuffered else -1, closefd=False)  # noqa: SIM115
    by_line = number == 2 or os.isatty(number)
    return io.TextIOWrapper(binary, encoding="utf-8", line_buffering=by_line, write_through=is_unbuffered)


def _run(words: list[str]) -> None:
    """Run `rocpd` as the only thing that this process does, and end."""
    from rocpd.__main__ import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["rocpd", *words]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _output(1), _output(2)
    code: object = 0
    try:
        exec(os.environ.pop(BEFORE, ""), {})
        main()
    except SystemExit as end:
        code = end.code or 0
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _serve(sys.argv[1])
    os._exit(0)  # libraries that were never used report what they leak
