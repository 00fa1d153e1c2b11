"""What recording costs: a range against its clocks, the writer against bare SQLite, a NumPy program."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure import cache, scaled

REGIONS = 300_000
ROUNDS = 5
PAIRS = 200
VISIBLE_PAIRS, VISIBLE_BAR = 9, 1

_STEPS = """
import statistics, time
import numpy as np
from rocpd import record
from rocpd.record import marks
size = 256
a = np.random.default_rng(0).random((size, size))
def step(a):
    with record.range("step"):
        with record.range("forward"):
            b = a @ a
            b /= np.linalg.norm(b)
        with record.range("backward"):
            c = b @ a.T
            record.mark("loss")
        return c
def block():
    start = time.perf_counter()
    for _ in [0] * 20: step(a)
    return time.perf_counter() - start
"""

_PROGRAM = (
    _STEPS
    + """
def recorded(on):
    if on: marks.connect()
    else: marks.Calls.push, marks.Calls.pop, marks.Calls.mark = marks.nothing, marks.nothing, marks.nothing
    return block()
block()
pairs = []
for n in [0, 1] * %d:
    first = recorded(bool(n))
    second = recorded(not n)
    pairs.append((first / second) if n else (second / first))
print(statistics.median(pairs))
"""
)

_VISIBLE = (
    _STEPS
    + """
for _ in [0] * %d: block()
"""
)

_SAMPLED = """
import ctypes, statistics, threading, time
recorder = ctypes.CDLL("librocpd-recorder.so")  # the one that is in this process
waiting = threading.Event()
for _ in [0] * 4: threading.Thread(target=waiting.wait, daemon=True).start()
def deep(depth):
    if depth: return deep(depth - 1)
    return sum(number %% 7 for number in range(2000))
def block():
    start = time.process_time(), time.perf_counter()
    for _ in [0] * 2000: deep(20)
    return time.process_time() - start[0], time.perf_counter() - start[1]
def sampled(on):
    (recorder.rocpd_start if on else recorder.rocpd_stop)()
    return block()
block()
pairs = []
for n in [0, 1] * %d:
    first, second = sampled(n), sampled(1 - n)
    pairs.append([a / b for a, b in zip(*((first, second) if n else (second, first)))])
print(*(statistics.median(column) for column in zip(*pairs)))
"""


def run() -> None:
    """Print each figure with its bar; needs `make tool`."""
    build = Path(__file__).resolve().parents[1] / "sdk_tool" / "build"
    program = build / "bin" / "recorder_bench"
    if not program.is_file():
        print("the recorder has not been built: make tool")
        return
    folder = Path(tempfile.mkdtemp(dir=cache()))
    try:
        _pairs(program, folder)
        _writer(program, folder)
        _numpy(build / "lib" / "librocpd-roctx.so", folder)
        _visible(build / "lib" / "librocpd-roctx.so", folder)
        _stacks(build / "lib" / "librocpd-roctx.so", folder)
    finally:
        shutil.rmtree(folder)


def _bench(program: Path, folder: Path, *arguments: str, **more: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(program), *arguments], env=_environment(folder) | more, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ROCPD_")}
    return inherited | {"ROCPD_OUTPUT_PATH": str(folder / "out"), "ROCPD_CONTROL": "0"}


def _pairs(program: Path, folder: Path) -> None:
    found = [_bench(program, folder, "pairs") for _ in range(scaled(ROUNDS))]

    def median(name: str) -> float:
        return statistics.median(float(one[name]) for one in found)

    timer = median("timer_median")
    pair, clocks = median("pair_in_burst"), median("clocks_in_burst")
    print(f"push + pop, in bursts that fit the buffer: {pair:.0f} ns; two clock_gettime calls: {clocks:.0f} ns")
    print(
        f"  {pair / clocks:.2f} x the clocks (bar: 3); single pairs: median {median('pair_median') - timer:.0f} ns, "
        f"p99 {median('pair_p99') - timer:.0f} ns, worst {median('pair_worst') / 1000:.0f} us (off its core)"
    )


def _writer(program: Path, folder: Path) -> None:
    regions, recorded, bare = scaled(REGIONS), [], []
    for _ in range(scaled(ROUNDS)):
        found = _bench(program, folder, "sustained", str(regions))
        recorded.append(found)
        same = folder / "bare.db"
        shutil.move(str(found["file"]), same)
        bare.append(float(_bench(program, folder, "bare", str(regions), str(same))["total_s"]))
    total = statistics.median(float(one["total_s"]) for one in recorded)
    record = statistics.median(float(one["record_s"]) for one in recorded)
    reference = statistics.median(bare)
    print(f"sustained, buffer full and writer running: {record / regions * 1e9:.0f} ns a pair in the recording thread")
    print(f"  {regions / total / 1e3:.0f} k regions/s into the file, a bare loop of prepared inserts of the same rows "
          f"{regions / reference / 1e3:.0f} k/s: {reference / total * 100:.0f} % (bar: 60)")  # fmt: skip


def _numpy(library: Path, folder: Path) -> None:
    """Time blocks of the same steps with and without, in turn: a machine that slows down does so for both."""
    script = folder / "program.py"
    script.write_text(_PROGRAM % scaled(PAIRS // 2), encoding="utf-8")
    env = _annotated(library, folder)
    found = []
    for _ in range(scaled(ROUNDS)):
        done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True)
        found.append((float(done.stdout) - 1) * 100)
    print(
        f"annotated NumPy program, {ROUNDS} runs of {PAIRS} interleaved pairs: {statistics.median(found):+.2f} % with "
        f"recording on (bar: 2), {min(found):+.2f} … {max(found):+.2f} %"
    )


def _annotated(library: Path, folder: Path) -> dict[str, str]:
    """Return the environment of an annotated NumPy program that is recorded."""
    package = str(Path(__file__).resolve().parents[1])
    return _environment(folder) | {
        "PYTHONPATH": package,
        "OPENBLAS_NUM_THREADS": "1",
        "LD_PRELOAD": str(library),
    }


def _visible(library: Path, folder: Path) -> None:
    """Compare the CPU time of a program whose rows are visible within a second with that of one at its end."""
    script = folder / "visible.py"
    script.write_text(_VISIBLE % scaled(PAIRS // 2), encoding="utf-8")

    def cpu(**flush: str) -> float:
        with subprocess.Popen([sys.executable, str(script)], env=_annotated(library, folder) | flush) as program:
            _, status, usage = os.wait4(program.pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise subprocess.CalledProcessError(program.returncode, program.args)
        return usage.ru_utime + usage.ru_stime

    more = []
    for number in range(VISIBLE_PAIRS):
        ways = [{}, {"ROCPD_FLUSH_MS": "3600000"}][:: -1 if number % 2 else 1]
        first, second = (cpu(**way) for way in ways)
        more.append(((second / first if number % 2 else first / second) - 1) * 100)
    low, middle, high = statistics.quantiles(more)
    noise = " (too noisy to tell)" if high - low > 2 * VISIBLE_BAR else ""
    print(
        f"rows visible within a second, not at the end, {VISIBLE_PAIRS} interleaved pairs: {middle:+.2f} % CPU time "
        f"(bar: {VISIBLE_BAR}), half of them {low:+.2f} … {high:+.2f} %{noise}"
    )


def _stacks(library: Path, folder: Path) -> None:
    """Time blocks of the same work, 20 calls deep and beside four waiting threads, with samples and without."""
    env = _environment(folder) | {"LD_PRELOAD": str(library), "ROCPD_PYTHON_STACKS": "100", "ROCPD_START": "0"}
    env["LD_LIBRARY_PATH"] = str(library.parent)
    script = folder / "sampled.py"
    script.write_text(_SAMPLED % scaled(PAIRS // 20), encoding="utf-8")
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(scaled(ROUNDS)):
        done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, check=True)
        for column, ratio in zip((cpu, wall), done.stdout.split(), strict=True):
            column.append((float(ratio) - 1) * 100)
    print(
        f"Python call stacks at 100 Hz, {ROUNDS} runs of {PAIRS // 10} interleaved pairs: "
        f"{statistics.median(cpu):+.2f} % CPU time (bar: 2), {statistics.median(wall):+.2f} % time"
    )
