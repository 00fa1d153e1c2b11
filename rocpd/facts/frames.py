"""Reads call stacks as files have them: of each frame the function, its file and line.

`call_stack` of an event is a JSON array of frames, the innermost first. A frame is a text, of Python as
`file(line): function`, of native code as `function at file:line`, or the function alone; or an object with `function`,
`file` and `line`. Samplers of threads write a row of `rocpd_sample` on the track of the thread for each sample.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from rocpd.base.documents import json_value

_PYTHON = re.compile(r"(?P<file>.*)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_NATIVE = re.compile(r"(?P<function>.+) at (?P<file>[^ ].*?):(?P<line>\d+)(?::\d+)?", re.DOTALL)
_AROUND = re.compile(r"^\s*(?:0x[0-9a-fA-F]+|\(inlined\))\s+in\s+| in (?:hip|hsa_|cu)\w+\(\)$")
"""Texts around native frames: addresses, and in RPD's innermost ones the call itself."""


class StackFrame(NamedTuple):
    """A function, and the line that it is at; file and line are None where they were not recorded."""

    function: str
    file: str | None = None
    line: int | None = None


@functools.lru_cache(maxsize=1 << 14)
def frame_of(text: str) -> StackFrame:
    """Return what the text of a frame says.

    >>> frame_of("model.py(88): decode")
    StackFrame(function='decode', file='model.py', line=88)
    >>> frame_of("0x00007f12 in run(int) at /src/run.cpp:12:3 in hipMalloc()")
    StackFrame(function='run(int)', file='/src/run.cpp', line=12)
    >>> frame_of("nn.Module: Linear_0")
    StackFrame(function='nn.Module: Linear_0', file=None, line=None)
    """
    match = _PYTHON.fullmatch(text)
    if match is None:
        text = _AROUND.sub("", text)
        match = _NATIVE.fullmatch(text)
    if match is None:
        return StackFrame(text)
    return StackFrame(match["function"], match["file"] or None, int(match["line"]) or None)


def frames_of(call_stack: str) -> tuple[str, ...]:
    """Return the texts of the frames of a call stack, the outermost first; nothing for other text.

    >>> frames_of('["decode", {"function": "main", "file": "app.py", "line": 3}]')
    ('app.py(3): main', 'decode')
    """
    frames = json_value(call_stack)
    return tuple(map(_text, reversed(frames))) if isinstance(frames, list) else ()


def _text(frame: object) -> str:
    if not isinstance(frame, dict):
        return "?" if frame is None else str(frame)
    function, file, line = (frame.get(key) for key in ("function", "file", "line"))
    return _text(function) if file is None else f"{file}({line or 0}): {function}"
