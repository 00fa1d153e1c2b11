"""The recorder under AddressSanitizer, in a soak with UndefinedBehaviorSanitizer, and under ThreadSanitizer.

Not with fork: ThreadSanitizer forbids threads in the children of a process with threads, and AddressSanitizer does not
protect its allocator over fork (a child hangs when it is forked while another thread starts).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.record.build import ADDRESS, SOURCE, build
from tests.record.runs import NAMES_STATIC, databases, environment, only, probe, rows
from tests.soak import paired, sized

_SCENARIOS = (
    ("threads", "4", "4000"),
    ("finalize",),
    ("odd",),
    ("kinds",),
    ("burst", "30000"),
    ("ends", "exit"),
    ("ends", "_exit"),
    ("closes", "own"),
    ("wrong",),
    ("correlated",),
    ("named", "and records"),
)
_OPTIONS = {
    "ASAN_OPTIONS": "exitcode=99:detect_leaks=1:abort_on_error=0",
    "LSAN_OPTIONS": f"suppressions={SOURCE / 'tests' / 'lsan.supp'}:print_suppressions=0",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99",
    # GCC 12's runtime takes a library's thread-local block for one of glibc 2.19 where it is 16 bytes into a page (as
    # libdw's sometimes is), and reads its size where none is: one run in thirty ends with "failed to allocate".
    "TSAN_OPTIONS": "exitcode=99:halt_on_error=1:intercept_tls_get_addr=0",
    "ROCPD_FLUSH_MS": "20",
}


@pytest.mark.soak(2.5)
def test_fork_while_the_recorder_starts(tmp_path: Path) -> None:
    """The parent must not open the writer's gate that it did not close; ThreadSanitizer notices. The child records
    nothing, which it bears."""
    chosen = build("thread")
    for run in map(str, range(sized(4, 10))):
        done = probe(chosen, tmp_path / run, "fork-first", env=_OPTIONS)
        assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.soak(2)
@pytest.mark.parametrize("sanitizer", [ADDRESS, "thread"])
def test_clean(tmp_path: Path, sanitizer: str) -> None:
    chosen = build(sanitizer)
    for number, scenario in enumerate(_SCENARIOS):
        folder = tmp_path / str(number)
        arguments = [str(tmp_path / a) if a == "own" else a for a in scenario]
        done = probe(chosen, folder, *arguments, env=_OPTIONS)
        assert done.returncode == 7, (scenario, done.stderr)
        assert "Sanitizer" not in done.stderr
        assert databases(folder)


@pytest.mark.soak(2)
@pytest.mark.parametrize("sanitizer", [ADDRESS, "thread"])
def test_sampling_is_clean(tmp_path: Path, sanitizer: str) -> None:
    """GPUs, process and node are sampled while recording is switched on and off."""
    chosen = build(sanitizer)
    env = _OPTIONS | {"ROCPD_SMI": "200", "ROCPD_SAMPLE_HZ": "100", "ROCPD_CONTROL_DIR": str(tmp_path / "control")}
    env["LD_LIBRARY_PATH"] = str(chosen.folder / "smi")
    done = probe(chosen, tmp_path / "out", "toggles", "10", "0.3", "--password", "x", env=env)
    assert (done.returncode, done.stderr) == (7, "")
    assert databases(tmp_path / "out")


@pytest.mark.soak(8)
@pytest.mark.parametrize("sanitizer", [ADDRESS, "thread"])
def test_native_stacks_are_sampled_cleanly(tmp_path: Path, sanitizer: str) -> None:
    """While threads record, end, and recording is switched on and off."""
    chosen = build(sanitizer)
    scenarios = (("threads", "4", sized("4000", "100000")), ("toggles", "10", "0.3"))
    for scenario, variable in paired(scenarios, ("ROCPD_STACKS", "ROCPD_STACKS_WALL")):
        done = probe(chosen, tmp_path / scenario[0] / variable, *scenario, env=_OPTIONS | {variable: "1000"})
        assert (done.returncode, done.stderr) == (7, "")


def test_a_program_may_change_its_environment(tmp_path: Path) -> None:
    """The recorder's own threads make the file, which describes the environment: not as the program has it then."""
    done = probe(build("thread"), tmp_path, "environment", env=_OPTIONS | {"ROCPD_SAMPLE_HZ": "200"})
    assert (done.returncode, done.stderr) == (7, "")
    stored = rows(only(tmp_path), "SELECT json_extract(environment, '$.ROCPD_SAMPLE_HZ') FROM rocpd_info_process")
    assert stored == [("200",)]


@pytest.mark.skipif(not NAMES_STATIC, reason="suppressions name a function that this Python's executable does not")
def test_pythons_stacks_are_read_without_a_race(tmp_path: Path) -> None:
    """But for one of CPython's own, which is named, with its reason, in the suppressions."""
    chosen = build("thread")
    runtime = subprocess.run(["c++", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=True)
    script = """if True:
        import glob, os, threading, time
        def work(end=time.monotonic() + 0.3):
            while time.monotonic() < end or not glob.glob(os.environ["ROCPD_OUTPUT_PATH"] + "/*.db"): sum(range(500))
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    env = environment(
        tmp_path, LD_PRELOAD=f"{runtime.stdout.strip()}:{chosen.lib / 'librocpd-roctx.so'}", ROCPD_PYTHON_STACKS="200",
        ROCPD_FLUSH_MS="20",
        TSAN_OPTIONS=f"exitcode=99:suppressions={SOURCE / 'tests' / 'tsan.supp'}:print_suppressions=0",
    )  # fmt: skip
    python = os.path.realpath("/proc/self/exe")  # not a script that starts it
    done = subprocess.run([python, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert rows(only(tmp_path), "SELECT COUNT(*) > 0 FROM rocpd_sample") == [(1,)]
