"""A rule whose data is missing says so, and which option records it; it never says that nothing is wrong."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.advice.registry import RULES
from rocpd.summary.findings import Confidence
from tests.advice.jobs import reasons, rules_of, simulated
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private

_BY_STEPS = {"step.outlier", "module.load", "alloc.steady", "memory.leak", "copy.small"}
_BY_HIP = {"gpu.starved", "sync.calls", "module.load", "profiler.cost", "copy.blocking", "copy.small"}
_BY_KERNELS = {"comm.straggler", "comm.exposed", "comm.same_stream", "comm.slow", "kernel.grid", "kernel.occupancy"}

MISSING = {
    "rocpd_memory_allocate": ({"alloc.steady", "memory.leak", "memory.peak"}, "--memory-allocation-trace"),
    "rocpd_memory_copy": ({"copy.blocking", "copy.small"}, "--memory-copy-trace"),
    "rocpd_region": (_BY_STEPS | _BY_HIP | {"comm.slow"}, "--hip-trace"),
    "rocpd_kernel_dispatch": (_BY_KERNELS | {"kernel.unstable", "launch.small"}, "--kernel-trace"),
    "rocpd_sample": ({"clock.throttle"}, "ROCPROFSYS_USE_AMD_SMI"),
    "rocpd_arg": ({"comm.slow"}, "--rccl-trace"),
}
"""Table -> rules that can't look without it, and the option that records it."""

ROCPROFV3 = {
    "--hip-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--memory-allocation-trace",
    "--rccl-trace",
    "--marker-trace",
    "--pmc",
    "--sys-trace",
}
"""Options of rocprofv3 in its documentation that rules may name."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return simulated(tmp_path_factory.mktemp("whole"))


def without(files: Sequence[Path], table: str, folder: Path) -> Path:
    """Copy a job and empty a table in each file."""
    folder.mkdir()
    for path in files:
        copy = folder / path.name
        shutil.copyfile(path, copy)
        with apsw.Connection(str(copy)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in names:
                if re.fullmatch(table + "_[0-9a-f_]{32,}", str(name)):
                    connection.execute(f'DELETE FROM "{name}"')
    return folder


@pytest.mark.parametrize("table", MISSING)
def test_without_a_table_rules_say_what_to_record(table: str, job: list[Path], tmp_path: Path) -> None:
    unable, option = MISSING[table]
    advice = rocpd.advise(without(job, table, tmp_path / "job"))
    why = reasons(advice)
    assert unable <= why.keys()
    assert any(option in why[rule] for rule in unable)
    assert not why.keys() & (rules_of(advice) | set(advice.silent))
    told = {finding.rule for finding in advice.findings if finding.confidence is not Confidence.HINT}
    assert told <= {"trace.incomplete"}


def test_what_a_window_leaves_out_is_not_to_be_recorded_again(job: list[Path]) -> None:
    """All is recorded; the start of the job has no GPU work."""
    with rocpd.connect(job) as session:
        start = session.within(rocpd.Window("0%", "2%"))
        advice, first = start.advise(), start.summary("overview").findings
    assert "stragglers: not known: no collectives in this part of the trace" in [finding.text for finding in first]
    assert len(advice.unable) > 20
    assert {text for text in reasons(advice).values() if "record" in text} <= {
        f"{what} recorded in this part of the trace"
        for what in ("no kernels are", "calls that launch kernels are not", "no copies are", "no allocations are")
    }
    assert not any("open the files" in text for text in reasons(advice).values())


def test_options_that_are_advised_exist() -> None:
    texts = [need.text() for rule in RULES for need in rule.needs]
    named = {word for text in texts for word in re.findall(r"`rocprofv3 ([^`]*)`", text)}
    assert {option for words in named for option in words.split()} <= ROCPROFV3


def test_nothing_recorded_is_no_all_clear(open_job: OpenJob) -> None:
    advice = open_job(TraceBuilder().region("roctxRangePushA", 1, 9, message="step 1")).advise()
    assert "comm.straggler" in reasons(advice)
    assert "kernel.grid" in reasons(advice)
    assert "not to say that nothing is wrong" in str(advice)


def test_separate_runs_are_not_compared(real_files: tuple[Path, ...]) -> None:
    """Twelve runs of one program on an MI300X; neither copies nor markers nor allocations are recorded."""
    advice = rocpd.advise(list(real_files))
    compared = {"comm.straggler", "rank.imbalance", "step.outlier", "comm.exposed", "comm.slow"}
    why = reasons(advice)
    assert all("12 separate runs" in why[rule] for rule in compared)
    assert "--memory-copy-trace" in why["sync.calls"]  # a GPU that copies would seem idle
    assert rules_of(advice) <= {"profiler.cost", "launch.small"}
    assert "12 separate runs" in str(advice)


def test_files_of_the_systems_profiler() -> None:
    """One links kernels to calls and copies with memory that is not pinned, the other links nothing."""
    linked, unlinked = (rocpd.advise(path) for path in private("rocprofiler-systems/*.db", 2))
    assert rules_of(linked) == {"copy.blocking"}
    assert rules_of(unlinked) <= {"trace.incomplete", "profiler.cost"}
    assert {"gpu.starved", "sync.calls", "copy.blocking"} <= reasons(unlinked).keys()
    assert "kernel.occupancy" in reasons(unlinked)  # a Radeon, whose registers are given out differently


OPTIONS: dict[str, set[str]] = {
    "kineto/mi300_qwen1.5_0.5b.json.gz": set(),
    "kineto/hta_sampled_rank-0.json.gz": {"torch.profiler"},
    "nsys/mfu_2gpu_before.sqlite": {"nsys"},
    "rpd/matmul_result.rpd": {"runTracer.sh"},
}
"""Trace -> whose options may be named."""


@pytest.mark.parametrize("path", OPTIONS)
def test_options_are_those_of_the_profiler_that_recorded_the_trace(path: str) -> None:
    with rocpd.connect(private(path, 1)[0]) as session:
        advice = session.advise()
        checks = [str(row["meaning"]) for row in session.summary("trace").df().to_dict("records")]
    incomplete = [finding.action or "" for finding in advice.findings if finding.rule == "trace.incomplete"]
    told = " ".join([*(finding.text for finding in advice.unable), *incomplete, *checks])
    tools = ("rocprofv3", "rocpd", "torch.profiler", "nsys", "runTracer.sh", "rocprof-sys-sample")
    commands = [command for command in re.findall(r"`([^`]*)`", told) if command.startswith(tools)]
    commands = [command for command in commands if not command.startswith(("rocpd info", "rocpd summary"))]
    assert {next(tool for tool in tools if command.startswith(tool)) for command in commands} == OPTIONS[path]
    assert advice.findings or advice.unable
