"""Runs commands on damaged files, each case in a process of its own, and says what a case did that none may do.

`python -m tests.hostile.cases FIRST COUNT` runs cases and writes a JSON line for each that misbehaved, then one with
counts; `--only N` with `--keep FOLDER` repeats one and leaves its files. A case is a number: it chooses the file, the
damage and the command.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import apsw

import rocpd
from rocpd.schema.load import VIEWS, view
from rocpd.summary.registry import SUMMARIES
from tests.build import TraceBuilder
from tests.hostile.damage import FAMILIES
from tests.waiting import PATIENCE

MOST_SECONDS = 30
"""Of CPU time: a busy machine changes nothing."""
MOST_BYTES = 1 << 30

BAD, GOOD = "bad.db", "good.db"
_FORBIDDEN = ("Traceback", "bug in rocpd", "Exception ignored", "Error in sys.", "\x1b", "\x9b", "\u202e")
_OF_A_RANK = tuple(name for name in VIEWS if view(name).per_rank)
_ANALYSES = tuple(SUMMARIES)
_SHOWN: tuple[list[str], ...] = (
    ["--annotate-args"], ["--annotate-pmc"], ["--kernel-rename"], ["--group-by-queue"], ["--split", "rank"], [],
    ["--agent-index-value", "type-relative"], ["--start", "20%"], ["--kernel", "gemm"], ["--rank", "1-3"], ["--gzip"],
)  # fmt: skip


def main() -> None:
    """Run the cases that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--only", action="store_true")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rocpd-hostile-", dir=_memory()) as name:
        folder = Path(name)
        originals = make_originals(folder)
        counts = Counter[str]()
        for number in range(asked.first, asked.first + (1 if asked.only else asked.count)):
            case = Case.of(number)
            home = asked.keep or folder / "case"
            outcome = run_case(case, originals, home)
            counts["cases"] += 1
            counts[f"code {outcome.code}"] += 1
            counts["undamaged"] += not outcome.is_damaged
            if not outcome.is_damaged:
                counts[f"undamaged {case.family}"] += 1
            counts["slowest_ms"] = max(counts["slowest_ms"], int(outcome.seconds * 1000))
            counts["most_mb"] = max(counts["most_mb"], outcome.memory >> 20)
            if outcome.code in (1, 2):
                said = next((line for line in outcome.err.splitlines() if "error: " in line), "")
                counts[f"{outcome.code}: {said[:150]} {case.words[0]} {case.words[2]}"] += 1
            if outcome.faults or asked.only:
                print(json.dumps({"case": number, "family": case.family, "words": case.words, "code": outcome.code,
                                  "faults": outcome.faults, "err": outcome.err[-600:]}), flush=True)  # fmt: skip
                counts["misbehaved"] += 1
            if not asked.keep:
                shutil.rmtree(home, ignore_errors=True)
        print(json.dumps(counts))


def _memory() -> str | None:
    """Return a folder in memory, if there is one: cases write and remove much."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass(frozen=True)
class Case:
    """One case: a seed, the family of damage, and the words of a command line in a folder with BAD and GOOD."""

    number: int
    family: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, number: int) -> Case:
        """Return the case of a number; consecutive ones go through all families."""
        random = Random(f"words {number}")
        return cls(number, list(FAMILIES)[number % len(FAMILIES)], tuple(_words(random)))


def _words(random: Random) -> list[str]:
    inputs = random.choice(([BAD], [BAD], [BAD, GOOD], [GOOD, BAD]))
    more = random.choice(([], [], [], ["--skip-bad"]))
    out = ["-d", "../out"]
    relation = random.choice(VIEWS)
    command = random.choices(
        (
            ["query", f"select * from {relation}", "-f", random.choice(("console", "csv", "json", "md", "html"))],
            ["query", f"select count(*), min(rank), max(rank) from {relation}", "-o", "../out/q.csv"],
            ["query", f"select * from {relation}", "-o", f"../out/q.{random.choice(('csv', 'json', 'md', 'html'))}"],
            ["query", "select name, count(*), sum(duration) from kernels group by name order by 3 desc"],
            ["summary"],
            ["summary", "--summary-by-rank", "--domain-summary", "-f", "csv", *out],
            ["summary", random.choice(_ANALYSES)],
            ["summary", "all", "-f", random.choice(("json", "csv", "parquet", "html")), *out],
            ["advise", "-f", random.choice(("console", "json", "md", "html"))],
            ["info"],
            ["merge", *out],
            ["package", "-o", "../out/job.rpdb", "--copy"],
            ["convert", "-f", random.choice(("csv", "pftrace", "json", "otf2")), *random.choice(_SHOWN), *out],
            ["convert", "-f", "csv", "--stats", *out],
            ["convert", "-f", "parquet", *out],
            ["convert", "-f", "arrow", "--view", random.choice(_OF_A_RANK), *out],
            ["shell"],
        ),
        (3, 1, 1, 1, 2, 1, 3, 2, 2, 2, 3, 1, 12, 1, 2, 1, 1),
    )[0]
    if "--group-by-queue" in command and "csv" in command:
        command = ["convert", "-f", "csv", *out]
    return [*command, *more, "-i", *inputs]


@dataclass(frozen=True)
class Outcome:
    """What a case did: exit code, what it did that none may do, stderr, CPU time [s], memory [bytes], and whether its
    file was damaged: not every file can be damaged in every way.
    """

    code: int
    faults: list[str]
    err: str
    seconds: float
    memory: int
    is_damaged: bool


def make_originals(folder: Path) -> list[Path]:
    """Write the small files that are damaged, and a good one at the end."""
    everything = _trace(1)
    for step in range(40):
        _add_step(everything, step * 1000)
    small = _trace(2)
    _add_step(small, 0)
    paths = [everything.write(folder / "everything.db"), small.write(folder / "small.db", "3.0.0")]
    good = _trace(3)
    _add_step(good, 50)
    return [*paths, good.write(folder / "good.db")]


def _trace(number: int) -> TraceBuilder:
    return TraceBuilder(number, pid=100 + number, environment={"OMPI_COMM_WORLD_RANK": str(number)})


def _add_step(trace: TraceBuilder, at: int) -> None:
    stack = 5000 + at
    trace.region("roctxRangePushA", at + 100, at + 990, message=f"step {at}")
    trace.region("hipLaunchKernel", at + 110, at + 150, stack=stack).arg("stream", "0x1").arg("kernel", "gemm")
    trace.kernel(f"void gemm<{at % 7}>(float*)", at + 200, at + 300, stack=stack, region="step")
    trace.counter("SQ_WAVES", 4.0 + at).counter("GRBM_COUNT", 0.5)
    trace.region("ncclAllReduce", at + 301, at + 309, category="RCCL_API").arg("comm", "all")
    trace.arg("count", "8").arg("datatype", "ncclFloat32").region(
        "hipLaunchKernel", at + 302, at + 308, stack=stack + 1
    )
    trace.kernel("ncclDevKernel_AllReduce", at + 310, at + 400, stack=stack + 1)
    trace.copy(at + 400, at + 450).alloc(at + 20, at + 30, address=at + 8192)
    trace.alloc(at + 40, at + 41, kind="FREE", address=at + 8192, size=0)
    trace.alloc(at + 50, at + 60, level="SCRATCH").sample("mark", at + 500, message="here")


def run_case(case: Case, originals: list[Path], home: Path) -> Outcome:
    """Run one case in `home`, which is made; see `Case`."""
    random = Random(f"damage {case.number}")
    job = home / "job"
    job.mkdir(parents=True)
    (home / "tmp").mkdir()
    shutil.copy(random.choice(originals[:-1]), job / BAD)
    shutil.copy(originals[-1], job / GOOD)
    original = _state(job)
    with contextlib.suppress(apsw.Error):  # not every file can be damaged in every way
        FAMILIES[case.family](job / BAD, random)
    before = _state(job)
    code, seconds, memory = _run(case.words, home)
    out, err = ((home / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    faults = list(_faults(home, before, code, out, err, seconds, memory))
    return Outcome(code, faults, err, seconds, memory, before != original)


def _faults(
    home: Path, before: dict[str, str], code: int, out: str, err: str, seconds: float, memory: int
) -> Iterator[str]:
    if code not in range(4):
        yield f"exit code {code}"
    yield from (f"stderr has {word!r}" for word in _FORBIDDEN if word in err)
    yield from (f"stdout has {word!r}" for word in _FORBIDDEN[:2] if word in out)
    if code and len([line for line in err.splitlines() if line.startswith("rocpd: error: ")]) != 1:
        yield "not one error line"
    if code and not err.splitlines()[-1].startswith(("rocpd: error: ", "  hint: ")):
        yield "the error is not last"
    if _state(home / "job") != before:
        yield f"inputs changed, or something lies beside them: {sorted(_state(home / 'job'))}"
    left = sorted(path.name for path in home.glob("out*/**/*"))
    if (code and left) or any(".partial" in name for name in left):
        yield f"partial outputs: {left}"
    if list((home / "tmp").iterdir()):
        yield f"temporary files: {[path.name for path in (home / 'tmp').iterdir()]}"
    if seconds > MOST_SECONDS:
        yield f"took {seconds:.0f} s of CPU time"
    if memory > MOST_BYTES:
        yield f"took {memory >> 20} MB"


def _state(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def _run(words: tuple[str, ...], home: Path) -> tuple[int, float, int]:
    """Run a command in a child; return its exit code (negative: a signal), its CPU time [s] and its memory [bytes]."""
    started = time.monotonic()
    child = os.fork()
    if not child:
        _become(words, home)
    deadline = started + PATIENCE
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        time.sleep(0.002)


def _become(words: tuple[str, ...], home: Path) -> None:
    """Run the command in this process, and end it. What is imported for the first time stays with this process."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.environ["TMPDIR"] = tempfile.tempdir = str(home / "tmp")
    os.chdir(home / "job")
    script = home / "script"
    script.write_text(".tables\nselect count(*) from kernels;\nselect * from regions limit 3;\n")
    for number, path, flags in ((0, script, os.O_RDONLY), (1, home / "stdout", os.O_WRONLY | os.O_CREAT),
                                (2, home / "stderr", os.O_WRONLY | os.O_CREAT)):  # fmt: skip
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (until the process ends)
    try:
        from rocpd.cli import run

        code = run([*words])
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 (it is the finding)
        import traceback

        traceback.print_exc()
        code = 99
    sys.stderr.flush()
    os._exit(code)


def _import_all() -> None:
    """Import what commands import, once for all children."""
    others = ("apsw.shell", "pandas", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet", "sqlglot", "_otf2", "yaml")
    ours = [module.name for module in pkgutil.walk_packages(rocpd.__path__, "rocpd.")]
    for name in (*others, *(name for name in ours if "__main__" not in name)):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in VIEWS:
        view(name)


if __name__ == "__main__":
    _import_all()
    gc.collect()
    gc.freeze()  # else each child copies the pages of what is imported, when it first looks for garbage
    main()
