"""Rules on copies: those that make the host wait, those that are slow, and those that are many and small."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from rocpd.advice.case import COPIES, HIP, CannotLookError, Case
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.facts.timeline import EXPOSED_COPIES
from rocpd.replay.changes import OVERLAPPED
from rocpd.summary.findings import Confidence, Finding
from rocpd.summary.memory.copies import size_label

_PIN = (
    "Copy from and to pinned memory: hipHostMalloc or hipHostRegister; in PyTorch pin_memory=True in the DataLoader "
    "and .to(device, non_blocking=True)."
)
_WITH_HOST = ("MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST")
_LARGE = tuple(size_label(number) for number in (3, 4, 5))  # above 1 MiB: smaller ones are slow by nature


def _copy_blocking(case: Case) -> Iterator[Finding]:
    rows = case.of_critical("copy-calls")
    if rows and all(row["call"] is None for row in rows):
        raise CannotLookError(HIP)
    waited = [row for row in rows if row["waiting_copies"]]
    waited_ns = sum(int(row["waited_ns"]) for row in waited)
    share = case.job.share(waited_ns)
    if share < case.limits["least_percent"]:
        yield from _slow(case)
        return
    worst = max(waited, key=lambda row: int(row["waited_ns"]))
    text = (
        f"rank {case.job.critical} waits {share:.0f} % of the time in {worst['call']} until its copy is done, most for "
        f"{worst['name']} of {worst['size']}: the memory of the host is not pinned"
    )
    evidence = {"waited": sum(int(row["waiting_copies"]) for row in waited), "waited_ns": waited_ns}
    yield case.finding(text, share, evidence, case.sure(Confidence.LIKELY))


def _slow(case: Case) -> Iterator[Finding]:
    """Yield large copies between host and GPU that are slower than the fastest of their size and direction."""
    best = defaultdict[tuple[str, str], float](float)
    for row in case.rows("copy-sizes"):
        best[row["name"], row["size"]] = max(float(row["max_gib_per_s"] or 0.0), best[row["name"], row["size"]])
    large = [row for row in case.of_critical("copy-sizes") if row["name"] in _WITH_HOST and row["size"] in _LARGE]
    often = [(row, best[row["name"], row["size"]]) for row in large if row["copies"] >= case.limits["least_copies"]]
    slow = [(row, most) for row, most in often if row["median_gib_per_s"] * 100 < case.limits["of_best_percent"] * most]
    lost = sum(int(row["total_ns"]) * (1 - float(row["median_gib_per_s"]) / most) for row, most in slow)
    share = min(case.job.share(lost), case.job.part(EXPOSED_COPIES))
    if not slow or share < case.limits["least_percent"]:
        return
    worst, most = max(slow, key=lambda pair: int(pair[0]["total_ns"]))
    text = (
        f"half of the copies of rank {case.job.critical} for {worst['name']} of {worst['size']} are slower than "
        f"{worst['median_gib_per_s']:.1f} GiB/s, the fastest make {most:.1f}: as if the memory of the host were not "
        "pinned, or far from the GPU"
    )
    evidence = {"median_gib_per_s": worst["median_gib_per_s"], "max_gib_per_s": most, "lost_ns": round(lost)}
    found = case.finding(text, share, evidence, Confidence.HINT)
    action = f"{_PIN} Allocate it on the node of the GPU: `numactl --membind`, `amd-smi topology` shows which."
    yield replace(found, action=action, shown_by="rocpd summary copy-sizes slowest-copies JOB --by rank")


COPY_BLOCKING = Rule(
    id="copy.blocking",
    asks="do asynchronous copies make the host wait?",
    fires="calls whose name ends in Async and that return only when their copy is done take {least_percent} % of "
    "the time of the critical rank or more; or what its copies between host and GPU above 1 MiB, {least_copies} of a "
    "size or more, would take less does so, where half are slower than {of_best_percent} % of the fastest of the same "
    "size. Gains that time, of slow copies no more than what is exposed",
    look=_copy_blocking,
    without=lambda _: [OVERLAPPED["copies"]],
    needs=(Need("copy-calls", COPIES), Need("copy-sizes", COPIES)),
    thresholds=(
        Threshold("least_percent", 2.0, "share of the time of the critical rank"),
        Threshold("of_best_percent", 50.0, "median rate by that of the fastest copy of the same direction and size"),
        Threshold("least_copies", 20.0, "copies of a direction and size"),
    ),
    explains=lambda _cause, other: other.rule == "copy.exposed",
    shown_by="rocpd summary copy-calls copy-sizes JOB --by rank",
    action=_PIN,
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/memory_management/"
    "host_memory.html",
)


def _copy_exposed(case: Case) -> Iterator[Finding]:
    share = case.job.part(EXPOSED_COPIES)
    if share < case.limits["least_percent"]:
        return
    rows = case.of_critical("copy-sizes")
    times = Counter[str]()
    for row in rows:
        times[row["name"]] += int(row["total_ns"])
    name = max(times, key=times.__getitem__)
    largest = max((row for row in rows if row["name"] == name), key=lambda row: int(row["total_ns"]))
    rate = largest["median_gib_per_s"]
    at = f", half of those of {largest['size']} at {rate:.1f} GiB/s or less" if rate else ""
    text = (
        f"the GPU of rank {case.job.critical} copies {share:.0f} % of the time while nothing else runs, most {name}{at}"
    )
    yield case.finding(text, share, {"exposed_percent": share, "gib_per_s": rate}, Confidence.CERTAIN)


COPY_EXPOSED = Rule(
    id="copy.exposed",
    asks="do copies take time in which the GPU could compute?",
    fires="copies take {least_percent} % of the time of the critical rank or more while it neither computes nor "
    "communicates. Gains that time",
    look=_copy_exposed,
    without=lambda _: [OVERLAPPED["copies"]],
    needs=(Need("copy-sizes", COPIES),),
    thresholds=(Threshold("least_percent", 10.0, "share of the time of the critical rank"),),
    shown_by="rocpd summary budget copy-sizes copy-pairs JOB --by rank",
    action="Copy on a stream of its own while kernels run (hipMemcpyAsync; PyTorch: prefetch the next batch with "
    "non_blocking=True on a side stream), keep on the GPU what each step copies anew, and copy less: smaller types, "
    "fewer rounds between host and GPU.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/asynchronous.html",
)


_SMALL = tuple(size_label(number) for number in (0, 1))  # up to 64 KiB


def _copy_small(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    small = [row for row in case.of_critical("copy-calls") if row["size"] in _SMALL]
    if small and all(row["call"] is None for row in small):
        raise CannotLookError(HIP)
    per_step = sum(float(row["copies_per_step"] or 0.0) for row in small)
    calls_ns = sum(int(row["api_ns"]) for row in small)
    share = case.job.share(calls_ns)
    if per_step <= case.limits["copies_per_step"] or share < case.limits["least_percent"]:
        return
    most = max(small, key=lambda row: int(row["copies"]))
    text = (
        f"rank {case.job.critical} makes {per_step:.0f} copies of up to 64 KiB in each step, most {most['name']}: "
        f"their calls take {share:.0f} % of the time"
    )
    yield case.finding(text, share, {"copies_per_step": per_step, "api_ns": calls_ns})


COPY_SMALL = Rule(
    id="copy.small",
    asks="are there many small copies?",
    fires="the critical rank makes more than {copies_per_step} copies of up to 64 KiB in a step, whose calls take "
    "{least_percent} % of its time or more. Gains that time",
    look=_copy_small,
    needs=(Need("copy-calls", COPIES),),
    thresholds=(
        Threshold("copies_per_step", 100.0, "copies of up to 64 KiB in a step of a rank"),
        Threshold("least_percent", 2.0, "share of the time of the critical rank in their calls"),
    ),
    shown_by="rocpd summary copy-calls JOB --by rank",
    action="Put small pieces together and copy once, keep on the GPU what does not change, or let kernels read few "
    "bytes from pinned host memory.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/performance_guidelines.html",
)
