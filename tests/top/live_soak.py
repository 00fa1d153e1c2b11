"""A simulated job in real time with `rocpd top` and `rocpd hang` beside it, and what these said when.

`python -m tests.top.live_soak 8 0 straggler` runs one by hand, and prints it as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import rocpd
from rocpd.live.hang import hang
from rocpd.simulator import JobOptions
from rocpd.simulator.job_plan import JobPlan, plan
from rocpd.simulator.live import parse_incident
from rocpd.top.glance import LIKELY

STEPS = 40


@dataclass
class Seen:
    """What was seen of a job.

    Args:
        load: processes that wanted to run, per core, at the end.
        rows_s: from the first file to the first line with rows [s].
        named: newest step in the line -> ranks that were named as stragglers.
        named_s: from the first file to the first line that names somebody [s].
        passed: how many steps had been played until that line.
        looked_at: newest step of the first line with conclusions.
        hang_s: from the stop to the answer that names somebody [s], and whom.
        last: what the last line said.
        cpu_s: of `rocpd top` [s].
        wall_s: how long that ran [s].
        errors: what it said on stderr.
    """

    load: float = 0.0
    rows_s: float | None = None
    named: dict[int, list[int]] = field(default_factory=dict)
    named_s: float | None = None
    passed: int | None = None
    looked_at: int | None = None
    hang_s: float | None = None
    missing: list[int] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    cpu_s: float = 0.0
    wall_s: float = 0.0
    errors: str = ""


def stragglers(glance: dict[str, Any]) -> list[int]:
    """Return the ranks that a line names."""
    return [
        rank["rank"]
        for rank in glance["ranks"]
        if rank["cost_percent"] is not None and rank["chance"] is not None and rank["chance"] <= LIKELY
    ]


def watch(folder: Path, *words: str, kill_s: float = 0.0) -> Seen:
    """Write a job in real time, and watch it to its end; `kill_s`: the writer is killed after so long."""
    seen = Seen()
    rocpd_ = [sys.executable, "-m", "rocpd"]
    writer = subprocess.Popen([*rocpd_, "simulate", "-o", str(folder), *words], stderr=subprocess.PIPE, text=True)
    while not any(folder.glob("*.db")) and writer.poll() is None:
        time.sleep(0.02)
    assert any(folder.glob("*.db")), writer.communicate()[1]
    first = began = time.time()
    with tempfile.TemporaryFile("w+") as said:
        top = subprocess.Popen(
            [*rocpd_, "top", str(folder), "--follow", "--format", "json", "-v"],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        assert top.stdout
        for line in top.stdout:
            glance = json.loads(line)
            if seen.rows_s is None and any(rank["rows"] for rank in glance["ranks"]):
                seen.rows_s = time.time() - first
            step = glance["step"]
            if step is not None and glance["looked_at"]:
                seen.looked_at = step if seen.looked_at is None else seen.looked_at
                seen.named[step] = stragglers(glance)
                if seen.named[step] and seen.named_s is None:
                    seen.named_s = time.time() - first
            seen.last = glance
            if kill_s and time.time() - began > kill_s:
                writer.kill()
            if writer.poll() is not None and kill_s and time.time() - began > kill_s + 8:
                top.terminate()
        top.stdout.close()
        _, status, usage = os.wait4(top.pid, 0)
        top.returncode = os.waitstatus_to_exitcode(status)
        seen.cpu_s, seen.wall_s = usage.ru_utime + usage.ru_stime, time.time() - began
        said.seek(0)
        seen.errors = said.read()
    writer.communicate()
    seen.load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seen


def steps_passed(job: JobPlan, seconds: float) -> int:
    """Return how many steps of a job that is written in real time have been played after so long [s]."""
    first = min(rank.start_ns for rank in job.ranks)
    ends = job.timing.anchors[2:, :, 0].max(axis=1) - first
    return int((ends <= seconds * 1e9 * float(job.options.live or 1.0)).sum())


def hang_of(folder: Path, ranks: int, seed: int, incident: str) -> Seen:
    """Write a job that hangs, and ask until somebody is named."""
    seen = Seen()
    rocpd_ = [sys.executable, "-m", "rocpd"]
    words = ("--ranks", str(ranks), "--seed", str(seed), "--steps", "8", "--live", "1", "--plant", "none")
    hold = ("--incident", incident, "--hold", "60")
    writer = subprocess.Popen([*rocpd_, "simulate", "-o", str(folder), *words, *hold], stderr=subprocess.DEVNULL)
    stopped: float | None = None
    try:
        while writer.poll() is None and not seen.missing:
            if len([*folder.glob("*.live")]) < ranks:
                time.sleep(0.05)
                continue
            with rocpd.connect(folder) as session:
                answer = hang(session)
            states = [rank.state for rank in answer.ranks if rank.state]
            newest = max(
                (
                    state.wall - (state.clock - max(group.entered_at, group.left_at))
                    for state in states
                    for group in state.groups
                ),
                default=0,
            )
            stopped = newest / 1e9
            seen.missing = list(answer.missing)
            if not answer.missing:
                time.sleep(0.2)
    finally:
        writer.kill()
        writer.wait()
    seen.hang_s = time.time() - stopped if stopped else None
    seen.load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seen


def main() -> None:
    """Run one by hand."""
    ranks, seed, plant, live = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "job"
        if plant in ("stall", "kill"):
            seen = hang_of(out, ranks, seed, plant)
            happening = parse_incident(plant, ranks, 8, seed)
            print("planted", happening and happening.rank, json.dumps(asdict(seen)))
            return
        steps = sys.argv[5] if len(sys.argv) > 5 else str(STEPS)
        seen = watch(
            out, "--ranks", str(ranks), "--seed", str(seed), "--plant", plant, "--live", live, "--steps", steps
        )
        job = plan(JobOptions(out, ranks=ranks, seed=seed, steps=int(steps), plant=plant, live=float(live)))
        seen.passed = steps_passed(job, seen.named_s) if seen.named_s else None
        with rocpd.connect(out) as session:
            parts = {part: percent for part, _, _, percent in session.summary("budget")}
        equal = {part: round(share - parts[part], 6) for part, share in seen.last["parts_percent"].items()}
        ranks_said = [(rank["rank"], rank["cost_percent"]) for rank in seen.last["ranks"][:2]]
        seen.last = {
            "state": seen.last["state"],
            "looked_at": seen.last["looked_at"],
            "differ": equal,
            "first": ranks_said,
        }
        print(json.dumps(asdict(seen)))


if __name__ == "__main__":
    main()
