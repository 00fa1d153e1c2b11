"""Makes Python as it is on macOS, without what Linux alone has, and ends it where it writes to the package's folder.

Python imports it at its start where this folder is on its path.
"""

from __future__ import annotations

import builtins
import io
import multiprocessing
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OF_LINUX = (
    "copy_file_range", "eventfd", "memfd_create", "pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate",
    "sched_getaffinity", "sched_setaffinity", "splice",
)  # fmt: skip
_HIDDEN = ("/proc", "/sys")
_PACKAGE = os.fspath(Path(__file__).parents[3] / "rocpd")
_WRITES = {
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.link": (1,),
    "os.chmod": (0,),
}


def _without_proc(function: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(path: Any = ".", *rest: Any, **named: Any) -> Any:
        text = "" if isinstance(path, int) else os.fsdecode(path)
        if text in _HIDDEN or text.startswith(tuple(f"{folder}/" for folder in _HIDDEN)):
            raise FileNotFoundError(2, "No such file or directory", text)
        return function(path, *rest, **named)

    return guarded


def _refuse_writes(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, mode, flags = arguments
        written = (
            [path]
            if (flags and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) or set(mode or "") & set("wax+")
            else []
        )
    else:
        written = [arguments[place] for place in _WRITES.get(event, ())]
    for path in written:
        text = "" if isinstance(path, int) else os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (links stay)
        if text.startswith(_PACKAGE + "/") and "__pycache__" not in text:
            os.write(2, f"{event}: the package's folder is written to: {text}\n".encode())
            os._exit(99)


for _name in _OF_LINUX:
    if hasattr(os, _name):
        delattr(os, _name)
if hasattr(select, "epoll"):
    del select.epoll
for _name in ("stat", "lstat", "open", "listdir", "scandir", "readlink", "access"):
    setattr(os, _name, _without_proc(getattr(os, _name)))
builtins.open = io.open = _without_proc(io.open)
multiprocessing.set_start_method("spawn")
sys.addaudithook(_refuse_writes)
