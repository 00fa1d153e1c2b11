"""`rocpd record`: exit codes, signals, what is said, jobs of several processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.record import library
from rocpd.record.command import Settings, _forwarding, environment_of
from tests.record.build import Build
from tests.record.cli import cli, cli_command
from tests.record.runs import check_closed, databases, rows
from tests.waiting import PATIENCE, until


def test_exit_code_and_report(built: Build, tmp_path: Path) -> None:
    done = cli(tmp_path, "record", "-o", "job", "--", str(built.program("probe")), "threads", "2", "100")
    assert done.returncode == 7
    (file,) = databases(tmp_path / "job")
    check_closed(file)
    wrote = f"rocpd: wrote job/{file.name} (200 events, {file.stat().st_size / 1e6:.1f} MB)\n"
    assert done.stderr == f"rocpd: while it runs: rocpd top job\n{wrote}"
    assert done.stdout == ""


def test_command_without_markers(built: Build, tmp_path: Path) -> None:
    done = cli(tmp_path, "record", "-o", "job", "--", "echo", "-v", "--help")
    assert (done.returncode, done.stdout) == (0, "-v --help\n")
    assert "nothing was recorded" in done.stderr
    for would_be in ("roctx", "NVTX", "rocpd doctor", "--python-stacks", "--smi", "--sample-hz"):
        assert would_be in done.stderr


def test_command_that_ends_before_its_first_sample(built: Build, tmp_path: Path) -> None:
    done = cli(tmp_path, "record", "--sample-hz", "0.01", "-o", "job", "--", "true")
    assert done.returncode == 0
    assert "ends before its first sample" in done.stderr
    assert "--sample-hz 10" not in done.stderr  # it was given


@pytest.mark.parametrize(("option", "variable"), [(["--off"], {}), ([], {"ROCPD_START": "0"})])
def test_command_that_never_turned_recording_on(
    built: Build, tmp_path: Path, option: list[str], variable: dict[str, str]
) -> None:
    command = ["record", *option, "-o", "job", "--", str(built.program("probe")), "threads", "1", "10"]
    done = cli(tmp_path, *command, **variable)
    assert done.returncode == 7
    assert "nothing was recorded: recording was off" in done.stderr
    assert "rocpd control start PID" in done.stderr
    assert "no markers" not in done.stderr


@pytest.mark.parametrize(("command", "code"), [("/nonexistent/x", 2), ("/etc/passwd", 2)])
def test_command_that_cannot_run(built: Build, tmp_path: Path, command: str, code: int) -> None:
    done = cli(tmp_path, "record", "--", command)
    assert done.returncode == code
    assert command in done.stderr


def test_no_command(tmp_path: Path) -> None:
    assert cli(tmp_path, "record").returncode == 2


@pytest.mark.parametrize(("option", "variable", "named"), [
    (["--trace", "hip,nonsense"], {}, "--trace nonsense"),
    ([], {"ROCPD_TRACE": "hip,nonsense"}, "ROCPD_TRACE=nonsense"),
])  # fmt: skip
def test_unknown_domain(built: Build, tmp_path: Path, option: list[str], variable: dict[str, str], named: str) -> None:
    done = cli(tmp_path, "record", *option, "--", "true", **variable)
    assert done.returncode == 2
    assert f"{named}: unknown domain" in done.stderr


@pytest.mark.parametrize("names", ["--", "", "A,,B", "a b"])
def test_variables_to_keep_are_names(built: Build, names: str) -> None:
    with pytest.raises(UsageError, match="not names of variables"):
        environment_of(Settings(keep_env=names), {"ROCPD_TOOL_DIR": str(built.folder), "ROCPD_ROCM": "0"})


def test_killed_command(built: Build, tmp_path: Path) -> None:
    done = cli(tmp_path, "record", "-o", "job", "--", str(built.program("probe")), "ends", "kill")
    assert done.returncode == 128 + 9


def test_signals_are_forwarded(built: Build, tmp_path: Path) -> None:
    script = "import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5)); print(flush=True)\n"
    # Not one long sleep: a signal that comes just before it is handled after it.
    command = cli_command("record", "--", sys.executable, "-c", script + "while True: time.sleep(0.1)")
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGUSR1)
    assert process.wait(PATIENCE) == 5
    process.stdout.close()


def test_signals_before_the_command_runs_are_forwarded_then() -> None:
    """They would end `rocpd record`, and leave the command alone."""
    with _forwarding() as forward_to:
        os.kill(os.getpid(), signal.SIGTERM)
        child = subprocess.Popen(["sleep", "60"])
        forward_to(child)
        assert child.wait(PATIENCE) == -signal.SIGTERM


def test_terminated_command_keeps_its_data(built: Build, tmp_path: Path) -> None:
    command = cli_command("record", "-o", "job", "--", str(built.program("probe")), "numbered", "1")
    process = subprocess.Popen(command, cwd=tmp_path)
    until(lambda: bool([*tmp_path.glob("job/*.db")]), "the command writes its file")
    process.terminate()
    assert process.wait(PATIENCE) == 128 + 15
    (file,) = databases(tmp_path / "job")
    check_closed(file)


def test_missing_libraries_say_how_to_build_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "_folders", lambda environ: [tmp_path])
    with pytest.raises(library.NoRecorderError, match=r"not built; to add it: apt-get .*, then make tool$"):
        library.find(library.ROCTX)


def test_without_recorder_the_command_runs_when_asked_to(tmp_path: Path) -> None:
    """A copy of the package alone has no recorder, whatever stands beside this checkout."""
    shutil.copytree(Path(rocpd.__file__).parent, tmp_path / "site" / "rocpd")
    command = ["record", "-o", "job", "--", "sh", "-c", "echo ran; exit 3"]
    nowhere = {"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path)}
    done = cli(tmp_path, *command, **nowhere)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "rocpd: error: the recorder was not built; to add it: apt-get install g++ libsqlite3-dev (Debian), "
        "then in the checkout again: pip install .\n"
    )
    done = cli(tmp_path, "record", "--best-effort", *command[1:], **nowhere)
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert "sh: not recorded" in done.stderr


@pytest.mark.parametrize(("folder", "why"), [("file/job", "Not a directory"), ("/proc/job", "No such file")])
def test_a_folder_that_cannot_be_written_is_said_before(built: Build, tmp_path: Path, folder: str, why: str) -> None:
    (tmp_path / "file").touch()
    done = cli(tmp_path, "record", "-o", folder, "--", "sh", "-c", "echo ran; exit 3")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{folder} cannot be written: {why}" in done.stderr
    assert "-o DIR" in done.stderr
    done = cli(tmp_path, "record", "--best-effort", "-o", folder, "--", "sh", "-c", "echo ran; exit 3")
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert "sh: not recorded" in done.stderr


def test_variables_count_where_options_are_not_given(built: Build) -> None:
    given = {"ROCPD_FLUSH_MS": "50", "ROCPD_START": "0", "ROCPD_OVERFLOW": "drop", "ROCPD_SAMPLE_HZ": "3"}
    environ = {"ROCPD_TOOL_DIR": str(built.folder), "ROCPD_ROCM": "0", **given}
    values = environment_of(Settings(), environ)
    assert {name: values[name] for name in given} == given
    assert environment_of(Settings(flush_ms=7, sample_hz=0), environ)["ROCPD_FLUSH_MS"] == "7"
    assert environment_of(Settings(flush_ms=7, sample_hz=0), environ)["ROCPD_SAMPLE_HZ"] == "0"


def test_each_option_sets_its_variable(built: Build) -> None:
    settings = Settings(
        trace="hip,marker", counters="SQ_WAVES", sample_hz=2.5, smi=4, stacks=50, stack_threads="main",
        flush_ms=20, drop=True, off=True, group=True, keep_env="A_TOKEN,B",
    )  # fmt: skip
    environ = {"ROCPD_TOOL_DIR": str(built.folder), "ROCPD_ROCM": "0", "ROCPD_GROUP": "0", "ROCPD_TRACE": "kernel"}
    values = environment_of(settings, environ)
    assert {name: value for name, value in values.items() if name.startswith("ROCPD_")} == {
        "ROCPD_TOOL_DIR": str(built.folder), "ROCPD_ROCM": "0", "ROCPD_OUTPUT_PATH": str(Path.cwd()),
        "ROCPD_TRACE": "hip,marker", "ROCPD_COUNTERS": "SQ_WAVES", "ROCPD_SAMPLE_HZ": "2.5", "ROCPD_SMI": "4",
        "ROCPD_STACKS": "50", "ROCPD_STACK_THREADS": "main", "ROCPD_FLUSH_MS": "20", "ROCPD_OVERFLOW": "drop",
        "ROCPD_START": "0",
        "ROCPD_GROUP": "1", "ROCPD_KEEP_ENV": "A_TOKEN,B",
    }  # fmt: skip


def test_programs_with_the_old_roctx_get_the_new_one(built: Build, tmp_path: Path) -> None:
    """As AMD's profiler does: what links libroctx64 reports to the SDK only if its own roctx comes first."""
    (tmp_path / "lib").mkdir()
    roctx = tmp_path / "lib" / "librocprofiler-sdk-roctx.so.1.0.0"
    for file in (roctx, tmp_path / "lib" / "librocprofiler-sdk.so.1.0.0"):
        file.touch()
    environ = {"ROCPD_TOOL_DIR": str(built.folder), "ROCM_PATH": str(tmp_path), "LD_PRELOAD": "libother.so"}
    tool, *preloaded = environment_of(Settings(trace="kernel,HIPFILE_API"), environ)["LD_PRELOAD"].split(":")
    assert Path(tool).name == "librocpd-tool.so"
    assert preloaded == [str(roctx), "libother.so"]


@pytest.mark.parametrize(("option", "variable", "named"), [
    (["--trace", "kernel"], {}, "--trace"), ([], {"ROCPD_COUNTERS": "SQ_WAVES"}, "ROCPD_COUNTERS"),
])  # fmt: skip
def test_trace_without_rocm_says_so(
    built: Build, tmp_path: Path, option: list[str], variable: dict[str, str], named: str
) -> None:
    done = cli(tmp_path, "record", *option, "--", "true", ROCPD_ROCM="0", **variable)
    assert done.returncode == 0
    assert f"{named} finds nothing here" in done.stderr


def test_libraries_in_a_chosen_folder(built: Build, tmp_path: Path) -> None:
    for file in built.lib.glob("*.so"):
        shutil.copy(file, tmp_path)
    for environ in ({"ROCPD_TOOL_DIR": str(tmp_path)}, {"ROCPD_TOOL_DIR": str(built.folder)}):
        assert library.find(library.ROCTX, environ).is_relative_to(environ["ROCPD_TOOL_DIR"])


def test_installed_libraries(built: Build, tmp_path: Path) -> None:
    """What `make install-tool` copies needs nothing of the checkout."""
    install = ["cmake", "--install", str(built.folder), "--prefix", str(tmp_path / "prefix")]
    subprocess.run(install, check=True, capture_output=True)
    assert (tmp_path / "prefix" / "include" / "rocpd" / "recorder.h").is_file()
    script = "from rocpd import record\nwith record.range('step'): pass"
    done = cli(tmp_path, "record", "-o", "job", "--", sys.executable, "-c", script, ROCPD_TOOL_DIR="prefix")
    assert done.returncode == 0
    (file,) = databases(tmp_path / "job")
    assert rows(file, "SELECT name FROM markers") == [("step",)]
    library_path = tmp_path / "prefix" / "lib" / "rocpd" / "librocpd-roctx.so"
    loaded = subprocess.run(["ldd", str(library_path)], capture_output=True, text=True, check=True)
    assert str(built.folder) not in loaded.stdout


def test_job_of_four_ranks(built: Build, tmp_path: Path) -> None:
    """Plain processes with the variables of Open MPI: merge, summary and a Perfetto trace take what they left."""
    program = [str(built.program("probe")), "threads", "2", "200"]
    running = [
        subprocess.Popen(cli_command("record", "-o", "job", "--", *program), cwd=tmp_path,
                         env=os.environ | {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "4"})
        for rank in range(4)
    ]  # fmt: skip
    assert [process.wait(PATIENCE) for process in running] == [7] * 4
    _check_job(tmp_path)


def test_job_under_mpirun(built: Build, tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing (on Debian: apt-get install openmpi-bin)")
    # Exits with 0: mpirun ends a job whose first rank fails.
    program = ["sh", "-c", f"{built.program('probe')} threads 2 200; test $? = 7"]
    command = ["mpirun", "-n", "4", "--oversubscribe", "--allow-run-as-root"]
    command += cli_command("record", "-o", "job", "--", *program)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _check_job(tmp_path)


def _check_job(folder: Path) -> None:
    files = databases(folder / "job")
    assert [file.name.split("-")[0] for file in files] == ["rank0", "rank1", "rank2", "rank3"]
    for file in files:
        check_closed(file)
    names = [str(file) for file in files]
    done = cli(folder, "merge", *names, "-d", ".", "--summary")
    assert done.returncode == 0, done.stderr
    assert "MARKERS" in done.stdout
    with rocpd.connect([folder / "merged.db"]) as session:
        counts = session.execute("SELECT rank, name, COUNT(*) FROM markers GROUP BY 1, 2 ORDER BY 1, 2").fetchall()
    assert [tuple(row) for row in counts] == [(r, name, 200) for r in range(4) for name in ("inner", "outer")]
    done = cli(folder, "convert", "-f", "pftrace", "-d", ".", *names)
    assert done.returncode == 0, done.stderr
    assert (folder / "out_results.pftrace").stat().st_size > 0
    assert rows(files[0], "SELECT COUNT(*) FROM rocpd_region") == [(400,)]


def test_perfetto_shows_the_same_ranges(built: Build, tmp_path: Path) -> None:
    pytest.importorskip("perfetto")
    from tests.perfetto_engine import Engine

    cli(tmp_path, "record", "-o", "job", "--", str(built.program("probe")), "threads", "3", "100")
    (file,) = databases(tmp_path / "job")
    assert cli(tmp_path, "convert", "-f", "pftrace", "-d", ".", str(file)).returncode == 0
    sql = "select name, count(*) as n, sum(dur) as total from recorded group by name order by name"
    slices = Engine(tmp_path / "out_results.pftrace").rows(sql)
    recorded = rows(file, "SELECT name, COUNT(*), SUM(duration) FROM markers GROUP BY name ORDER BY name")
    assert slices == recorded
