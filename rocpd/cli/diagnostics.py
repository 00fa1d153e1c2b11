"""All text on stderr: progress, notes, errors with their hint; and the exit codes of errors.

stdout belongs to data and nothing here writes to it; a command ends when the reader of its stdout goes away. After a
long command a note mentions `rocpd index`. Progress is one line on the terminal, for work of more than a second. rich
draws bars too, but measured worse: its import takes 130 ms of the work's own time, and each redraw 2.9 ms (this one:
0.02 ms), ten times a second; and it hides the cursor, which stays hidden when the process is killed or suspended.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

import typer
from typer._click.exceptions import NoSuchOption

from rocpd.base import Exit, Progress, RocpdError, UsageError, amount, boundary, bytes_text, leftovers, output
from rocpd.base.stages import Pace
from rocpd.base.texts import VisibleStream, visible

if TYPE_CHECKING:
    from rocpd.session import Session

_PATIENCE_S = 1.0  # no bar for anything quicker
_REDRAW_S = 0.1  # shortest time between redraws
_BEAT_S = 1.0  # longest time between redraws, so that the displayed time goes on


@contextlib.contextmanager
def progress(label: str, unit: str = "rows", size: Callable[[], int] | None = None) -> Iterator[Progress | None]:
    """Yield a callback (done, total) that draws a bar on a terminal after a second; None if stderr is no terminal.

    Args:
        label: name of the work.
        unit: unit of `done` and `total`; empty: they are times.
        size: returns the bytes that `total` stands for; the bar then also shows MB/s.
    """
    if _is_quiet or not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label, unit, size() if size else 0)
    _bars.append(bar)
    try:
        yield bar.update
    finally:
        _bars.remove(bar)
        bar.end()


def clear_bars() -> None:
    """Erase all bars before other text is written to their line; the next step draws them again."""
    for bar in _bars:
        bar.clear()


def without_bars() -> None:
    """Draw no more bars, because another part uses the terminal."""
    global _is_quiet
    clear_bars()
    _is_quiet = True


def job_text(session: Session) -> str:
    """Return the size of the input of a command, such as `16 ranks, 1.2 GB`."""
    return f"{amount(len(session.ranks), 'rank')}, {bytes_text(size_of(session))}"


def size_of(session: Session) -> int:
    """Return the size of all files of a job [bytes]."""
    return sum(path.stat().st_size for path in {rank.opening.path for rank in session.ranks})


class _Bar:
    """One line that is drawn over itself: label, bar, share, speed, time left."""

    def __init__(self, label: str, unit: str, size: int) -> None:
        self._label = visible(label)
        self._size = size
        self._unit = unit
        from rocpd.federate.limits import usable_cores

        self._start = time.monotonic()
        self._pace = Pace(self._start, usable_cores())
        self._next = self._start + _PATIENCE_S
        self._done, self._total = 0, 0
        self._drawn = False
        self._quiet = False  # other text is being written to the terminal, until the next step
        self._lock = threading.Lock()
        self._ended = threading.Event()
        threading.Thread(target=self._beat, name="rocpd-bar", daemon=True).start()

    def update(self, done: int, total: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._done, self._total, self._quiet = done, total, False
            self._pace.update(done, total, now)
            if now >= self._next:
                self._draw()

    def _beat(self) -> None:
        """Draw the bar each second, whether or not a step is done."""
        while not self._ended.wait(_BEAT_S / 2):
            with self._lock:
                is_due = time.monotonic() >= self._next + _BEAT_S - _REDRAW_S
                if is_due and not self._quiet and not self._ended.is_set():
                    self._draw()

    def _draw(self) -> None:
        if _is_quiet:
            return
        self._next = time.monotonic() + _REDRAW_S
        self._drawn = True
        share = min(self._done / self._total, 1.0) if self._total > 0 else 0.0
        tail = self._tail(share)
        width = _columns_of_terminal()
        room = max(10, width - len(self._label) - len(tail) - 2)
        filled = int(room * share)
        sys.stderr.write("\r" + f"{self._label} {'━' * filled}{' ' * (room - filled)}{tail}"[: width - 1])
        sys.stderr.flush()

    def _tail(self, share: float) -> str:
        """Return the text after the bar."""
        now = time.monotonic()
        passed = now - self._start
        rate, rest = self._done / passed, self._pace.left(now)
        left = f"{passed:,.0f} s" if rest is None else f"{rest:,.0f} s left"
        if self._size:
            return f" {share:4.0%}  {self._done:,} {self._unit}  {share * self._size / passed / 1e6:,.0f} MB/s  {left}"
        speed = f"{rate:,.0f} {self._unit}/s  " if self._unit and rate >= 1 else ""
        return f" {share:4.0%}  {speed}{left}"

    def clear(self) -> None:
        with self._lock:
            self._quiet = True
            if self._drawn:
                self._drawn = False
                sys.stderr.write("\r" + " " * (_columns_of_terminal() - 1) + "\r")
                sys.stderr.flush()

    def end(self) -> None:
        self._ended.set()
        self.clear()


_bars: list[_Bar] = []
_is_quiet = False


def _columns_of_terminal() -> int:
    """Columns of stderr's terminal; stdout may be a file, or another terminal."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        import shutil

        return shutil.get_terminal_size().columns


class ReaderGoneError(Exception):
    """The reader of stdout has gone away.

    Attributes:
        code: exit code of the command.
    """

    code: int = Exit.GOOD


@contextlib.contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield stdout for text that people read.

    Raises:
        ReaderGoneError: its reader has gone away.
    """
    try:
        yield VisibleStream(sys.stdout)  # type: ignore[misc] # as a TextIO, as far as anything here writes
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


_AGAIN_S = 0.01
_FEW = 5  # outputs that are named one by one


def _kept() -> str:
    """Return words for the outputs that were finished before a command was interrupted."""
    names = [str(path) for path in output.finished if path.exists()]
    more = [amount(len(names) - _FEW, "more")] if len(names) > _FEW else []
    return f"; finished before, and kept: {', '.join([*names[:_FEW], *more])}" if names else ""


class Ending:
    """The handler of signals that end a command: by an exception, so that temporary outputs are removed on the way out.

    Attributes:
        code: the exit code once a signal came, else 0. A library in which the exception is raised may replace it by
            an exception of its own.
        current: the ending of the command that runs, or ran last.
    """

    current: ClassVar[Ending | None] = None

    def __init__(self) -> None:
        Ending.current = self
        self.code = 0
        self._hook = sys.unraisablehook
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # as under nohup
        self._handle(self)

    def __call__(self, number: int, _frame: object) -> None:
        self.code = 128 + number
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(self.code)

    @contextlib.contextmanager
    def asking(self, end: Callable[[], bool]) -> Iterator[None]:
        """Let a block end itself at a signal, as an event loop must, where an exception would hit any of its callbacks.

        Args:
            end: asks the block to end; called within the handler of a signal. False: it cannot, so raise.
        """

        def ask(number: int, frame: object) -> None:
            self.code = 128 + number
            if not end():
                self(number, frame)

        self._handle(ask)
        try:
            yield
        finally:
            self._handle(self)

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Let `unraisable` handle what cannot be raised, for the duration of a block."""
        sys.unraisablehook = self.unraisable
        try:
            yield
        finally:
            sys.unraisablehook = self._hook

    def finish(self) -> int:
        """Remove partial outputs and return the exit code, reporting Ctrl-C; later signals end the process."""
        self._handle(signal.SIG_IGN)  # Ctrl-C may be pressed twice
        # `python -m` would end by the signal, not with the code: it remembers Ctrl-C in code that is a string, such as
        # that of a new dataclass, until such code runs again.
        exec("")
        leftovers.remove_all()
        code = self.code or 128 + signal.SIGINT
        if code == 128 + signal.SIGINT:
            note(f"interrupted; nothing partial is left{_kept()}")
        self._handle(lambda number, _frame: os._exit(128 + number))
        return code

    def _handle(self, handler: Any) -> None:
        for number in self._numbers:
            signal.signal(number, handler)

    def unraisable(self, lost: sys.UnraisableHookArgs) -> None:
        """Handle an exception that Python cannot raise where it occurred, such as in the end of a generator.

        An exception of a signal is raised again where that is possible. Others are dropped: the command's own error
        reports the cause.
        """
        if self.code and issubclass(lost.exc_type, (KeyboardInterrupt, SystemExit)):
            # A `Thread` waits until it has started: on a busy machine the signal would hit this hook.
            _thread.start_new_thread(self._signal_again, ())
        elif self._hook is not sys.__unraisablehook__:  # set by a test
            self._hook(lost)

    def _signal_again(self) -> None:
        """Send the lost signal again after the hook has returned, unless its block is over."""
        time.sleep(_AGAIN_S)
        if sys.unraisablehook == self.unraisable:
            os.kill(os.getpid(), self.code - 128)


@contextlib.contextmanager
def until_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end only a block, not the command."""
    try:
        yield
    except KeyboardInterrupt:
        if Ending.current:
            Ending.current.code = 0


def asking_to_end(end: Callable[[], bool]) -> contextlib.AbstractContextManager[None]:
    """Let signals ask a block to end, as in `Ending.asking`, if a command runs."""
    return Ending.current.asking(end) if Ending.current else contextlib.nullcontext()


def set_up_streams() -> None:
    """Write UTF-8 in any locale; a kernel name must not stop a command."""
    # A program that was started with a closed stdout or stderr has None in its place.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def is_verbose(words: Sequence[str]) -> bool:
    """Whether a command line asks for tracebacks; words after `--` belong to another program."""
    options = words[1 : words.index("--")] if "--" in words else words[1:]
    return "--verbose" in options or "-v" in options


_pages: list[VisibleStream] = []


@contextlib.contextmanager
def notes_on(page: VisibleStream) -> Iterator[None]:
    """Write notes to a page on stdout for the duration of a block, if stderr is a terminal, too."""
    _pages.append(page)
    try:
        yield
    finally:
        _pages.remove(page)


def note(message: str) -> None:
    """Write one line to stderr, or to the page that is being written on the same terminal.

    Where nobody reads stderr any more the line is dropped; the command goes on, with the same exit code.
    """
    clear_bars()
    out = _pages[-1] if _pages and sys.stderr.isatty() else VisibleStream(sys.stderr)
    try:
        out.write(f"rocpd: {visible(message)}\n")
        out.flush()
    except BrokenPipeError:
        if _pages and sys.stderr.isatty():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def say(text: str) -> None:
    """Write lines to stderr."""
    VisibleStream(sys.stderr).write(text)


def report_failures(code: int, is_verbose: bool, failed: Exit) -> int:
    """Report the parts of an answer that failed; return the exit code, `failed` if the rest succeeded."""
    taken = [*boundary.failures]
    boundary.failures.clear()
    for failure in taken:
        note(f"{failure.what} {failure.reason}")
        if is_verbose:
            say(failure.trace)
    if taken:
        where = "" if is_verbose else "; -v shows where it is"
        note(f"this is a bug in rocpd{where}; what else the answer says stands")
    return failed if taken and code == Exit.GOOD else code


def report_written(path: Path, what: str = "", *, is_archive: bool = False) -> None:
    """Report that a file or folder was written, and its size; an archive has further files under the name of `path`."""
    outputs = (path, path.with_suffix(".def"), path.with_suffix("")) if is_archive else (path,)
    files = (file for output in outputs for file in (output, *output.rglob("*")) if file.is_file())
    note(f"wrote {path} ({what}{bytes_text(sum(file.stat().st_size for file in files))})")


def reporting_errors(command: Callable[[], int], verbose: bool, failed: Exit = Exit.FAILED) -> int:
    """Run a command that signals can end; errors become one line and one hint on stderr. Return the exit code.

    Args:
        command: does the work.
        verbose: whether to show tracebacks.
        failed: the code of failures without a code of their own.
    """
    output.finished.clear()
    boundary.failures.clear()
    ending = Ending()
    with contextlib.nullcontext() if verbose else ending.quietly():
        try:
            return _exit_code(command, verbose, ending, failed)
        except (KeyboardInterrupt, typer.Abort):
            return ending.finish()
        except BaseException:
            if ending.code:
                return ending.finish()
            raise


def _exit_code(command: Callable[[], int], verbose: bool, ending: Ending, failed: Exit) -> int:
    try:
        code = _finished(command)
        if ending.code:  # a library replaced the error of the signal, and its caller took it for an answer
            raise KeyboardInterrupt
        return code
    except ReaderGoneError as gone:
        _leave_stdout()
        return gone.code
    except Exception as error:
        if ending.code or isinstance(error, typer.Abort):
            raise
        if verbose and not isinstance(error, typer.TyperException):
            import traceback

            say(traceback.format_exc())
        code = _write(_as_rocpd_error(error))
        try:
            sys.stdout.flush()
        except OSError:  # a full disk
            _leave_stdout()
        return failed if code == Exit.FAILED else code


def _finished(command: Callable[[], int]) -> int:
    """Run a command, and write what is left of its output; return the exit code."""
    try:
        code = command()
    except typer.Exit as end:
        code = end.exit_code
    with standard_output():
        return code


def _leave_stdout() -> None:
    """Write to stdout no more: Python would complain, with an exit code of its own, when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_rocpd_error(error: Exception) -> RocpdError:
    """Return an error with the line and the hint that users see."""
    if _lacks_memory(error):
        return RocpdError("out of memory", "fewer processes (--jobs), ranks or events (--rank, --start) need less")
    match error:
        case RocpdError():
            return error
        case typer.TyperException():
            return _as_usage_error(error)
        case OSError() if error.errno == errno.EMFILE:
            return RocpdError(f"{error.filename or 'output'}: too many open files", "raise `ulimit -n`")
        case OSError():
            return RocpdError(f"{error.filename or 'output'}: {error.strerror or error}")
    return RocpdError(f"{type(error).__name__}: {error}", "this is a bug in rocpd; -v shows where")


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error is about lack of memory, or caused by one."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or type(error).__name__ == "NoMemError":  # apsw's
        return True
    if isinstance(error, SystemError) and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return True  # C code that does not name the failure
    is_of_a_library = isinstance(error, (ImportError, RuntimeError, OSError))
    words = "failed to map segment", "annot allocate memory", "can't start new thread"
    return (is_of_a_library and any(word in str(error) for word in words)) or _lacks_memory(error.__cause__)


def _write(error: RocpdError) -> int:
    """Write the line and the hint of an error; return its exit code."""
    clear_bars()
    say(f"rocpd: error: {visible(' '.join(error.message.splitlines()))}\n")
    if error.hint:
        say(f"  hint: {visible(error.hint)}\n")
    return error.exit_code


def _as_usage_error(error: typer.TyperException) -> UsageError:
    """Return the error of a wrong command line, with a hint to the command that has a misplaced option."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path if context else 'rocpd'} --help"
    if isinstance(error, NoSuchOption):
        from rocpd.cli.commands import commands_with

        near = list(error.possibilities or ())
        if owners := commands_with(error.option_name):
            hint = f"{error.option_name} is an option of {', '.join(f'rocpd {name}' for name in owners)}"
            hint += f"; this one has {near[0]}" if near else ""
        elif near:
            hint = f"did you mean {' or '.join(near)}?"
        return UsageError(f"No such option: {error.option_name}", hint)
    return UsageError(error.format_message(), hint)


LONG_S = 3.0
"""Time after which an index is worth mentioning."""


@contextlib.contextmanager
def index_hint(lacks_index: Callable[[], bool]) -> Iterator[None]:
    """Mention `rocpd index` if statements took long; of analyses the first one keeps what the next one needs.

    Args:
        lacks_index: whether an index would have made them quick; called only if they took long.
    """
    start = time.monotonic()
    yield
    seconds = time.monotonic() - start
    if seconds > LONG_S and lacks_index():
        note(f"this took {seconds:.0f} s; after `rocpd index` of these files it may take a tenth")
