"""Programs that NVIDIA's own NVTX package annotates are recorded without a change."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from rocpd.record.command import Settings, environment_of
from tests.record.build import Build
from tests.record.cli import cli
from tests.record.runs import check_closed, databases, environment, rows

_PROGRAM = """
import threading
import nvtx

@nvtx.annotate("step")
def step():
    with nvtx.annotate("forward", color="green", domain="my model"):
        nvtx.mark("loss")
    nvtx.push_range("pushed ü")
    nvtx.pop_range()

step()
across = nvtx.start_range("across threads")
thread = threading.Thread(target=nvtx.end_range, args=(across,))
thread.start()
thread.join()

outer = nvtx.get_domain("outer")
attributes = outer.get_event_attributes(message="below")
outer.push_range(attributes)
nvtx.push_range("above")
outer.pop_range()
nvtx.mark("while above is open")
nvtx.pop_range()
nvtx.mark("after")
"""


@pytest.fixture(scope="module")
def recorded(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a program with NVTX, run by `rocpd record`."""
    pytest.importorskip("nvtx")
    folder = tmp_path_factory.mktemp("nvtx")
    (folder / "program.py").write_text(_PROGRAM)
    done = cli(folder, "record", "-o", "job", "--", sys.executable, "program.py")
    assert done.returncode == 0, done.stderr
    (file,) = databases(folder / "job")
    check_closed(file)
    return file


def test_ranges_and_marks(recorded: Path) -> None:
    names = {name for (name,) in rows(recorded, "SELECT name FROM markers")}
    assert names == {
        "step", "my model: forward", "loss", "pushed ü", "across threads", "outer: below", "above",
        "while above is open", "after",
    }  # fmt: skip
    sql = """SELECT P.name FROM markers M JOIN markers P ON P.stack_id = M.parent_stack_id
        WHERE M.name = ?"""
    for inner, around in (("my model: forward", "step"), ("loss", "my model: forward"), ("pushed ü", "step")):
        assert rows(recorded, sql.replace("?", f"'{inner}'")) == [(around,)]


def test_ranges_of_domains_that_do_not_nest_end_in_order(recorded: Path) -> None:
    """The lower one was popped first: it ends with the one over it, and nothing stays open."""
    ends = dict(rows(recorded, 'SELECT name, "end" FROM markers'))
    assert ends["while above is open"] < ends["above"] <= ends["outer: below"] < ends["after"]
    assert rows(recorded, "SELECT COUNT(*) FROM rocpd_event WHERE extdata LIKE '%unfinished%'") == [(0,)]


def test_a_tool_that_the_user_chose_stays(built: Build) -> None:
    environ = {"ROCPD_TOOL_DIR": str(built.folder), "ROCPD_ROCM": "0"}
    assert environment_of(Settings(), environ)["NVTX_INJECTION64_PATH"] == str(built.lib / "librocpd-roctx.so")
    chosen = environ | {"NVTX_INJECTION64_PATH": "/other.so"}
    assert environment_of(Settings(), chosen)["NVTX_INJECTION64_PATH"] == "/other.so"


def test_without_preload_the_injection_records_too(built: Build, tmp_path: Path) -> None:
    if importlib.util.find_spec("nvtx") is None:
        pytest.skip("nvtx is not installed")
    env = environment(tmp_path / "out", NVTX_INJECTION64_PATH=str(built.lib / "librocpd-roctx.so"))
    script = "import nvtx\nwith nvtx.annotate('alone'): pass"
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
    (file,) = databases(tmp_path / "out")
    assert rows(file, "SELECT name FROM markers") == [("alone",)]
