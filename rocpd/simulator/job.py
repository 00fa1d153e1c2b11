"""Runs a whole simulation: names of files, checks for existing ones, one rank after the other.

The file of a rank has its identity, setup, steps in order, teardown; it is filled without data of other ranks.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rocpd.base import OutputError, Progress
from rocpd.base.evidence import is_foreign_recording
from rocpd.base.identity import BESIDE
from rocpd.base.output import as_output_error, check_free
from rocpd.schema.trace.writer import TraceWriter
from rocpd.schema.write import Writer, create
from rocpd.simulator import faults, workload
from rocpd.simulator.job_plan import JobPlan, RankPlan, plan
from rocpd.simulator.kineto import write_kineto
from rocpd.simulator.options import JobOptions, Plant
from rocpd.simulator.script import Template, word
from rocpd.simulator.stamp import Stamp, StepBatch, TemplateColumns, end_of, identity_of, open_trace, write_symbols
from rocpd.simulator.workload import Recording

_RANK_FILE = re.compile(r"rank\d+\.db(-wal|-shm|-journal)?")


def simulate(options: JobOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write the files of a simulated job, `rank0.db` and on, with leading zeros for more than ten.

    Args:
        options: the job.
        progress: called with ranks done and ranks in all, after each rank; in real time with seconds.

    Returns:
        the files, by rank; a planted fact may have lost one.

    Raises:
        UsageError: the options make no sense.
        OutputError: a file exists (without `force`), belongs to another job, or cannot be written.
    """
    job = plan(options)
    width = len(str(len(job.ranks) - 1))
    files = {options.out / f"rank{rank.number:0{width}d}.db": rank for rank in job.ranks if not rank.lost}
    paths = tuple(files)
    _check_folder(options, paths)
    if options.live is not None:
        from rocpd.simulator.live import play  # few jobs are written in real time

        return play(job, paths, simulate, progress)
    for done, (path, rank) in enumerate(files.items(), 1):
        with as_output_error(path):
            faults.clear_beside(path)
            _write_rank(path, job, rank)
            if options.kineto:
                groups = [job.layout.group_of(rank.number, kind).members for kind in job.layout.communicators()]
                write_kineto(path, options.kineto / f"{path.stem}.json.gz", groups, force=options.force)
            faults.leave_as(path, rank)
        if progress is not None:
            progress(done, len(paths))
    return paths


def _check_folder(options: JobOptions, paths: tuple[Path, ...]) -> None:
    files = {Path(f"{path}{ending}") for path in paths for ending in ("", *BESIDE)}
    for path in sorted(files):
        check_free(path, options.force)
    if options.out.is_dir():
        others = [path for path in sorted(options.out.iterdir()) if path not in files]
        strangers = [path.name for path in others if _RANK_FILE.fullmatch(path.name) or is_foreign_recording(path)]
        if strangers:
            # They would be read as ranks of this job.
            raise OutputError(
                f"{options.out}: holds {strangers[0]} of another job", "choose another folder with -o, or remove it"
            )


LOST_EVENTS_TAG = "recorder_lost_events"
"""Tag of the metadata with the number of events that `rocpd record` could not store."""

_COMMUNICATORS = 0x5581A4C00000  # address of the first one; each process has different ones


def _write_rank(path: Path, job: JobPlan, rank: RankPlan) -> None:
    """Write the file of one rank under `path`, complete or not at all.

    Raises:
        OutputError: the file exists (unless the options say force) or cannot be written.
    """
    with create(path, rank.guid, rank.version, job.options.force) as file:
        if job.options.faults:
            faults.loosen(file)
        _fill(file, job, rank)
        if job.options.faults:
            faults.damage(file)


def _fill(file: Writer, job: JobPlan, rank: RankPlan) -> None:
    trace = open_trace(file, job, rank)
    write_symbols(trace, identity_of(rank), job.role(0).kernels.values())
    if lost := int(job.planting.size(Plant.LOST_EVENTS, 0)):
        trace.note(LOST_EVENTS_TAG, str(lost))
    if rank.empty:
        return
    stamp = Stamp(trace, job.nodes[rank.node], np.random.default_rng([job.options.seed, 2, rank.number]))
    if rank.idle:
        anchors = np.array([[rank.start_ns + 4_000_000, end_of(job, rank), 0]], dtype=np.int64)
        life = TemplateColumns(workload.idle(), trace, identity_of(rank), {})
        stamp.write(life, StepBatch((0,), anchors, np.ones(1), np.ones(1)))
    else:
        _compute(stamp, trace, job, rank)


def _compute(stamp: Stamp, trace: TraceWriter, job: JobPlan, rank: RankPlan) -> None:
    """Write setup, steps and teardown in order, since SQLite appends rows only with ascending ids."""
    role, recorder = job.role(rank.number), Recording(job.options.rccl, job.planting)
    words, work = _words(job, rank), float(job.conditions.work[rank.number])

    def columns(template: Template, work: float = 1.0) -> TemplateColumns:
        return TemplateColumns(recorder.recorded(template), trace, identity_of(rank), words, work)

    last = job.steps + 1
    _rounds(stamp, columns(workload.setup(role)), job, rank, range(1))
    special, plain = (columns(workload.step(role, kind), work) for kind in (True, False))
    for first in range(0, job.steps, workload.SPECIAL_EVERY):
        end = min(first + workload.SPECIAL_EVERY, job.steps)
        _rounds(stamp, special, job, rank, range(first + 1, first + 2))
        _rounds(stamp, plain, job, rank, range(first + 2, end + 1))
    _rounds(stamp, columns(workload.teardown(role)), job, rank, range(last, last + 1))


def _rounds(stamp: Stamp, columns: TemplateColumns, job: JobPlan, rank: RankPlan, rounds: range) -> None:
    if rounds:
        at = slice(rounds.start, rounds.stop), rank.number
        steps = range(rounds.start - 1, rounds.stop - 1)
        conditions = job.conditions
        stamp.write(columns, StepBatch(steps, job.timing.anchors[at], conditions.stretch[at], conditions.clock[at]))


def _words(job: JobPlan, rank: RankPlan) -> dict[str, str]:
    """Return the words that arguments of RCCL's calls contain for the rank's communicators."""
    words: dict[str, str] = {}
    for n, kind in enumerate(job.layout.communicators()):
        members = job.layout.group_of(rank.number, kind).members
        place = members.index(rank.number)
        words[word(kind, "comm")] = f"{_COMMUNICATORS + 0x1000 * rank.pid + 0x40000 * n:#x}"
        facts = {"size": len(members), "rank": place, "-1": place - 1, "1": place + 1}
        words |= {word(kind, fact): str(value) for fact, value in facts.items()}
    return words
