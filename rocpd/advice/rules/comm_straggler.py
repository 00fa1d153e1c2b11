"""A rank, or a host, that the others wait for in collectives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case
from rocpd.advice.rule import Need, Rule
from rocpd.summary.budget import EXPOSED_COMMUNICATION
from rocpd.summary.findings import Finding
from rocpd.summary.verdict import RULE as VERDICT

_NEARLY_ALL = 0.9  # of the steps

MORE_WORK_PERCENT = 1.0
"""A rank with so many more work-items is late because it has more to do."""

_LOWER_CLOCK = "Look at power cap and temperature of its GPU: `amd-smi metric --clock --temperature --power`."
_SLOWER = (
    "The same kernels take longer there. Compare the GPU with the others (`amd-smi metric --clock --power`), look for "
    "other processes on it (`amd-smi process`), and run the job without this node once. `rocpd diff JOB --rank N` says "
    "which kernels take longer."
)
_LATE = (
    "Its host starts it late, the GPU is as fast as the others. Look at what runs there before the step "
    "(`idle-calls`), and pin the process to the cores near its GPU (`amd-smi topology`, `numactl --cpunodebind`)."
)
_SOMETIMES = (
    "Compare the steps in which it is late with the others: `rocpd diff JOB --step N --against others` says what takes "
    "longer there, and on which ranks."
)


def _look(case: Case) -> Iterator[Finding]:
    if not case.rows("communication"):
        raise CannotLookError(recording.COMMUNICATION)
    for finding in case.problems("ranks", VERDICT):
        rank = case.job.critical if finding.rank is None else finding.rank
        example = case.example()
        yield replace(
            finding,
            rank=rank,
            window=example.window,
            gain_percent=_gain(case, finding),
            shown_by="rocpd summary stragglers waits JOB",
            action=_action(finding),
            reference="https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",
        )


def _gain(case: Case, finding: Finding) -> float:
    """Return how much longer others wait than the rank to blame [%]: that is what a step can save at most."""
    exposed = {rank: parts.get(EXPOSED_COMMUNICATION, 0.0) for rank, parts in case.job.shares.items()}
    blamed = exposed.get(finding.rank if finding.rank is not None else case.job.critical or 0, 0.0)
    return median([share - blamed for share in exposed.values() if share > blamed] or [0.0])


def _action(finding: Finding) -> str:
    evidence = finding.evidence
    if "clock_lower_percent" in evidence:
        return _LOWER_CLOCK
    if "later_ns" in evidence:
        return _LATE
    return _SLOWER if "same_kernels_longer_percent" in evidence or "hostname" in evidence else _SOMETIMES


def has_more_work(finding: Finding) -> bool:
    """Whether a straggler is late because it has more to do than others."""
    more = finding.evidence.get("more_work_items_percent")
    return isinstance(more, float) and more >= MORE_WORK_PERCENT


def _explains(cause: Finding, other: Finding) -> bool:
    if other.rule == "rank.imbalance":
        return not has_more_work(cause) and other.rank == cause.rank
    if other.rule == "gpu.starved":
        return "later_ns" in cause.evidence and other.rank == cause.rank
    return other.rule == "step.outlier" and other.rank == cause.rank and _is_late_at_times(cause)


def _is_late_at_times(finding: Finding) -> bool:
    """Whether a rank is late in some steps only: then these are the slow ones."""
    times = [finding.evidence.get(name) for name in ("times_last", "times_longest", "steps")]
    numbers = [time for time in times if isinstance(time, int | float)]
    return len(numbers) == len(times) and max(numbers[:2]) < _NEARLY_ALL * numbers[2]


RULE = Rule(
    id="comm.straggler",
    asks="does one rank make the others wait in collectives?",
    fires="a rank or a host comes last, or computes longest, in more steps than chance explains, and that costs more "
    "than 1 % of a step (`rocpd summary stragglers`). Gains what the others wait longer than it does",
    look=_look,
    needs=(Need("ranks", recording.KERNELS), Need("communication", recording.COMMUNICATION)),
    explains=_explains,
)
