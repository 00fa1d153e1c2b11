"""Runs commands on damaged files, each case in a process of its own, and says what a case did that none may do.

`python -m tests.hostile.cases FIRST COUNT` runs cases and writes a JSON line for each that misbehaved, then one with
counts; `--traces` runs those of other profilers' traces, `--also` further numbers; `--only` with `--keep FOLDER`
repeats the first and leaves its files. A case is a number: it chooses the file, the damage and the command.
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
import select
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

import apsw

import rocpd
from rocpd.agents.questions import Advise, Asking, Replayed, Schema, Selected, SummaryTable
from rocpd.compare.options import DiffOptions
from rocpd.compare.run import profiles_of
from rocpd.history.store import add
from rocpd.schema.load import VIEWS, view
from rocpd.summary.registry import SUMMARIES
from rocpd.summary.relations import RELATIONS
from rocpd.view.desk import ViewedJob
from rocpd.view.lines import RowsTile, SliceDetails, StatesTiles, TakenTile
from rocpd.view.outlines import Overview
from rocpd.view.questions import Page, Question, Statement, TakenPart, TimeLineStart, TraceOfPart
from tests.build import TraceBuilder
from tests.hostile.damage import FAMILIES, Damage
from tests.hostile.traces import DATABASES, make_traces, of_databases, of_texts
from tests.waiting import PATIENCE

MOST_SECONDS = 30
"""Of CPU time: a busy machine changes nothing."""
MOST_BYTES = 1 << 30

BAD, GOOD = "bad.db", "good.db"
_FORBIDDEN = ("Traceback", "bug in rocpd", "Exception ignored", "Error in sys.", "\x1b", "\x9b", "\u202e")
_OF_A_RANK = tuple(name for name in VIEWS if view(name).per_rank)
_ANALYSES = tuple(SUMMARIES)
_CALCULATED = tuple(RELATIONS)
_REPORTS = ("html", "md", "xlsx", "pdf", "ipynb")
_SHOWN: tuple[list[str], ...] = (
    ["--annotate-args"], ["--annotate-pmc"], ["--kernel-rename"], ["--group-by-queue"], ["--split", "rank"], [],
    ["--agent-index-value", "type-relative"], ["--start", "20%"], ["--kernel", "gemm"], ["--rank", "1-3"], ["--gzip"],
)  # fmt: skip


def main() -> None:
    """Run the cases that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--traces", action="store_true")
    parser.add_argument("--also", type=int, nargs="*", default=[])
    parser.add_argument("--only", action="store_true")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rocpd-hostile-", dir=_memory()) as name:
        folder = Path(name)
        originals = make_traces(folder) if asked.traces else make_originals(folder)
        counts = Counter[str]()
        for number in (*range(asked.first, asked.first + (1 if asked.only else asked.count)), *asked.also):
            case = trace_case(number, originals) if asked.traces else database_case(number, originals)
            home = asked.keep or folder / "case"
            outcome = run_case(case, home)
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
    """One case: a number, what is damaged and how, and the words of a command line in a folder with it and GOOD.

    Args:
        number: its seed, too.
        family: of damage.
        original: what is damaged; `good` is what lies beside it.
        bad: what it is called.
        words: of the command line.
    """

    number: int
    family: str
    original: Path
    good: Path
    bad: str
    damage: Damage
    words: tuple[str, ...]


def database_case(number: int, originals: Sequence[Path]) -> Case:
    """Return the case of a number; consecutive ones go through all families."""
    family = list(FAMILIES)[number % len(FAMILIES)]
    *damaged, good = originals
    original = Random(f"file {number}").choice(damaged)
    words = _words(Random(f"words {number}"), BAD, _WHOLE)
    return Case(number, family, original, good, BAD, FAMILIES[family], words)


def trace_case(number: int, originals: Sequence[Path]) -> Case:
    """Return the case of a number; consecutive ones go through all kinds of traces and of damage."""
    *damaged, good = originals
    original = damaged[number % len(damaged)]
    known = of_databases if original.suffix in DATABASES else of_texts
    name, damage = known[number // len(damaged) % len(known)]
    words = _words(Random(f"words {number}"), original.name, _OF_TRACES)
    return Case(number, f"{original.name} {name}", original, good, original.name, damage, words)


_Choice: TypeAlias = Callable[[Random], list[str]]
_OUT = ["-d", "../out"]


def _words(random: Random, bad: str, commands: Mapping[_Choice, int]) -> tuple[str, ...]:
    inputs = random.choice(([bad], [bad], [bad, GOOD], [GOOD, bad]))
    more = random.choice(([], [], [], ["--skip-bad"]))
    (choose,) = random.choices(list(commands), list(commands.values()))
    command = choose(random)
    if "--group-by-queue" in command and "csv" in command:
        command = ["convert", "-f", "csv", *_OUT]
    if command[0] == "diff":
        sides = random.choice(([bad, GOOD], [GOOD, bad], [bad, bad], [bad]))
        step = random.choice((["--step", "1"], ["--rank", "0"]))
        return (*command, *(step if len(sides) == 1 else []), *more, *sides)
    if "--join" in command:
        return (*command, bad, *more, GOOD)
    if command[0] in ("raptor", "import", "view", "history"):
        return (*command, *(more if command[0] != "view" else []), *inputs)
    if command[0] == "cache":
        return tuple(command)
    return (*command, *more, "-i", *inputs)


def _ending(random: Random) -> str:
    return random.choice(("console", "csv", "json", "md", "html"))


_WHOLE: Mapping[_Choice, int] = {
    lambda r: ["query", f"select * from {r.choice(VIEWS)}", "-f", _ending(r)]: 3,
    lambda r: ["query", f"select count(*), min(rank), max(rank) from {r.choice(VIEWS)}", "-o", "../out/q.csv"]: 1,
    lambda r: ["query", f"select * from {r.choice(VIEWS)}", "-o", f"../out/q.{_ending(r)}"]: 1,
    lambda r: ["query", f"select * from {r.choice(_CALCULATED)}"]: 3,
    lambda r: ["query", "select name, count(*), sum(duration) from kernels group by name order by 3 desc"]: 1,
    lambda r: ["summary"]: 2,
    lambda r: ["summary", "--summary-by-rank", "--domain-summary", "-f", "csv", *_OUT]: 1,
    lambda r: ["summary", r.choice(_ANALYSES), *r.choice(([], ["--by", "rank"], ["--by", "step"]))]: 3,
    lambda r: ["summary", "all", "-f", r.choice(("json", "csv", "parquet", "html")), *_OUT]: 2,
    lambda r: ["advise", "-f", r.choice(("console", "json", "md", "html"))]: 2,
    lambda r: ["info"]: 2,
    lambda r: ["merge", *_OUT]: 3,
    lambda r: ["package", "-o", "../out/job.rpdb", "--copy", *r.choice(([], ["--with-index"]))]: 2,
    lambda r: ["convert", "-f", r.choice(("csv", "pftrace", "json", "otf2")), *r.choice(_SHOWN), *_OUT]: 12,
    lambda r: ["convert", "-f", "csv", "--stats", *_OUT]: 1,
    lambda r: ["convert", "-f", "parquet", *_OUT]: 1,
    lambda r: ["convert", "-f", "arrow", "--view", r.choice(_OF_A_RANK), *_OUT]: 2,
    lambda r: ["shell"]: 1,
    lambda r: ["report", "-o", f"../out/r.{r.choice(_REPORTS)}", *r.choice(([], [], ["--plots", "../out/plots"]))]: 6,
    lambda r: [
        "diff",
        "-f",
        _ending(r),
        *r.choice(([], ["-o", "../out/d"], ["--metric", "memory.peak"], ["--metric", "kernel:gemm"])),
    ]: 4,
    lambda r: ["diff", "--save-baseline", "../out/base.json"]: 1,
    lambda r: ["counters", *r.choice(([], ["-f", "csv", *_OUT]))]: 2,
    lambda r: ["trim", "-o", "../out/part.db", *r.choice((["--start", "30%"], ["--step", "1"], ["--auto-roi"]))]: 3,
    lambda r: ["redact", *_OUT, "--level", r.choice(("share", "strict")), *r.choice(([], ["--dry-run"]))]: 4,
    lambda r: ["import", *_OUT]: 1,
    lambda r: ["index", "-d", "../out/index"]: 2,
    lambda r: ["raptor", *r.choice((["--categorize"], ["--variability"], ["--op-trace"]))]: 1,
    lambda r: ["cache", r.choice(("list", "clear"))]: 1,
    lambda r: ["view", r.choice(list(QUESTIONS))]: 6,
    lambda r: ["whatif", *r.choice(([], ["--without", "straggler"], ["--scale", "launch=0.5", "-f", "json"]))]: 2,
    lambda _: ["history", "add", "../out/store"]: 1,
    lambda r: ["history", "check", "../store", "-f", _ending(r)]: 1,
}
_OF_TRACES: Mapping[_Choice, int] = {
    lambda r: ["import", *_OUT]: 6,
    lambda r: ["query", f"select * from {r.choice(VIEWS)}", "-f", _ending(r)]: 2,
    lambda r: ["query", "select name, count(*), sum(duration) from kernels group by name order by 3 desc"]: 1,
    lambda r: ["summary", "all"]: 2,
    lambda r: ["advise"]: 1,
    lambda r: ["info"]: 1,
    lambda r: ["convert", "-f", r.choice(("csv", "pftrace", "json")), *_OUT]: 1,
    lambda r: ["report", "-o", f"../out/r.{r.choice(_REPORTS)}"]: 1,
    lambda r: ["diff"]: 1,
    lambda r: ["trim", "-o", "../out/part.rpd", "--start", "30%"]: 1,
    lambda r: ["redact", *_OUT]: 1,
    lambda r: ["view", r.choice(list(QUESTIONS))]: 1,
    lambda _: ["import", *_OUT, "--join"]: 1,
}


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
    paths.append(good.write(folder / "good.db"))
    with rocpd.connect(paths[0]) as session:
        add(folder / "store", profiles_of(session, DiffOptions()), {})
    return paths


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


def run_case(case: Case, home: Path) -> Outcome:
    """Run one case in `home`, which is made; see `Case`."""
    job = home / "job"
    job.mkdir(parents=True)
    (home / "tmp").mkdir()
    for path, name in ((case.original, case.bad), (case.good, GOOD)):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, job / name)
    if "../store" in case.words:
        shutil.copytree(case.good.parent / "store", home / "store")
    original = _state(job)
    with contextlib.suppress(apsw.Error):  # not every file can be damaged in every way
        case.damage(job / case.bad, Random(f"damage {case.number}"))
    before = _state(job)
    code, seconds, memory = _run(case.words, home)
    out, err = ((home / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    faults = list(_faults(home, before, case.words, code, out, err, seconds, memory))
    return Outcome(code, faults, err, seconds, memory, before != original)


def _faults(
    home: Path,
    before: dict[str, str],
    words: tuple[str, ...],
    code: int,
    out: str,
    err: str,
    seconds: float,
    memory: int,
) -> Iterator[str]:
    is_gate = words[0] == "diff" or words[:2] == ("history", "check")
    if code not in range(5 if is_gate else 4):
        yield f"exit code {code}"
    if is_gate and code in (1, 4):  # verdicts
        code = 0
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
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _run(words: tuple[str, ...], home: Path) -> tuple[int, float, int]:
    """Run a command in a child; return its exit code (negative: a signal), its CPU time [s] and its memory [bytes]."""
    child = os.fork()
    if not child:
        _become(words, home)
    ended = os.pidfd_open(child)
    if not select.select([ended], [], [], PATIENCE)[0]:
        os.killpg(child, signal.SIGKILL)
    os.close(ended)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def _become(words: tuple[str, ...], home: Path) -> None:
    """Run the command in this process, and end it. What is imported for the first time stays with this process."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    os.environ["TMPDIR"] = tempfile.tempdir = str(home / "tmp")
    os.environ["XDG_CACHE_HOME"] = str(home / "cache")
    os.chdir(home / "job")
    script = home / "script"
    script.write_text(".tables\nselect count(*) from kernels;\nselect * from regions limit 3;\n")
    for number, path, flags in ((0, script, os.O_RDONLY), (1, home / "stdout", os.O_WRONLY | os.O_CREAT),
                                (2, home / "stderr", os.O_WRONLY | os.O_CREAT)):  # fmt: skip
        os.dup2(os.open(path, flags, 0o600), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (until the process ends)
    try:
        from rocpd.cli import diagnostics, run

        if words[0] == "view":
            code = diagnostics.reporting_errors(lambda: _ask(*words[1:]), verbose=False)
        else:
            code = run([*words])
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 (it is the finding)
        import traceback

        traceback.print_exc()
        code = 99
    sys.stderr.flush()
    os._exit(code)


class FirstPicture:
    """The overview of the time line, which the server answers itself."""

    def of(self, session: rocpd.Session) -> object:
        """Return the ranks, and the outline of the first."""
        overview = Overview(ViewedJob(()))
        overview.open(session)
        return [overview.ranks().value, overview.outlines((0,), 400).value]


QUESTIONS: Mapping[str, Question | Asking] = {
    "overview": FirstPicture(),
    "tile": StatesTiles((0,), 0, 10**9, 400),
    "rows": RowsTile(TakenTile(0, 0, 10**9, 400)),
    "slice": SliceDetails(0, 2, 0),
    "statement": Statement("select * from kernels join regions using (stack_id)", 1000),
    "blobs": Statement("select zeroblob(90000000), name from kernels", 1000, TakenPart(0, 10**9)),
    "start": TimeLineStart(),
    "page": Page(TakenPart()),
    "part": Page(TakenPart(0, 500)),
    "trace": TraceOfPart(TakenPart(), "../out/x.pftrace"),
    **{f"{ask.NAME} of an agent": ask(("job",), Selected()) for ask in (SummaryTable, Advise, Replayed, Schema)},
}
"""What pages of `rocpd view` ask, and agents."""


def _ask(question: str, *inputs: str) -> int:
    """Answer a question as a process of `rocpd view` does."""
    with ViewedJob(inputs, jobs=1).connect() as session:
        asked = QUESTIONS[question]
        print(json.dumps(asked.answer(session) if isinstance(asked, Asking) else asked.of(session)))
    return 0


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
