"""Reports what this machine can record, and reasons for what it cannot. Starts no recording, and changes nothing.

The report can be shown to anybody: it has no host, user or machine id, and no values of foreign variables.
"""

from __future__ import annotations

import ctypes
import grp
import os
import platform
import pwd
import shutil
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from rocpd.base import UsageError, frozen
from rocpd.base.version import __version__
from rocpd.record import library


class State(StrEnum):
    """The outcome of a check."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@frozen
class Check:
    """A part that recording needs, or that helps.

    Args:
        name: name of the part.
        state: whether it is present.
        says: the details.
        fix: the remedy; empty if none is needed.
    """

    name: str
    state: State
    says: str
    fix: str = ""


_OTHERS = ("HSA_TOOLS_LIB", "ROCP_TOOL_LIBRARIES", "NVTX_INJECTION64_PATH", "LD_PRELOAD", "ROCTRACER_DOMAIN")
"""Variables by which profilers enter a program."""
_OTHER_PREFIXES = ("ROCPROFSYS_", "ROCPROF_", "OMNITRACE_", "RPDT_", "SCOREP_", "TAU_")
_SHORT_OF_SPACE = 1 << 30  # bytes
_UNKNOWN_ERROR_US = 16_000_000
"""The maximum error that a kernel reports for a clock that was never set [us]."""
_TIME_ERROR = 5
"""The state of an unsynchronized clock in adjtimex."""
_FAST_CLOCKS = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page")
"""Clock sources that programs can read without a system call."""


def examine(folder: Path, environ: Mapping[str, str]) -> tuple[Check, ...]:
    """Return what this machine can record into `folder`, in eleven checks."""
    recorder, gpu_work = (
        (_rocpd(), _recorder(environ), _stacks()),
        (_sdk(environ), _roctx(environ), _gpus(), _smi(environ)),
    )
    return *recorder, *gpu_work, _kernel(), _clock(), _output(folder), _other_tools(environ)


def _rocpd() -> Check:
    libc = " ".join(platform.libc_ver()) or "an unknown C library"
    words = f"{__version__}, Python {platform.python_version()}, {libc}, {platform.system()} {platform.release()}"
    if sys.platform != "linux":
        return Check("rocpd", State.MISSING, words, "record on Linux; files can be read anywhere")
    return Check("rocpd", State.OK, f"{words}, {platform.machine()}")


def _recorder(environ: Mapping[str, str]) -> Check:
    try:
        folders = {library.find(name, environ).parent for name in (library.RECORDER, library.ROCTX, library.TOOL)}
        library.load()
    except library.NoRecorderError as error:
        return Check("recorder", State.MISSING, error.why, error.fix)
    except UsageError as error:
        return Check("recorder", State.MISSING, error.message, error.hint or "")
    places = ", ".join(sorted(map(_shown, folders)))
    return Check("recorder", State.OK, f"built, for ranges, marks, Python stacks, host samples: {places}")


def _stacks() -> Check:
    """Check how call stacks of C and C++ can be sampled: unwinding needs no library, lines of source need libdw."""
    if platform.machine() != "x86_64":
        return Check("C++ stacks", State.MISSING, "--stacks works on x86-64 only", "--python-stacks works here")
    if not Path("/proc/self/syscall").exists():
        return Check(
            "C++ stacks", State.LIMITED, "/proc hides where threads wait", "mount /proc; --stacks works without"
        )
    try:
        ctypes.CDLL("libdw.so.1")
    except OSError:
        fix = "install libdw1 (elfutils-libs) for lines of source and inlined functions"
        return Check("C++ stacks", State.LIMITED, "functions without their lines: there is no libdw", fix)
    return Check("C++ stacks", State.OK, "functions, lines and what was inlined, where debugging information is")


def _sdk(environ: Mapping[str, str]) -> Check:
    if environ.get("ROCPD_ROCM") == "0":
        return Check("GPU work", State.MISSING, "ROCPD_ROCM=0 turns it off", "unset ROCPD_ROCM")
    if (path := library.find_rocm(library.SDK, environ)) is None:
        fix = "install ROCm 7 or newer; elsewhere than in /opt/rocm: set ROCM_PATH or LD_LIBRARY_PATH"
        return Check("GPU work", State.MISSING, "no rocprofiler-sdk", fix)
    words = f"rocprofiler-sdk {library.version_of(path) or 'of unknown version'}, {_shown(path.parent)}"
    if library.version_of(path).startswith("0."):
        return Check("GPU work", State.MISSING, words, "rocprofiler-sdk 1.0 is needed, which comes with ROCm 7")
    return Check("GPU work", State.OK, words)


def _roctx(environ: Mapping[str, str]) -> Check:
    path = library.find_rocm(library.SDK_ROCTX, environ)
    theirs = f"AMD's roctx {library.version_of(path)}".strip() if path else "rocpd's own roctx"
    if path is None and library.find_rocm(library.SDK, environ):
        fix = "install rocprofiler-sdk-roctx; rocpd.record.range works without it"
        return Check("markers", State.LIMITED, "rocprofiler-sdk without its roctx", fix)
    return Check("markers", State.OK, f"{theirs}, rocpd.record, NVTX")


def _gpus() -> Check:
    driver = Path("/dev/kfd")
    if not driver.exists():
        fix = "load the driver (modprobe amdgpu); in a container: --device=/dev/kfd --device=/dev/dri"
        return Check("GPUs", State.MISSING, "no /dev/kfd: no AMD GPU, or no driver", fix)
    nodes = sorted(Path("/dev/dri").glob("renderD*"))
    if closed := [node for node in (driver, *nodes) if not os.access(node, os.R_OK | os.W_OK)]:
        group = _group(closed[0])
        fix = f"join the group {group} (usermod -aG {group} YOU; in a container --group-add {group})"
        return Check("GPUs", State.MISSING, f"no permission for {closed[0]}", fix)
    return Check("GPUs", State.OK, f"/dev/kfd and {len(nodes)} render nodes can be opened")


def _group(path: Path) -> str:
    number = path.stat().st_gid
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _smi(environ: Mapping[str, str]) -> Check:
    if (path := library.find_rocm(library.SMI, environ)) is None:
        return Check("SMI", State.MISSING, "no libamd_smi: --smi has nothing to read", "install amd-smi-lib of ROCm")
    return Check("SMI", State.OK, f"libamd_smi {library.version_of(path)}, {_shown(path.parent)}")


def _kernel() -> Check:
    """Check the kernel's limits for profilers; the recorder needs none of it, other tools beside it do."""
    paranoid = _first_line("/proc/sys/kernel/perf_event_paranoid")
    scope = _first_line("/proc/sys/kernel/yama/ptrace_scope")
    words = f"perf_event_paranoid {paranoid or 'unknown'}, ptrace_scope {scope or 'off'}"
    if paranoid and int(paranoid) > 2:
        fix = "for perf beside rocpd, which needs none: sysctl kernel.perf_event_paranoid=2"
        return Check("perf", State.LIMITED, words, fix)
    return Check("perf", State.OK, f"{words}; rocpd needs neither")


def _clock() -> Check:
    source = _first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    error = _clock_error_us()
    words = f"{source}, " + ("state unknown" if error is None else f"within {error / 1e3:.3g} ms of UTC")
    if error is None or error >= _UNKNOWN_ERROR_US:
        fix = "run chrony or ntpd, so that nodes can be laid on one time line; collectives do it too"
        return Check("clock", State.LIMITED, f"{source}, not synchronized", fix)
    if source not in _FAST_CLOCKS:
        return Check("clock", State.LIMITED, words, "each range reads the clock twice: a slow clock source costs time")
    return Check("clock", State.OK, words)


def _clock_error_us() -> int | None:
    """Return the largest error of the clock by the kernel [us]; None if it is unknown."""
    numbers = (ctypes.c_long * 64)()  # struct timex: modes, offset, freq, maxerror …
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.byref(numbers))
    except (AttributeError, OSError):
        return None
    return int(numbers[3]) if 0 <= state < _TIME_ERROR else None


def _output(folder: Path) -> Check:
    shown = _shown(folder)
    try:
        exists = library.writable(folder)
    except library.NoFolderError as error:
        return Check("output", State.MISSING, error.message.replace(str(folder), shown, 1), error.hint or "")
    free = shutil.disk_usage(exists).free
    words = f"{shown}, {free / 1e9:.1f} GB free"
    if free < _SHORT_OF_SPACE:
        return Check("output", State.LIMITED, words, "a busy rank writes about 100 MB a minute: make room, or -o DIR")
    return Check("output", State.OK, words)


def _other_tools(environ: Mapping[str, str]) -> Check:
    set_up = (name for name, value in environ.items() if value)
    tools = sorted(name for name in set_up if name in _OTHERS or name.startswith(_OTHER_PREFIXES))
    ours = sorted(name for name in environ if name.startswith("ROCPD_"))
    settings = f"; settings: {', '.join(ours)}" if ours else ""
    if not tools:
        return Check("other tools", State.OK, f"none in the environment{settings}")
    fix = "unset them if a recording lacks work: two tools share what the SDK gives to one"
    return Check("other tools", State.LIMITED, f"{', '.join(tools)} are set{settings}", fix)


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _shown(path: Path) -> str:
    """Return a path without the name of the user."""
    home = library.home()
    if home and path.is_relative_to(home):
        return f"~/{path.relative_to(home)}"
    return str(Path(*("$USER" if part == _user() else part for part in path.parts)))


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""
