"""The C library in the `otf2` wheel: its functions that write an archive, and the constants of OTF2 that they take.

Functions are called through ctypes, with the names and arguments of the C API of OTF2 3; constants are part of the
format. The wheel's module `_otf2` is not imported: it makes the classes of all readers, too, which takes a twentieth of
the time of converting a small file, and its functions take ten times as long for an event.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_TYPES: dict[str, Any] = {
    "B": ctypes.c_uint8, "I": ctypes.c_uint32, "Q": ctypes.c_uint64, "q": ctypes.c_int64, "d": ctypes.c_double,
    "s": ctypes.c_char_p, "p": ctypes.c_void_p,
}  # fmt: skip
"""Letter -> type of an argument."""

DEFINITIONS = {
    "String": "Is", "Paradigm": "BIB", "SystemTreeNode": "IIII", "SystemTreeNodeDomain": "IB", "Attribute": "IIIB",
    "LocationGroup": "IIBII", "Location": "QIBQI", "Region": "IIIIBBIIII", "Group": "IIBBIIp", "Comm": "IIIII",
    "MetricMember": "IIIBBBBqI", "MetricClass": "IBpBB", "MetricClassRecorder": "IQ", "ClockProperties": "QQQQ",
}  # fmt: skip
"""Kind of a definition -> types of its values."""

NONE, NO_TIME = (1 << 32) - 1, (1 << 64) - 1
"""An undefined reference, which is the root of collectives without one, too; and an undefined time."""
DOUBLE, STRING = 10, 11
PROCESS, ACCELERATOR = 1, 2
"""Types of location groups."""
CPU_THREAD, STREAM, METRIC = 1, 2, 3
"""Types of locations."""
SHARED_MEMORY, DEVICE = 1, 7
"""Domains of nodes of the system tree."""
OTHER, ABSOLUTE_NEXT, DECIMAL, ASYNCHRONOUS, ABSTRACT = 0, 49, 1, 2, 1
"""Type, mode, base, occurrence and recorder of metrics."""
REGIONS, COMM_LOCATIONS, COMM_GROUP = 2, 4, 5
"""Types of groups."""
PARADIGMS = {
    "UNKNOWN": 0, "USER": 1, "OPENMP": 3, "MPI": 4, "PTHREAD": 7, "SHMEM": 13, "SAMPLING": 21, "NONE": 22, "HIP": 23,
    "KOKKOS": 24,
}  # fmt: skip
PARADIGM_CLASSES = {"HIP": 3, "MPI": 0, "SHMEM": 0, "OPENMP": 1, "PTHREAD": 2}
"""Paradigm -> its class; other paradigms have none."""
ROLES = {
    "UNKNOWN": 0, "FUNCTION": 1, "CODE": 4, "DATA_TRANSFER": 30, "ARTIFICIAL": 31, "ALLOCATE": 35, "DEALLOCATE": 36,
    "REALLOCATE": 37, "KERNEL": 40,
}  # fmt: skip
COLLECTIVES = {
    "BARRIER": 0, "BCAST": 1, "GATHER": 2, "SCATTER": 4, "ALLGATHER": 6, "ALLTOALL": 8, "ALLTOALLV": 9,
    "ALLREDUCE": 11, "REDUCE": 12, "REDUCE_SCATTER_BLOCK": 16,
}  # fmt: skip
_WRITE, _POSIX, _UNCOMPRESSED, _FLUSH = 0, 1, 1, 1


class RefusedError(Exception):
    """The library could not do what it was asked for."""


def _path() -> str:
    package = find_spec("_otf2")
    for folder in (package and package.submodule_search_locations) or ():
        for path in (Path(folder, f"_otf2{ending}") for ending in EXTENSION_SUFFIXES):
            if path.exists():
                return str(path)
    raise ImportError("no library of the otf2 package", name="_otf2")


_library = ctypes.CDLL(_path())
_with_lock = ctypes.PyDLL(_library._name, handle=_library._handle)


def quick(name: str, arguments: str, result: Any = ctypes.c_int) -> Callable[..., Any]:
    """Return OTF2_<name>, which most often fills a buffer in less time than releasing and taking Python's lock needs.

    Args:
        name: its name.
        arguments: a letter for the type of each argument.
        result: type of its result, by default a code for `check`.
    """
    made: Any = _with_lock[f"OTF2_{name}"]  # a new object each time
    made.argtypes, made.restype = [_TYPES[letter] for letter in arguments], result
    return made  # type: ignore[no-any-return]


def check(code: int) -> None:
    """Raise a `RefusedError` if the code that a function returned is that of an error."""
    if code:
        raise RefusedError(quick("Error_GetDescription", "I", ctypes.c_char_p)(code).decode())


def define(writer: int, kind: str, *values: object) -> None:
    """Write a definition; `kind` is one of `DEFINITIONS`."""
    check(quick(f"GlobalDefWriter_Write{kind}", f"p{DEFINITIONS[kind]}")(writer, *values))


def do(name: str, handle: int | None, arguments: str = "", *values: object) -> None:
    """Call OTF2_<name> with a handle, and values of the types that `arguments` names; other threads run meanwhile."""
    made = _library[f"OTF2_{name}"]
    made.argtypes = [_TYPES[letter] for letter in f"p{arguments}"]
    check(made(handle, *values))


def get(name: str, arguments: str, *values: object) -> int:
    """Return the pointer that OTF2_<name> returns."""
    pointer: int | None = quick(name, arguments, ctypes.c_void_p)(*values)
    if not pointer:
        raise RefusedError(name)
    return pointer


# OTF2_ErrorCallback: user data, file, line, function, code, format of a message, its va_list; returns the code. The
# library writes its errors to stderr unless a callback takes them; all of them are returned as codes, too.
_say_nothing = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
    ctypes.c_void_p,
)(lambda *words: words[4])  # fmt: skip
_library.OTF2_Error_RegisterCallback(_say_nothing, None)

# OTF2_PreFlushCallback: user data, type of the file, location, data of the caller, whether it is the last.
_flush = ctypes.CFUNCTYPE(
    ctypes.c_uint8, ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_bool
)(lambda *_: _FLUSH)
_callbacks = (ctypes.c_void_p * 2)(ctypes.cast(_flush, ctypes.c_void_p), None)
"""OTF2_FlushCallbacks; the library keeps pointers to them."""


def open_archive(folder: Path, name: str, of_events: int, of_definitions: int) -> int:
    """Return a new archive; `of_events` of a location and `of_definitions` are buffered [bytes]."""
    place, sizes = (os.fsencode(folder), os.fsencode(name)), (of_events, of_definitions)
    archive = get("Archive_Open", "ssBQQBB", *place, _WRITE, *sizes, _POSIX, _UNCOMPRESSED)
    do("Archive_SetFlushCallbacks", archive, "pp", _callbacks, None)
    do("Archive_SetSerialCollectiveCallbacks", archive)
    do("Archive_SetCreator", archive, "s", b"rocpd")
    do("Archive_OpenDefFiles", archive)
    do("Archive_OpenEvtFiles", archive)
    return archive
