"""Rules on communication: exposed transfers, and ranks that the others wait for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rocpd.advice.case import (
    COLLECTIVES,
    COMMUNICATION,
    KERNELS,
    SIZES,
    CannotLookError,
    Case,
    ranks_to_blame,
    some,
    step_number,
    waits_least,
)
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.facts.communication.collectives import listed
from rocpd.facts.timeline import EXPOSED_COMMUNICATION
from rocpd.federate.select.filters import LEFT_OUT
from rocpd.replay.causes import OF_COMPUTE, OF_HOST
from rocpd.replay.changes import FREE, OVERLAPPED, Change, without
from rocpd.summary.communication.exposed import split_of
from rocpd.summary.communication.slow import (
    FEWEST,
    LEAST_BYTES,
    OF_BEST,
    SizedCollective,
    SlowCollectives,
    alike,
    comparable,
    said_of,
    slow_groups,
)
from rocpd.summary.communication.slow import RULE as SLOW
from rocpd.summary.communication.verdict import RULE as VERDICT
from rocpd.summary.communication.verdict import few_steps, ordinal, spacing
from rocpd.summary.findings import Confidence, Finding

EXPOSED = "exposed-communication"
MORE_WORK_PERCENT = LOWER_PERCENT = 1.0
"""A rank with this many more work-items is late for more work; a rank whose clock is this much lower, for the clock."""


_LOWER_CLOCK = "Look at power cap and temperature of its GPU: `amd-smi metric --clock --temperature --power`."
_SLOWER = (
    "The same kernels take longer there{clock}, look for other processes on it (`amd-smi process`), and run the job "
    "without {these} once. `rocpd diff JOB {which}` says which kernels take longer{since}."
)
_SAME_CLOCK = " at the same clock. Compare the memory of the GPU with the others (`amd-smi metric --ecc`)"
_ANY_CLOCK = ". Compare the GPU with the others (`amd-smi metric --clock --power`)"
_MORE_WORK = (
    "It has more to do than the others. Give the ranks equal work: shards, tokens or experts of equal size. `rocpd "
    "summary kernels JOB --by rank` shows which kernels differ."
)
_OTHER_REASONS = (
    "Each of them has its own reason: give those with more work less, and compare the GPUs of the others (`amd-smi "
    "metric --clock --power`). `rocpd summary kernels JOB --by rank` shows which kernels differ."
)
_LATE = (
    "The host starts work late there{besides}. Look at what runs there before the step (`idle-calls`), and pin the "
    "process to the cores near its GPU (`amd-smi topology`, `numactl --cpunodebind`)."
)
_LATE_TOO = "Its host starts work late, too: look at what runs there before the step (`idle-calls`)."
_LONGER_TOO = (
    "It computes longer, too: compare its GPU with the others (`amd-smi metric --clock --power`), and its kernels "
    "(`rocpd summary kernels JOB --by rank`)."
)
_LINK = (
    "Transfers take longer there than between other ranks. Compare the links (`amd-smi xgmi`, `rccl-tests` between "
    "these nodes), and look for other traffic, a degraded port, or a process that is far from its network card."
)
_SOMETIMES = (
    "Compare the steps in which it is late with the others: `rocpd diff JOB --step N --against others` says what takes "
    "longer there, and on which ranks.{host}"
)
_STALLS_OF_HOST = (
    " `rocpd summary idle-calls JOB --step N` says what the host does meanwhile: input, checkpoint, allocation, "
    "garbage collection."
)


def _comm_straggler(case: Case) -> Iterator[Finding]:
    some(case.rows("communication"), COMMUNICATION)
    hosts = {row["rank"]: row["hostname"] for row in case.rows("ranks")}
    for finding in case.problems("ranks", VERDICT):
        stalls, since = finding.evidence.get("stalls"), finding.evidence.get("since_step")
        later = range(since, sys.maxsize) if isinstance(since, int) else ()  # empty: any step
        late = stalls if isinstance(stalls, list) else later
        step, window = case.example(late)
        yield replace(
            finding,
            rank=waits_least(case.job.shares, case.job.shares.keys() & ranks_to_blame(finding, hosts)),
            step=step if late else None,
            window=window,
            gain_percent=float(str(finding.evidence.get("cost_at_most_percent", finding.evidence["cost_percent"]))),
            action=_straggler_action(case, finding),
        )


def _straggler_action(case: Case, finding: Finding) -> str:
    """Return what to do for the main reason, and for others that cost time, too."""
    also = finding.evidence.get("also")
    texts = {OF_HOST: _LATE_TOO, OF_COMPUTE: _LONGER_TOO}
    too = [texts[each] for each in also if each in texts] if isinstance(also, list) else []
    return " ".join([_main_action(case, finding), *too])


def _main_action(case: Case, finding: Finding) -> str:
    evidence = finding.evidence
    lower = evidence.get("clock_lower_percent")
    if (isinstance(lower, float) and lower >= LOWER_PERCENT) or "grows_percent" in evidence:
        return _LOWER_CLOCK
    if "link" in evidence:
        return _LINK
    if "stalls" in evidence:
        return _SOMETIMES.format(host=_STALLS_OF_HOST if "later_ns" in evidence else "")
    if "later_ns" in evidence:
        return _LATE.format(besides="" if "also" in evidence else ", the GPU is as fast as others")
    if "reasons" in evidence:
        return _OTHER_REASONS
    if has_more_work(finding):
        return _MORE_WORK
    these, which = "this GPU", "--rank N"
    if "hostname" in evidence:
        these, which = "this node", f"--host {shlex.quote(str(evidence['hostname']))}"
    elif isinstance(ranks := evidence.get("together"), list):
        these, which = "these GPUs", f"--rank {listed(ranks)}"
    steps = sorted(number for number in _numbers_of_steps(case) if number is not None)
    since = evidence.get("since_step")
    if steps and isinstance(since, int):  # beside other ranks it is slow for a while, beside its own past since then
        which = f"--step {since}-{steps[-1]} --against {steps[0]}-{since - 1}"
    clock = _ANY_CLOCK if lower is None else _SAME_CLOCK
    return _SLOWER.format(clock=clock, these=these, which=which, since="" if since is None else " since then")


def _numbers_of_steps(case: Case) -> list[int | None]:
    """Return the numbers of the steps after warm-up in order of time; None for a step without number."""
    steps = sorted((row for row in case.rows("steps") if not row["is_warm_up"]), key=lambda row: int(row["at_ns"]))
    return [step_number(row["step"]) for row in steps]


def has_more_work(finding: Finding) -> bool:
    """Whether a straggler is late because it has more work than others."""
    more = finding.evidence.get("more_work_items_percent")
    return isinstance(more, float) and more >= MORE_WORK_PERCENT


def _comm_straggler_explains(cause: Finding, other: Finding) -> bool:
    if other.rule == "rank.imbalance":
        return "link" not in cause.evidence and not has_more_work(cause) and other.rank == cause.rank
    if other.rule == "comm.exposed":
        return "link" in cause.evidence
    if other.rule == "kernel.unstable":  # its kernels take longer in some steps
        is_of_some = "stalls" in cause.evidence or "since_step" in cause.evidence
        return is_of_some and cause.evidence["mainly"] == OF_COMPUTE and other.rank == cause.rank
    if other.rule == SLOW:
        link, is_one = cause.evidence.get("link"), other.evidence.get("groups", 1) == 1
        return is_one and isinstance(link, list) and other.evidence["group"] == listed(link)
    is_late = "later_ns" in cause.evidence or OF_HOST in str(cause.evidence.get("also"))
    return other.rule == "gpu.starved" and is_late and other.rank == cause.rank


def _straggler_gone(finding: Finding) -> Sequence[Change]:
    return [without(*str(finding.evidence["cause"]).split(":", 1))]


def _those_that_hide_it(finding: Finding) -> Sequence[Change]:
    hiding = finding.evidence.get("hidden_by")
    return [without(*str(each).split(":", 1)) for each in hiding] if isinstance(hiding, list) else []


COMM_STRAGGLER = Rule(
    id="comm.straggler",
    asks="does one rank make the others wait in collectives?",
    fires="the job replayed without what a rank, a host or a link takes longer than others is more than 1 % faster, "
    "and chance does not explain it (`rocpd summary stragglers`). Gains what the replay regains",
    look=_comm_straggler,
    without=_straggler_gone,
    after=_those_that_hide_it,
    needs=(Need("ranks", KERNELS), Need("communication", COMMUNICATION)),
    explains=_comm_straggler_explains,
    shown_by="rocpd summary causes stragglers waits JOB",
    reference="https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",
    is_fault=True,
)


def _comm_exposed(case: Case) -> Iterator[Finding]:
    some(case.rows("communication"), COMMUNICATION)
    if case.job.left_out:
        raise CannotLookError(LEFT_OUT)
    split = next(iter(case.tables[EXPOSED].findings), None)
    whole = sum(case.job.times.values())
    if split is None or not whole:
        return
    exposed = sum(parts.get(EXPOSED_COMMUNICATION, 0.0) * case.job.times[r] for r, parts in case.job.shares.items())
    exposed /= whole
    waiting, transfer, unmatched = (
        float(str(split.evidence[f"{part}_percent"])) * exposed / 100 for part in ("waiting", "transfer", "unmatched")
    )
    if transfer + unmatched < case.limits["least_percent"]:
        return
    of = "step" if case.job.has_steps else "time" if case.job.is_part else "time, start-up included"
    text = f"exposed communication takes {exposed:.0f} % of the {of}: {split_of(split)}"
    is_sure = case.job.has_steps and unmatched <= transfer
    evidence = {"exposed_percent": exposed, "waiting_percent": waiting, "transfer_percent": transfer}
    yield case.finding(text, transfer + unmatched, evidence, Confidence.CERTAIN if is_sure else Confidence.HINT)


_SEND_LESS = (
    "Send less, or faster: reduce in bf16, accumulate gradients over more micro-batches, shard so that fewer ranks "
    "exchange, compare the bandwidth (`rocpd summary collectives JOB`) with that of the links. To start exchanges "
    "earlier gains nothing in the order in which this job works (`rocpd whatif JOB --overlap comm`)."
)


COMM_EXPOSED = Rule(
    id="comm.exposed",
    asks="does computation hide communication?",
    fires="exposed transfers, without waiting for other ranks, take {least_percent} % of the step or more, the mean of "
    "the ranks. Gains what the replay regains that hides them behind computation; where that is nothing, at most their "
    "time",
    look=_comm_exposed,
    without=lambda _: [OVERLAPPED["comm"]],
    otherwise=(_SEND_LESS, [FREE["collective"]]),
    is_bounded=True,  # the next operations may need the exchanged data, which replays don't know
    needs=(Need("budget", KERNELS), Need("communication", COMMUNICATION), Need(EXPOSED, COMMUNICATION)),
    thresholds=(Threshold("least_percent", 10.0, "share of the step, the mean of the ranks"),),
    shown_by="rocpd summary budget exposed-communication exposed-parts JOB",
    action="Start exchanges earlier and hide them behind computation: PyTorch DDP with another bucket_cap_mb, FSDP "
    "with backward_prefetch, exchanges on a stream of their own and no synchronisation after each.",
    reference="https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/rccl-usage-tips.html",
)


def _comm_same_stream(case: Case) -> Iterator[Finding]:
    rows = some([row for row in case.of_critical("overlap") if row["communication_ns"]], COMMUNICATION)
    if all(row["same_stream_percent"] is None for row in rows):
        raise CannotLookError("streams are not recorded: newer versions of profilers do")
    exposed = case.job.shares[rows[0]["rank"]].get(EXPOSED_COMMUNICATION, 0.0)
    for row in rows:
        same, hidden = float(row["same_stream_percent"] or 0.0), float(row["hidden_percent"])
        if same < case.limits["same_stream_percent"] or hidden >= case.limits["most_hidden_percent"]:
            continue
        text = (
            f"{same:.0f} % of the communication of rank {row['rank']} is in streams that compute, and {hidden:.0f} "
            f"% of it is hidden: exposed communication takes {exposed:.0f} % of the {case.job.unit}"
        )
        evidence = {"same_stream_percent": same, "hidden_percent": hidden, "exposed_percent": exposed}
        yield replace(case.finding(text, exposed, evidence, case.sure(Confidence.CERTAIN)), agent=row.get("agent"))


COMM_SAME_STREAM = Rule(
    id="comm.same_stream",
    asks="does communication have streams of its own?",
    fires="on the critical rank {same_stream_percent} % of the communication or more is in streams with a tenth of the "
    "compute time or more, and less than {most_hidden_percent} % of it is hidden. Gains all exposed communication",
    look=_comm_same_stream,
    without=lambda _: [OVERLAPPED["comm"]],
    needs=(Need("overlap", KERNELS), Need("budget", KERNELS)),
    thresholds=(
        Threshold("same_stream_percent", 90.0, "share of communication in streams that compute"),
        Threshold("most_hidden_percent", 10.0, "share of communication that computation hides"),
    ),
    explains=lambda cause, other: other.rule == "comm.exposed",
    shown_by="rocpd summary overlap budget JOB --by agent",
    action="Call RCCL with a stream of its own, and let the streams wait for each other by events "
    "(hipStreamWaitEvent). In PyTorch: async_op=True, and wait() only where the result is needed; DDP and FSDP do so.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/asynchronous.html",
)


def _comm_slow(case: Case) -> Iterator[Finding]:
    limits = case.limits
    rows = some([row for row in case.rows("collectives") if row["bytes"] and row["bus_gb_per_s"]], SIZES)
    names = "name", "group", "bytes", "min_ns", "bus_gb_per_s", "number"
    sized = (SizedCollective(*(row[name] for name in names)) for row in rows)
    compared = comparable(sized, limits["least_mib"] * (1 << 20), limits["least_collectives"])
    if not compared:
        often = f"{limits['least_collectives']:g} times"
        raise CannotLookError(f"no collective of {limits['least_mib']:g} MiB or more is repeated {often}")
    for groups in alike(slow_groups(compared, limits["of_best_percent"] / 100)):
        text, evidence = said_of(groups)
        steps = _in_steps(case, groups[0])
        evidence |= {"steps": steps} if steps else {}
        yield case.finding(text + _which(steps), case.job.share(groups[0].lost), evidence, row={"rank": None})


def _in_steps(case: Case, slow: SlowCollectives) -> list[int]:
    """Return the numbers of the steps in which collectives are slow; empty where all are slow, or where unknown."""
    numbers = _numbers_of_steps(case)
    some = [numbers[at] for at in slow.periods(len(numbers))] if case.job.has_steps else []
    return [number for number in some if number is not None] if len(some) < len(numbers) else []


def _which(steps: Sequence[int]) -> str:
    """Return words for the steps of a finding; empty without steps."""
    if not steps:
        return ""
    listing = few_steps(steps)
    if every := spacing(steps):
        return f"; in every {ordinal(every)} step: {listing}"
    return f"; in step{'s'[: len(steps) > 1]} {listing}"


def _comm_slow_explains(cause: Finding, other: Finding) -> bool:
    """Whether slow collectives explain another finding: communication that is exposed for longer, or slow steps."""
    gain, other_gain = cause.gain_percent or 0.0, other.gain_percent or 0.0
    if other.rule == "comm.exposed":
        return gain * 3 >= other_gain
    return other.rule == "step.outlier" and other.rank is None and gain >= other_gain


COMM_SLOW = Rule(
    id=SLOW,
    asks="are collectives slower than others of the same size?",
    fires="collectives of {least_mib} MiB or more reach less than {of_best_percent} % of the bus bandwidth of the best "
    "one of the same size and group, of {least_collectives} or more. Gains the time above the fastest",
    look=_comm_slow,
    needs=(Need("collectives", COLLECTIVES),),
    besides=("steps",),
    thresholds=(
        Threshold("of_best_percent", OF_BEST * 100, "bus bandwidth by that of the best of the same size and group"),
        Threshold("least_mib", LEAST_BYTES / (1 << 20), "size of the result of collectives that are compared [MiB]"),
        Threshold("least_collectives", float(FEWEST), "collectives of one size and group with which it looks"),
    ),
    explains=_comm_slow_explains,
    shown_by="rocpd summary collectives JOB",
    action="Look at what else uses the links at these times: other jobs on the switches, checkpoints, copies between "
    "hosts. NCCL_DEBUG=INFO says which network and how many channels RCCL takes; rccl-tests (`all_reduce_perf -b 8 "
    "-e 1G -f 2`) measures the links alone.",
    reference="https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/troubleshooting-rccl.html",
    is_fault=True,
)
