"""Samples of call stacks of C and C++: where time goes is known, and the program runs as it would."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import rocpd
from tests.record.build import SOURCE, Build
from tests.record.cli import cli
from tests.record.runs import NAMES_STATIC, check_sound, databases, environment, only, rows
from tests.soak import sized
from tests.waiting import PATIENCE

_SAMPLES = """
SELECT T.tid, E.call_stack, E.line_info, E.extdata
FROM rocpd_sample S
JOIN rocpd_track T ON T.id = S.track_id
JOIN rocpd_event E ON E.id = S.event_id
JOIN rocpd_string N ON N.id = T.name_id
WHERE N.string = 'Call stack'
"""
_SHARES = {"known_half": 50, "known_third": 30, "known_fifth": 20}
_OPTIMISED = ("-O2", "-fomit-frame-pointer")
_ROUNDS = sized(1200, 14000)
"""Rounds of all threads; as many take a second, or some twenty, of CPU time."""


class Sample(NamedTuple):
    """A sampled stack, the innermost frame first; its places, none where all lines are known; its time [ns]."""

    thread: int
    frames: list[str]
    places: list[str | None]
    time: int


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stacks")


@pytest.fixture(scope="module")
def compiled(folder: Path) -> dict[str, Path]:
    """The program: with debugging information, without, and with a stripped library that it loads."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")

    (folder / "debug").mkdir()

    def compile_(name: str, *sources: str, options: tuple[str, ...] = ()) -> Path:
        paths = [str(SOURCE / "tests" / source) for source in sources]
        subprocess.run(["c++", *_OPTIMISED, *options, *paths, "-o", str(folder / name), "-ldl", "-pthread"], check=True)
        return folder / name

    both = ("stacks_program.cpp", "stacks_library.cpp")
    unstripped = compile_("debug/any", "stacks_library.cpp", options=("-shared", "-fPIC", "-g", "-Wl,--build-id"))
    debug = compile_("known", *both, options=("-g",))
    for option, source, name in (("-s", unstripped, "stripped.so"), ("-g", debug, "plain")):
        subprocess.run(["strip", option, str(source), "-o", str(folder / name)], check=True)
    return {
        "debug": debug,
        "plain": folder / "plain",
        "unstripped": unstripped,
        "stripped": folder / "stripped.so",
    }


def _samples(file: Path) -> list[Sample]:
    times = ("cpu_ns", "wall_ns")
    return [
        Sample(
            tid,
            json.loads(stack),
            json.loads(places).get("places", []),
            next(v for k, v in json.loads(time).items() if k in times),
        )
        for tid, stack, places, time in rows(file, _SAMPLES)
    ]


def _run(built: Build, folder: Path, *command: str, **env: str) -> Path:
    preload = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), "ROCPD_FLUSH_MS": "20"}
    done = subprocess.run(command, env=environment(folder, **(preload | env)), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return only(folder)


def _shares(samples: list[Sample], *places: str) -> dict[str, float]:
    times: Counter[str] = Counter()
    for sample in samples:
        times[next((place for place in places if any(place in frame for frame in sample.frames)), "")] += sample.time
    return {place: 100 * times[place] / times.total() for place in places}


def _is_whole(sample: Sample) -> bool:
    return sample.frames[-1].startswith(("_start", "__clone", "clone"))


@pytest.fixture(scope="module")
def recorded(built: Build, compiled: dict[str, Path], folder: Path) -> Path:
    """The file of eight threads, at 1,000 Hz that many samples come from a second."""
    env = {"ROCPD_STACKS": "1000", "ROCPD_SAMPLE_HZ": "50"}
    return _run(built, folder / "out", str(compiled["debug"]), "8", str(_ROUNDS // 8), **env)


@pytest.fixture(scope="module")
def known(recorded: Path) -> list[Sample]:
    return _samples(recorded)


def test_shares_are_those_of_the_program(known: list[Sample]) -> None:
    assert len({sample.thread for sample in known if any("known_" in frame for frame in sample.frames)}) == 8
    off = sized(12, 3)  # points; 250 samples have a standard error of 3
    assert _shares(known, *_SHARES) == pytest.approx(_SHARES, abs=off)


def test_stacks_reach_the_start_of_the_thread(known: list[Sample]) -> None:
    assert sum(map(_is_whole, known)) >= 0.99 * len(known)


def test_recursion_is_unwound_frame_by_frame(known: list[Sample]) -> None:
    deep = [sum("known_fifth(" in frame for frame in sample.frames) for sample in known]
    assert {depth for depth in deep if depth} == {31}


def test_lines_and_inlined_functions(known: list[Sample]) -> None:
    if shutil.which("eu-readelf") is None and not _has_libdw():
        pytest.skip("no libdw")
    stack = next(sample.frames for sample in known if any("known_third" in frame for frame in sample.frames))
    at = next(i for i, frame in enumerate(stack) if "known_third" in frame)
    assert [frame.partition(" at ")[0] for frame in stack[at - 2 : at]] == [
        "(inlined) in spin(int)", "(inlined) in known_inlined",
    ]  # fmt: skip
    source = (SOURCE / "tests" / "stacks_program.cpp").read_text().splitlines()
    line = int(stack[at].rpartition(":")[2])
    assert "known_inlined(turns);" in source[line - 1]


@cache
def _has_libdw() -> bool:
    import ctypes

    try:
        return bool(ctypes.CDLL("libdw.so.1"))
    except OSError:
        return False


def test_time_is_that_of_the_samples(recorded: Path, known: list[Sample]) -> None:
    """Beside the samples of another kind."""
    with rocpd.connect([recorded]) as session:
        (row,) = [r for r in session.summary("stacks").df().to_dict("records") if "known_thread" in r["function"]]
    assert row["kind"] == "samples"
    assert row["total_ns"] == sum(sample.time for sample in known if "known_thread" in str(sample.frames))


@pytest.fixture(scope="module")
def with_stripped(built: Build, compiled: dict[str, Path], folder: Path) -> Path:
    """The file of a program that loads a stripped library."""
    words = str(compiled["plain"]), "2", str(_ROUNDS // 8), str(compiled["stripped"])
    return _run(built, folder / "stripped", *words, ROCPD_STACKS="500")


def _is_at(sample: Sample, function: str, file: str) -> bool:
    return any(frame.startswith(function) and f"/{file}:" in frame for frame in sample.frames)


def test_names_come_from_elsewhere(with_stripped: Path, compiled: dict[str, Path], tmp_path: Path) -> None:
    """Into copies: the file itself stays as it was."""
    if shutil.which("addr2line") is None:
        pytest.skip("no addr2line")
    raw = with_stripped.read_bytes()
    debug = str(compiled["unstripped"].parent)
    done = cli(tmp_path, "symbolize", str(with_stripped), "--debug-dir", debug, "-d", "named")
    assert (done.returncode, with_stripped.read_bytes() == raw) == (0, True), done.stderr
    (named,) = (tmp_path / "named").glob("*.db")
    check_sound(named)
    before, after = _samples(with_stripped), _samples(named)
    assert sum("stripped.so+0x" in str(sample.frames) for sample in before) == sum(
        _is_at(sample, "half_inside", "stacks_library.cpp") for sample in after
    )
    stack = next(sample.frames for sample in after if "half_inside" in str(sample.frames))
    assert stack[0].startswith("(inlined) in spin(int) at ")
    assert not any("stripped.so+" in str(sample) for sample in after)


def test_functions_of_a_stripped_library_have_their_place(with_stripped: Path) -> None:
    samples = [sample for sample in _samples(with_stripped) if "stripped.so+0x" in str(sample.frames)]
    assert samples
    for sample in samples:
        at = next(i for i, frame in enumerate(sample.frames) if frame.startswith("stripped.so+0x"))
        place = sample.places[at]
        assert place is not None
        start, exact = (int(text.rpartition("+")[2], 16) for text in (sample.frames[at], place))
        assert start <= exact < start + 200
        assert len(sample.places) == len(sample.frames)


@pytest.mark.parametrize(("chosen", "seen"), [("^kno.n$", "known_thread"), ("main", "main")])
def test_threads_are_chosen_by_name(
    built: Build, compiled: dict[str, Path], tmp_path: Path, chosen: str, seen: str
) -> None:
    """By wall time: the main thread waits for the others."""
    env = {"ROCPD_STACKS_WALL": "200", "ROCPD_STACK_THREADS": chosen}
    samples = _samples(_run(built, tmp_path / "out", str(compiled["plain"]), "2", str(_ROUNDS // 8), **env))
    functions = {re.split(r"[(]", frame.removeprefix("(anonymous namespace)::"))[0] for sample in samples
                 for frame in sample.frames}  # fmt: skip
    assert functions & {"known_thread", "main"} == {seen}


_CALLERS: dict[str, set[tuple[str, ...]]] = {
    "spins_leaf": {("calls",)},
    "spins_aligned": {("calls",), ("calls_directly",), ("calls_in_turn",)},
    "spins_pushed": {("calls",)},
    "inside": {("spins_called", "calls")},
    "spins_hidden": set(),
    "0x": {("calls",)},
}
"""Functions without tables, and code that the program made: by which functions each is called, on all ways."""


def test_callers_of_assembly_are_right_or_unknown(built: Build, tmp_path: Path) -> None:
    """On stacks that hold return addresses of calls before; where a function hides its caller, none is named."""
    if " fma " not in Path("/proc/cpuinfo").read_text() or shutil.which("c++") is None:
        pytest.skip("no instructions of AVX, or no C++ compiler")
    sources = [str(SOURCE / "tests" / name) for name in ("stacks_callers.cpp", "stacks_assembly.S")]
    program = str(tmp_path / "callers")
    subprocess.run(["c++", *_OPTIMISED, *sources, "-o", program], check=True)
    samples = _samples(_run(built, tmp_path / "out", program, sized("300", "6000"), ROCPD_STACKS="1000"))
    seen: Counter[str] = Counter()
    for sample in samples:
        names = [frame.partition("(anonymous namespace)::")[2] or frame for frame in sample.frames]
        names = [re.split(r"\(| at |(?<=^0x)", name)[0] for name in names if not name.startswith("(inlined)")]
        if names[0] not in _CALLERS:
            continue
        is_known = sample.frames[-1] != "(callers unknown)"
        until = names.index("main") if is_known else 1
        assert not is_known or tuple(names[1:until]) in _CALLERS[names[0]], sample.frames
        seen[names[0] if is_known else "unknown"] += names[0] != "spins_hidden" or is_known
    assert set(seen) - {"unknown"} == set(_CALLERS) - {"spins_hidden"}
    assert seen["unknown"] <= 0.02 * seen.total()


_WAITS = """
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static int interrupted;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void* waits_for_lock(void* x) {
    pthread_mutex_lock(&mutex);
    return x;
}

__attribute__((noinline)) void polls(void) {
    for (int i = 0; i < 40; ++i)
        if (poll(0, 0, 20) < 0) interrupted = 1;
}

__attribute__((noinline)) void sleeps(void) {
    struct timespec time = {0, 20000000};
    for (int i = 0; i < 40; ++i)
        if (nanosleep(&time, 0) < 0) interrupted = 1;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, 0, waits_for_lock, 0);
    polls();
    sleeps();
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, 0);
    return interrupted;
}
"""


def test_waiting_is_seen_and_not_ended_early(built: Build, compiled: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "waits.c").write_text(_WAITS)
    subprocess.run(["cc", "-O2", "waits.c", "-o", "waits", "-pthread"], cwd=tmp_path, check=True)
    samples = _samples(_run(built, tmp_path / "out", str(tmp_path / "waits"), ROCPD_STACKS_WALL="200"))
    waits = _shares([sample for sample in samples if "main" in sample.frames], "polls", "sleeps")
    assert waits == pytest.approx({"polls": 50, "sleeps": 50}, abs=20)
    assert any("waits_for_lock" in sample.frames for sample in samples)


_LIVES = """
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long result;
static double seconds(clockid_t of) {
    struct timespec now;
    clock_gettime(of, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
/* Threads are looked for some times a second: on a busy machine that takes CPU time of others. */
static void spin(void) {
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) + 0.15, wall = seconds(CLOCK_MONOTONIC) + 0.5;
    while (seconds(CLOCK_PROCESS_CPUTIME_ID) < cpu || seconds(CLOCK_MONOTONIC) < wall)
        for (int i = 0; i < 1000000; ++i) result = result * 3 + 1;
}
__attribute__((noinline)) void in_child(void) { spin(); result = 0; }
__attribute__((noinline)) void in_handler(int number) { spin(); result = (unsigned long)number; }
__attribute__((noinline)) void in_other_program(void) { spin(); result = 0; }

int main(int count, char** words) {
    if (count > 1) {
        in_other_program();
        return 0;
    }
    signal(SIGUSR1, in_handler);
    raise(SIGUSR1);
    if (fork() == 0) {
        in_child();
        exit(0);
    }
    wait(0);
    execl("/proc/self/exe", words[0], "again", (char*)0);
    return 1;
}
"""


def test_forks_handlers_and_other_programs(built: Build, compiled: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "lives.c").write_text(_LIVES)
    subprocess.run(["cc", "-O1", "lives.c", "-o", "lives"], cwd=tmp_path, check=True)
    env = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), "ROCPD_STACKS": "500"}
    done = subprocess.run([str(tmp_path / "lives")], env=environment(tmp_path / "out", **env), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    samples = [sample for file in databases(tmp_path / "out") for sample in _samples(file)]
    for function in ("in_child", "in_handler", "in_other_program"):
        inside = [sample for sample in samples if function in sample.frames]
        assert inside
        assert all(sample.frames[-1] == "_start" and "main" in sample.frames for sample in inside)


_HOSTILE = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long result;
static void spin(int turns) { while (turns-- > 0) for (int i = 0; i < 1000; ++i) result = result * 3 + 1; }
static void handler(int number) { spin(20); result += (unsigned long)number; }

static void* works(void* library) {
    for (int i = 0; i < 20; ++i) {
        void* loaded = dlopen(library, RTLD_NOW);
        spin(1000);
        if (loaded) ((void (*)(int))dlsym(loaded, "known_half"))(100);
        if (loaded) dlclose(loaded);
        kill(getpid(), i % 2 ? SIGUSR1 : SIGUSR2);
    }
    return 0;
}

int main(int count, char** words) {
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    signal(SIGALRM, handler);
    for (int i = 0; count > 2 && i < atoi(words[2]); ++i) {
        pthread_t threads[3];
        for (int each = 0; each < 3; ++each) pthread_create(&threads[each], 0, works, words[1]);
        ualarm(3000, 3000);
        pid_t child = fork();
        if (child == 0) {
            spin(2000);
            i % 3 == 0 ? _exit(0) : i % 3 == 1 ? exit(0) : abort();
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0) {}
        if (!WIFEXITED(status) && !(i % 3 == 2 && WTERMSIG(status) == SIGABRT)) return 9;
        for (int each = 0; each < 3; ++each) pthread_join(threads[each], 0);
    }
    return 7;
}
"""


@pytest.mark.soak(60)
def test_signals_forks_and_kills(built: Build, compiled: dict[str, Path], tmp_path: Path) -> None:
    """The program ends as it would, or by the signal that it gets; what was flushed is in sound files."""
    (tmp_path / "hostile.c").write_text(_HOSTILE)
    subprocess.run(["cc", "-O1", "hostile.c", "-o", "hostile", "-ldl", "-pthread"], cwd=tmp_path, check=True)
    chance = random.Random(37)
    for run in range(sized(3, 200)):
        rate = {chance.choice(("ROCPD_STACKS", "ROCPD_STACKS_WALL")): chance.choice(("100", "1000"))}
        preload = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), "ROCPD_FLUSH_MS": "20"}
        folder = tmp_path / str(run)
        command = [str(tmp_path / "hostile"), str(compiled["stripped"]), sized("5", "12")]
        ends_by = chance.choice((None, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        with subprocess.Popen(command, env=environment(folder, **(preload | rate)), stderr=subprocess.PIPE) as process:
            if ends_by is not None:
                time.sleep(sized(0.4, 1.0) * chance.random())
                process.send_signal(ends_by)
            _, errors = process.communicate(timeout=PATIENCE)
        assert (process.returncode, errors) in ((7, b""), (-(ends_by or 0), b"")), (run, rate, ends_by)
        for file in folder.glob("*.db") if folder.exists() else ():
            check_sound(file)


_EARLY = """
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static void ask_to_end(void) { kill(getpid(), SIGTERM); }
__attribute__((constructor)) static void register_first(void) { pthread_atfork(ask_to_end, 0, 0); }
"""
_FORKS = """
#include <dlfcn.h>
#include <unistd.h>

int main(void) {
    ((int (*)(const char*))dlsym(RTLD_DEFAULT, "roctxRangePushA"))("before");
    ((int (*)(void))dlsym(RTLD_DEFAULT, "roctxRangePop"))();
    if (fork() == 0) _exit(0);
    for (;;) pause();
}
"""


def test_a_signal_within_fork_waits_for_its_end(built: Build, tmp_path: Path) -> None:
    """The recorder holds what its writer needs during fork(): a handler that waits there loses the last events."""
    # What registers first runs last before fork(): after the recorder has taken its locks.
    first = ("-shared", "-fPIC", "-Wl,-z,initfirst")
    for name, text, options in (("early.so", _EARLY, first), ("forks", _FORKS, ("-ldl",))):
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run(["cc", f"{name}.c", "-o", name, *options], cwd=tmp_path, check=True)
    libraries = f"{built.lib / 'librocpd-roctx.so'} {tmp_path / 'early.so'}"
    env = environment(tmp_path / "out", LD_PRELOAD=libraries, ROCPD_FLUSH_MS="100000")
    done = subprocess.run([str(tmp_path / "forks")], env=env, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, b"")
    assert rows(only(tmp_path / "out"), "SELECT count(*) FROM rocpd_region") == [(1,)]


def test_a_program_that_takes_all_signals_goes_on(built: Build, compiled: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "takes.c").write_text(
        "#include <signal.h>\n#include <unistd.h>\nint main(void) {"
        "for (int i = SIGRTMIN; i <= SIGRTMAX; ++i) signal(i, SIG_IGN); usleep(400000); return 3; }"
    )
    subprocess.run(["cc", "takes.c", "-o", "takes"], cwd=tmp_path, check=True)
    env = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), "ROCPD_STACKS": "100"}
    done = subprocess.run(
        [str(tmp_path / "takes")], env=environment(tmp_path / "out", **env), capture_output=True, text=True
    )
    assert done.returncode == 3
    assert done.stderr.splitlines() == ["rocpd: the program uses signal 60: no further call stacks"]


_FORBIDS = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void spin(void) {
    const clock_t end = clock() + CLOCKS_PER_SEC / 4;
    while (clock() < end) {}
}

int main(int count, char** words) {
    if (count < 3) spin();
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(words[1]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {4, steps};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 9;
    if (count < 3) {
        spin();
        return 3;
    }
    execvp(words[2], words + 2);
    return 9;
}
"""


@pytest.mark.parametrize(("call", "name"), [(310, "process_vm_readv"), (222, "timer_create")])
def test_what_a_container_forbids_is_one_line(built: Build, tmp_path: Path, call: int, name: str) -> None:
    """And the program goes on."""
    (tmp_path / "forbids.c").write_text(_FORBIDS)
    subprocess.run(["cc", "forbids.c", "-o", "forbids"], cwd=tmp_path, check=True)
    library = f"LD_PRELOAD={built.lib / 'librocpd-roctx.so'}"
    command = [str(tmp_path / "forbids"), str(call), "env", library, "sh", "-c", "exit 3"]
    env = environment(tmp_path / "out", ROCPD_STACKS="100")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode == 9:
        pytest.skip("no seccomp here")
    line = f"rocpd: {name} is not permitted here (seccomp): no call stacks of C and C++"
    assert (done.returncode, done.stderr.splitlines()) == (3, [line])


def test_what_a_program_forbids_later_is_one_line(built: Build, tmp_path: Path) -> None:
    """And functions are seen without their callers."""
    (tmp_path / "forbids.c").write_text(_FORBIDS)
    subprocess.run(["cc", "forbids.c", "-o", "forbids"], cwd=tmp_path, check=True)
    env = {"LD_PRELOAD": str(built.lib / "librocpd-roctx.so"), "ROCPD_STACKS": "500"}
    done = subprocess.run(
        [str(tmp_path / "forbids"), "310"], env=environment(tmp_path / "out", **env), capture_output=True, text=True
    )
    if done.returncode == 9:
        pytest.skip("no seccomp here")
    line = "rocpd: the program forbade process_vm_readv (seccomp): call stacks without callers from now on"
    assert (done.returncode, done.stderr.splitlines()) == (3, [line])
    outermost = {sample.frames[-1] for sample in _samples(only(tmp_path / "out"))}
    assert outermost == {"_start", "(callers unknown)"}


@pytest.mark.parametrize("other", ["--stacks-wall", "--python-stacks"])
def test_no_time_is_sampled_twice(built: Build, tmp_path: Path, other: str) -> None:
    done = cli(tmp_path, "record", "--stacks", "9", other, "9", "--", "true", ROCPD_TOOL_DIR=str(built.folder))
    assert (done.returncode, f"--stacks and {other}" in done.stderr) == (2, True)


_PYTHON = """
import time

class Model:
    def forward(self, data):
        return sorted(data, key=self.key)

    def key(self, number):
        return number * 7 % 1001

def train(end):
    data = list(range(3000))
    while time.process_time() < end:
        Model().forward(data)

train(0.6)
"""


@pytest.mark.skipif(not (3, 11) <= sys.version_info < (3, 14), reason="frames of this Python are not read")
def test_python_and_native_frames_are_one_stack(built: Build, tmp_path: Path) -> None:
    """What Python called in C, and what that called in Python, stand where they were called."""
    (tmp_path / "program.py").write_text(_PYTHON)
    program = str(tmp_path / "program.py")
    samples = _samples(_run(built, tmp_path / "out", sys.executable, program, ROCPD_STACKS="500"))
    stacks = [[frame for frame in sample.frames if "program.py" in frame or "list_sort" in frame] for sample in samples]
    sorting = [stack for stack in stacks if any("Model.key" in frame for frame in stack)]
    assert sorting
    outer = [f"{program}({line}): {function}" for line, function in
             ((6, "Model.forward"), (14, "train"), (16, "<module>"))]  # fmt: skip
    for key, *between, first, second, third in sorting:
        assert key in [f"{program}({line}): Model.key" for line in (7, 8, 9)]  # 7 while the function is entered
        assert [first, second, third] == outer
        assert all(frame.startswith("list_sort") for frame in between)
        assert between or not NAMES_STATIC
