"""Names frames of sampled call stacks that had only a place in a library, in copies of the files.

Debugging information is found by build id, not by the name of a library, and read by `addr2line`. Raw files and frames
with a known line never change.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from rocpd.base import Progress, UsageError, by_key, frozen
from rocpd.base.output import as_output_error, folder_complete_or_nothing
from rocpd.base.sqlite import apsw, writing
from rocpd.base.texts import json_value
from rocpd.federate.federation import Federation
from rocpd.federate.package import copy_files, openings_of
from rocpd.schema.quote import quote_name

_TOOLS = ("addr2line", "llvm-addr2line", "eu-addr2line")
"""Programs that read debugging information: of binutils, LLVM (ROCm has it) or elfutils; all take the same options."""

_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_NOTES, _BUILD_ID, _LARGEST_NOTES = 7, 3, 1 << 16

Place: TypeAlias = tuple[str, int]
"""Build id and address in the file."""


@frozen
class Named:
    """Counts of symbolized places.

    Args:
        files: files written.
        places: distinct places in libraries that had no line.
        named: places that now have a function or a line.
        libraries: places in libraries with debugging information.
    """

    files: int
    places: int
    named: int
    libraries: int


def symbolize(
    session: Federation, folder: Path, debug: Sequence[Path], force: bool = False, progress: Progress | None = None
) -> Named:
    """Write copies of the files of a job, with names of frames from debugging information.

    Args:
        session: the job.
        folder: the new folder.
        debug: folders with debugging information: by build id (`.build-id/12/34….debug`), or any files.
        force: replace a folder that an earlier run wrote.
        progress: called with (files done, files in all).

    Raises:
        UsageError: there is no `addr2line`, or a folder of `debug` does not exist.
        OutputError: the folder exists or cannot be written.
        InputError: a file cannot be read.
    """
    if missing := next((path for path in debug if not path.is_dir()), None):
        raise UsageError(f"{missing}: no such folder")
    path = f"{os.environ.get('PATH', os.defpath)}:/opt/rocm/llvm/bin"
    if (tool := next(filter(None, (shutil.which(name, path=path) for name in _TOOLS)), None)) is None:
        raise UsageError("there is no addr2line", "install binutils or elfutils; ROCm has llvm-addr2line")
    with folder_complete_or_nothing(folder, force) as temporary:
        names = copy_files(openings_of(session), temporary, progress)
        stacks = {file: list(_stacks(temporary / name)) for file, name in names.items()}
        places = {place for of_file in stacks.values() for stack in of_file for place in stack.places if place}
        files = _files_of({build_id for build_id, _ in places}, debug)
        known = _frames(tool, files, places)
        for file, name in names.items():
            _rename(temporary / name, stacks[file], known)
    return Named(len(names), len(places), len(known), sum(build_id in files for build_id, _ in places))


@frozen
class _Stack:
    """A row of rocpd_event: its table and id, its frames, the place of each or None, and its line_info."""

    table: str
    event: int
    frames: list[Any]
    places: list[Place | None]
    line_info: dict[str, Any]


def _stacks(path: Path) -> Iterator[_Stack]:
    with closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        tables: Any = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_event_%'").fetchall()
        for (table,) in tables:
            sql = f"""SELECT id, call_stack, line_info FROM {quote_name(table)} WHERE line_info LIKE '{{"places"%'"""  # noqa: S608
            for event, call_stack, line_info in connection.execute(sql):
                frames, lines = json_value(call_stack), json_value(line_info)
                places = _places(lines)
                if isinstance(frames, list) and len(places) == len(frames):
                    yield _Stack(str(table), int(str(event)), frames, places, lines)


def _places(line_info: Any) -> list[Place | None]:
    if not isinstance(line_info, dict):
        return []
    places, build_ids = line_info.get("places"), line_info.get("build_ids")
    if not isinstance(places, list) or not isinstance(build_ids, dict):
        return []
    return [_place(each, build_ids) for each in places]


def _place(text: Any, build_ids: Mapping[str, Any]) -> Place | None:
    """Return the place in a text such as `lib.so+0x1234`; None if it has none, or the library has no build id."""
    library, plus, address = str(text).rpartition("+0x")
    build_id = build_ids.get(library)
    try:
        return (str(build_id), int(address, 16)) if plus and build_id else None
    except ValueError:
        return None


def _files_of(build_ids: set[str], folders: Iterable[Path]) -> dict[str, Path]:
    """Return build id -> file with its debugging information."""
    files: dict[str, Path] = {}
    for folder in folders:
        for build_id in build_ids - files.keys():
            path = folder / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
            if path.is_file():
                files[build_id] = path
        for path in sorted(folder.rglob("*")) if build_ids - files.keys() else ():
            if path.is_file() and (build_id := _build_id(path)) in build_ids:
                files.setdefault(build_id, path)
    return files


def _build_id(path: Path) -> str:
    """Return the build id of an ELF file, empty if it has none."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
            if head[:5] != b"\x7fELF\x02":
                return ""
            (at,) = struct.unpack_from("<Q", head, 0x28)
            size, count = struct.unpack_from("<HH", head, 0x3A)
            file.seek(at)
            table = file.read(size * count)
            for start in range(0, len(table), max(size, _SECTION.size)):
                _, kind, _, _, offset, length, *_ = _SECTION.unpack_from(table, start)
                if kind == _NOTES and length < _LARGEST_NOTES:
                    file.seek(offset)
                    if build_id := _in_notes(file.read(length)):
                        return build_id
    except (OSError, struct.error):
        pass
    return ""


def _in_notes(notes: bytes) -> str:
    at = 0
    while at + 12 <= len(notes):
        name, size, kind = struct.unpack_from("<III", notes, at)
        start = at + 12 + (name + 3) // 4 * 4
        if kind == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
            return notes[start : start + size].hex()
        at = start + (size + 3) // 4 * 4
    return ""


def _frames(tool: str, files: Mapping[str, Path], places: Iterable[Place]) -> dict[Place, list[str]]:
    """Return the frames at each place with debugging information, the innermost first."""
    addresses = by_key(place for place in places if place[0] in files)
    known: dict[Place, list[str]] = {}
    for build_id, wanted in addresses.items():
        command = [tool, "-a", "-f", "-i", "-C", "-e", str(files[build_id])]
        done = subprocess.run(command, input="\n".join(map(hex, wanted)), capture_output=True, text=True, check=False)
        for address, frames in _answers(done.stdout.splitlines()):
            if frames:
                known[build_id, address] = frames
    return known


def _answers(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield each address given to addr2line with its frames, the innermost first.

    >>> list(_answers(["0x12", "inner", "a.c:3", "outer", "a.c:9", "0x15", "??", "??:0"]))
    [(18, ['(inlined) in inner at a.c:3', 'outer at a.c:9']), (21, [])]
    """
    starts = [at for at, line in enumerate(lines) if line.startswith("0x")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        pairs = list(zip(lines[start + 1 : end : 2], lines[start + 2 : end : 2], strict=False))
        frames = [f"{name}{_line(at)}" for name, at in pairs if name != "??"]
        yield int(lines[start], 16), [*(f"(inlined) in {frame}" for frame in frames[:-1]), *frames[-1:]]


def _line(text: str) -> str:
    """Return the words for a frame's line, empty if it is unknown."""
    file, _, line = text.partition(" (")[0].rpartition(":")
    return f" at {file}:{line}" if line.isdigit() and line != "0" and not file.startswith("??") else ""


def _rename(path: Path, stacks: Iterable[_Stack], known: Mapping[Place, list[str]]) -> None:
    with closing(apsw.Connection(str(path))) as connection, as_output_error(path), writing(connection):
        connection.execute("BEGIN")
        for stack in stacks:
            if any(place in known for place in stack.places if place):
                sql = f"UPDATE {quote_name(stack.table)} SET call_stack = ?, line_info = ? WHERE id = ?"  # noqa: S608
                connection.execute(sql, (*_renamed(stack, known), stack.event))
        connection.execute("COMMIT")


def _renamed(stack: _Stack, known: Mapping[Place, list[str]]) -> tuple[str, str]:
    """Return call_stack and line_info with the known names; other frames keep their place."""
    frames: list[Any] = []
    places: list[Any] = []
    for frame, place, text in zip(stack.frames, stack.places, stack.line_info["places"], strict=True):
        named = known.get(place) if place else None
        frames += named or [frame]
        places += [None] * len(named) if named else [text]
    line_info = stack.line_info | {"places": places} if any(places) else {}
    return json.dumps(frames, ensure_ascii=False), json.dumps(line_info, ensure_ascii=False)
