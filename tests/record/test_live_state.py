"""The recorder's state file: what it holds after SIGKILL, that it goes with a good end, that no half of it is seen."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.schema.live_state import GROUP, HEADER, THREAD, read_state
from tests.record.build import SOURCE, Build
from tests.record.runs import CODE, environment, probe
from tests.waiting import until


@contextmanager
def running(built: Build, folder: Path, *scenario: str) -> Iterator[Path]:
    """Run a scenario until the block ends; yield its state file, when it has its name."""
    process = subprocess.Popen([str(built.program("probe")), *scenario], env=environment(folder, ROCPD_FLUSH_MS="20"))
    try:
        until(lambda: any(folder.glob("*.db.live")), "the state file has its name")
        yield next(folder.glob("*.db.live"))
    finally:
        process.kill()
        process.wait()


def test_what_was_begun_survives_sigkill(built: Build, tmp_path: Path) -> None:
    with running(built, tmp_path, "waits-for-others", "until-killed") as path:
        before = read_state(path)
        until(lambda: read_state(path).wall > before.wall, "another sign of life")
    state = read_state(path)
    (group,), (thread,) = state.groups, state.threads
    assert (group.name, group.id, group.size, group.member) == ("world", 77, 4, 2)
    assert (group.entered, group.left, group.operation, group.left_operation, group.bytes) == (
        4, 3, "ncclAllGather", "ncclAllReduce", 512,
    )  # fmt: skip
    assert (thread.call, thread.group) == ("hipStreamSynchronize", 77)
    assert group.left_at <= group.entered_at <= thread.since <= state.clock
    with rocpd.connect(path.with_suffix("")) as session:
        assert session.ranks[0].guid == state.guid
        assert session.execute("SELECT COUNT(*) FROM rocpd_region").fetchall() == [(10,)]


def test_a_good_end_leaves_the_database_alone(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path, "waits-for-others", "ends").returncode == CODE
    assert [path.suffix for path in tmp_path.iterdir()] == [".db"]


def test_readers_see_no_half_slot(built: Build, tmp_path: Path) -> None:
    """Of a slot that changes a million times a second, numbers and times agree at each look."""
    with running(built, tmp_path, "exchanges") as path:
        looks = [group for _ in range(200) for group in read_state(path).groups]
    assert looks
    assert all(0 <= group.entered - group.left <= 1 for group in looks)
    assert all(group.left_at >= group.entered_at for group in looks if group.left == group.entered)
    assert all(group.left_at <= group.entered_at for group in looks if group.left < group.entered)


@pytest.mark.parametrize(("name", "layout"), [("Header", HEADER), ("Thread", THREAD), ("Group", GROUP)])
def test_reader_and_writer_have_one_layout(name: str, layout: np.dtype[Any], tmp_path: Path) -> None:
    """The compiler's offsets are those of the reader's description."""
    named = layout.names or ()
    body = "".join(f'std::printf("%zu ", offsetof(rocpd::live::{name}, {field}));' for field in named)
    source = tmp_path / "offsets.cpp"
    source.write_text(
        '#include "live_state.h"\n#include <cstdio>\n'
        f'int main() {{ {body} std::printf("%zu", sizeof(rocpd::live::{name})); }}\n'
    )
    program = tmp_path / "offsets"
    subprocess.run(["c++", "-std=c++17", "-I", str(SOURCE / "src"), str(source), "-o", str(program)], check=True)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    fields: Any = layout.fields
    assert [int(word) for word in re.split(r"\s+", said)] == [*(fields[n][1] for n in named), layout.itemsize]
