"""`rocpd doctor` sees what is there, says what to do about the rest, and names nobody."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from rocpd.record import doctor, library
from rocpd.record.doctor import Check, State, examine
from tests.conftest import Cli
from tests.record.build import Build

_NAMES = [
    "rocpd",
    "recorder",
    "C++ stacks",
    "GPU work",
    "markers",
    "GPUs",
    "SMI",
    "perf",
    "clock",
    "output",
    "other tools",
]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without ROCm, whatever this one has."""
    monkeypatch.setattr(library, "_ANY", tmp_path / "opt")
    monkeypatch.setattr(library, "_cached", list)
    return tmp_path


def _examine(folder: Path, **environ: str) -> dict[str, Check]:
    return {check.name: check for check in examine(folder, environ)}


def _install(folder: Path, *names: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return str(folder)


def test_a_machine_without_rocm(built: Build, bare: Path) -> None:
    checks = _examine(bare, ROCPD_TOOL_DIR=str(built.folder))
    assert list(checks) == _NAMES
    assert (checks["recorder"].state, checks["output"].state) == (State.OK, State.OK)
    for name in ("GPU work", "SMI"):
        assert checks[name].state is State.MISSING
    assert [check.name for check in checks.values() if check.state is not State.OK and not check.fix] == []
    assert "rocpd's own roctx" in checks["markers"].says


@pytest.mark.parametrize("place", ["LD_LIBRARY_PATH", "ROCM_PATH", "opt/rocm", "opt/rocm-7.2.0", "cache"])
def test_rocm_is_found_where_the_loader_finds_it(place: str, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bare / (place if place.startswith("opt") else "some") / "lib"
    names = ["librocprofiler-sdk.so.1.0.0", "librocprofiler-sdk.so.1.3.0", "libamd_smi.so.26.0"]
    _install(folder, *names, "librocprofiler-sdk-roctx.so.1")
    environ = {"LD_LIBRARY_PATH": {"LD_LIBRARY_PATH": f"/nowhere:{folder}"}, "ROCM_PATH": {"ROCM_PATH": f"{bare}/some"}}
    if place == "cache":
        monkeypatch.setattr(library, "_cached", lambda: [(path.name, str(path)) for path in folder.iterdir()])
    checks = _examine(bare, **environ.get(place, {}))
    assert checks["GPU work"].says.startswith("rocprofiler-sdk 1.3.0, ")
    assert checks["SMI"].says.startswith("libamd_smi 26.0, ")
    assert "AMD's roctx 1," in checks["markers"].says
    assert {checks[name].state for name in ("GPU work", "SMI", "markers")} == {State.OK}


def test_an_sdk_that_is_too_old_or_turned_off(bare: Path) -> None:
    path = _install(bare / "lib", "librocprofiler-sdk.so.0.6.0")
    assert "1.0 is needed" in _examine(bare, LD_LIBRARY_PATH=path)["GPU work"].fix
    assert _examine(bare, LD_LIBRARY_PATH=path)["markers"].state is State.LIMITED
    assert "unset ROCPD_ROCM" in _examine(bare, LD_LIBRARY_PATH=path, ROCPD_ROCM="0")["GPU work"].fix


def test_no_recorder(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_folders", lambda environ: [])
    recorder = _examine(bare)["recorder"]
    assert recorder.state is State.MISSING
    assert "g++" in recorder.fix


def test_a_folder_that_cannot_be_written(bare: Path) -> None:
    (bare / "file").write_text("in the way")
    output = _examine(bare / "file" / "job")["output"]
    assert (output.state, output.fix) == (State.MISSING, "name another folder: rocpd record -o DIR")
    assert not (bare / "new").exists()
    assert _examine(bare / "new" / "job")["output"].state is State.OK
    assert not (bare / "new").exists()


def test_a_made_up_user_has_no_home(built: Build, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers run with --user: no entry in /etc/passwd, and HOME is / or not there."""
    monkeypatch.setattr(os, "getuid", lambda: 2**30 + 1)
    for home in ("/", None):
        monkeypatch.setenv("HOME", home) if home else monkeypatch.delenv("HOME")
        checks = _examine(bare, ROCPD_TOOL_DIR=str(built.folder))
        assert checks["output"].says.startswith(f"{bare}, ")
        assert checks["recorder"].says.endswith(f": {built.lib}")


def test_other_tools_are_named_without_their_values(bare: Path) -> None:
    other = _examine(bare, LD_PRELOAD="/home/me/x.so", ROCPROFSYS_MODE="trace", ROCPD_FLUSH_MS="5", PATH="/bin")
    assert other["other tools"].says == "LD_PRELOAD, ROCPROFSYS_MODE are set; settings: ROCPD_FLUSH_MS"


def test_permission(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that is closed to this user: the group that has it."""
    monkeypatch.setattr(doctor, "Path", lambda path: bare / "kfd" if path == "/dev/kfd" else bare)
    (bare / "kfd").touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check = doctor._gpus()
    assert (check.state, check.says) == (State.MISSING, f"no permission for {bare / 'kfd'}")
    assert "usermod -aG" in check.fix


def test_eleven_lines_that_name_nobody(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    user = pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROCPD_TOOL_DIR", str(built.folder))
    said = cli("doctor", "-o", tmp_path / "out")
    assert (said.code, said.err, len(said.out.splitlines())) == (0, "", 11)
    assert "~/out" in said.out
    assert doctor._shown(Path("/scratch", user, "out")) == "/scratch/$USER/out"
    for private in (str(tmp_path), os.uname().nodename, f"/{user}/"):
        assert private not in said.out
    checks = json.loads(cli("doctor", "--json").out)["checks"]
    assert [check["name"] for check in checks] == _NAMES


@pytest.mark.parametrize(("source", "state"), [("hyperv_clocksource_tsc_page", State.OK), ("hpet", State.LIMITED)])
def test_clock_sources(bare: Path, monkeypatch: pytest.MonkeyPatch, source: str, state: State) -> None:
    monkeypatch.setattr(doctor, "_first_line", lambda path: source if "clocksource" in path else "")
    monkeypatch.setattr(doctor, "_clock_error_us", lambda: 100)
    assert _examine(bare)["clock"].state is state
