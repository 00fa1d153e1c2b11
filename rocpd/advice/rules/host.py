"""Rules on GPUs that idle because of their host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rocpd.advice.case import COPIES, HIP, KERNELS, LEAST_GAIN, CannotLookError, Case, short, some
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.facts.agent_time import BETWEEN, HOST
from rocpd.facts.regions import HostCall
from rocpd.replay.changes import FREE, Change, without_calls
from rocpd.summary.findings import Confidence, Finding

_LAUNCH_OR_WORK = (HostCall.LAUNCH.value, HOST)
_GRAPHS = "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/hipgraph.html"
_LAUNCHING = (
    "Launch less or earlier: capture repeated work in a graph (hipGraphLaunch; PyTorch: "
    'torch.compile(mode="reduce-overhead")), fuse small kernels, and keep the launching thread on cores near its GPU '
    "(`numactl --cpunodebind`).",
    _GRAPHS,
)
_WORKING = (
    "Let the host prepare while the GPU works: load input in other processes ahead of time (PyTorch DataLoader: "
    "num_workers, prefetch_factor, pin_memory), and move work between launches to another thread.",
    "https://docs.pytorch.org/docs/stable/data.html",
)


def _gain(finding: Finding) -> float:
    return finding.gain_percent or 0.0


def _gpu_starved(case: Case) -> Iterator[Finding]:
    rows = case.of_critical("idle")
    case.needs_known_calls()
    starved = [row for row in rows if row["cause"] in _LAUNCH_OR_WORK]
    share = sum(float(row["span_percent"]) for row in starved)
    if share < case.limits["least_idle_percent"]:
        yield from list(_waiting_for_work(case)) or _waiting_for_launches(case)
        return
    cause = str(max(starved, key=lambda row: int(row["idle_ns"]))["cause"])
    calls = [row for row in case.of_critical("idle-calls") if row["cause"] == cause]
    longest = max(calls, key=lambda row: int(row["idle_ns"]), default=None)
    doing = {HostCall.LAUNCH.value: "launches", HOST: "works between calls"}
    what = " or ".join(doing[str(row["cause"])] for row in sorted(starved, key=lambda row: -int(row["idle_ns"])))
    name = longest["name"] or "outside of markers" if longest else ""
    named = f", most {'in ' if longest and longest['name'] not in (None, BETWEEN) else ''}{name}" if name else ""
    text = f"the GPU of rank {case.job.critical} idles {share:.0f} % of the time while its host {what}{named}"
    evidence = {str(row["cause"]): row["idle_ns"] for row in starved}
    evidence |= {"marker": name} if cause == HOST and longest and longest["name"] not in (None, BETWEEN) else {}
    place = (longest, "longest_ns") if longest else ({"rank": case.job.critical}, "")
    found = case.finding(text, share, evidence, case.sure(Confidence.CERTAIN), *place)
    action, reference = _LAUNCHING if cause == HostCall.LAUNCH else _WORKING
    yield replace(found, action=action, reference=reference)


def _waiting_for_work(case: Case) -> Iterator[Finding]:
    """Yield a finding for the marker in which the host works in most steps while the GPU idles."""
    steps = sum(not row["is_warm_up"] for row in case.rows("steps")) if case.job.has_steps else 0
    for row in case.of_critical("idle-calls"):
        share = case.job.share(int(row["idle_ns"]))
        in_most = 0 < int(row["longest_ns"]) * steps <= 2 * int(row["idle_ns"])  # else it is a stall of some steps
        if row["cause"] == HOST and row["name"] and in_most and share >= case.limits["least_work_percent"]:
            which = f"the GPU of rank {case.job.critical}"
            text = f"{which} idles {share:.1f} % of the time while its host is in {row['name']}"
            evidence = {HOST: row["idle_ns"], "marker": row["name"]}
            found = case.finding(text, share, evidence, Confidence.CERTAIN, row, "longest_ns")
            yield replace(found, action=_WORKING[0], reference=_WORKING[1])
            return


def _waiting_for_launches(case: Case) -> Iterator[Finding]:
    """Yield the finding that the GPU idles while its host launches; a replay must confirm it: it may wait anyway."""
    row = {row["cause"]: row for row in case.of_critical("idle")}.get(HostCall.LAUNCH.value)
    share = float(row["span_percent"]) if row else 0.0
    if row and share >= case.limits["least_launch_percent"]:
        text = f"the GPU of rank {case.job.critical} idles {share:.1f} % of the time while its host launches"
        evidence = {row["cause"]: row["idle_ns"], LEAST_GAIN: case.limits[LEAST_GAIN]}
        found = case.finding(text, share, evidence, case.sure(Confidence.CERTAIN))
        yield replace(found, action=_LAUNCHING[0], reference=_LAUNCHING[1])


def _host_gone(finding: Finding) -> Sequence[Change]:
    return [FREE["launch" if finding.reference == _GRAPHS else "host"]]


GPU_STARVED = Rule(
    id="gpu.starved",
    asks="does the GPU wait for its host?",
    fires="on the critical rank the GPU idles for {least_idle_percent} % of the time or more while its host launches "
    "or works between calls, or for {least_work_percent} % while it works in one marker of most steps; or for "
    "{least_launch_percent} % while it launches, where a replay gains {least_gain_percent} %. Gains that time",
    look=_gpu_starved,
    without=_host_gone,
    needs=(Need("kernels", KERNELS), Need("idle", KERNELS)),
    thresholds=(
        Threshold("least_idle_percent", 10.0, "share of the time of the critical rank"),
        Threshold("least_work_percent", 3.0, "the same in one marker, such as one for input"),
        Threshold("least_launch_percent", 4.0, "the same while its host launches, where a replay gains enough"),
        Threshold(LEAST_GAIN, 3.0, "share of a step that the replay gains in which launches take no time"),
    ),
    # With earlier launches there would be work to hide communication behind.
    explains=lambda cause, other: other.rule == "comm.exposed" and _gain(cause) > _gain(other),
    shown_by="rocpd summary idle idle-calls JOB --by rank",
)


def _launch_small(case: Case) -> Iterator[Finding]:
    kernels = case.computing("kernels")
    calls = sum(int(row["calls"]) for row in kernels)
    timed = (row for row in kernels if row["median_ns"] is not None)
    small = [row for row in timed if row["median_ns"] < case.limits["small_us"] * 1000]
    count = sum(int(row["calls"]) for row in small)
    if not calls or count * 100 < calls * case.limits["small_percent"]:
        return
    idle = {row["cause"]: row for row in case.of_critical("idle")}
    case.needs_known_calls()
    share = float(idle[HostCall.LAUNCH.value]["span_percent"]) if HostCall.LAUNCH.value in idle else 0.0
    if share < case.limits["least_idle_percent"]:
        return
    most = sorted(small, key=lambda row: -int(row["calls"]))[:3]
    named = ", ".join(short(row["name"]) for row in most)
    text = (
        f"{count * 100 / calls:.0f} % of the kernels of rank {case.job.critical} take less than "
        f"{case.limits['small_us']:g} us, and the GPU idles {share:.0f} % of the time while they are launched: {named}"
    )
    evidence = {"small": count, "kernels": calls, "launching_percent": share}
    yield case.finding(text, share, evidence, case.sure(Confidence.LIKELY))


LAUNCH_SMALL = Rule(
    id="launch.small",
    asks="are kernels too short for the host to keep up?",
    fires="{small_percent} % of the computing kernels of the critical rank or more are of kinds whose median is under "
    "{small_us} us, and its GPU idles {least_idle_percent} % of the time or more while its host launches. Gains "
    "that time",
    look=_launch_small,
    without=lambda _: [FREE["launch"]],
    needs=(Need("kernels", KERNELS), Need("idle", KERNELS)),
    thresholds=(
        Threshold("small_us", 10.0, "a kernel with a shorter median is small"),
        Threshold("small_percent", 50.0, "share of small kernels"),
        Threshold("least_idle_percent", 5.0, "share of the time in which the GPU idles while its host launches"),
    ),
    explains=lambda cause, other: (
        other.rule == "gpu.starved" or (other.rule == "comm.exposed" and _gain(cause) > _gain(other))
    ),
    shown_by="rocpd summary kernels idle JOB --by rank",
    action="Make fewer and larger kernels: fuse element-wise ones (torch.compile, hipBLASLt epilogues), use foreach or "
    "fused optimizers, larger batches; or launch them together as a graph (hipGraphLaunch).",
    reference=_GRAPHS,
)


_MUCH = 0.25  # of the time in gaps that begin in the worst call: calls with as much are left out as well
_WAITING_CALLS = (HostCall.SYNCHRONISE.value, HostCall.COPY.value, HostCall.ALLOCATE.value)


def _sync_calls(case: Case) -> Iterator[Finding]:
    rows = some(case.of_critical("idle-calls"), HIP)
    case.needs_known_calls()
    every = [row for row in rows if row["cause"] in _WAITING_CALLS]
    # Where copies are not recorded, a GPU that copies seems idle.
    has_copies = "copy-calls" in case.tables
    calls = [row for row in every if has_copies or row["cause"] != HostCall.COPY.value]
    share, suspected = (case.job.share(sum(int(row["begun_ns"]) for row in some)) for some in (calls, every))
    if share < case.limits["least_idle_percent"]:
        if suspected >= case.limits["least_idle_percent"]:
            raise CannotLookError(COPIES)
        return
    worst = max(calls, key=lambda row: int(row["begun_ns"]))
    where = f", {worst['in_marker_percent']:.0f} % of it in {worst['in_marker']}" if worst["in_marker"] else ""
    text = (
        f"the GPU of rank {case.job.critical} idles {share:.0f} % of the time in gaps that begin while its host waits "
        f"for it, most in {worst['name']}{where}"
    )
    much = [row for row in calls if int(row["begun_ns"]) >= _MUCH * int(worst["begun_ns"])]  # others may be needed
    evidence = {str(row["name"]): row["begun_ns"] for row in much}
    yield case.finding(text, share, evidence, case.sure(Confidence.CERTAIN), worst, "longest_ns")


SYNC_CALLS = Rule(
    id="sync.calls",
    asks="does the host wait for the GPU in the midst of the work?",
    fires="on the critical rank gaps that begin while the host synchronises, copies with a blocking call, allocates or "
    "frees take {least_idle_percent} % of the time or more, work of the host aside. Gains what a replay gains without "
    "the calls in which most of them begin",
    look=_sync_calls,
    without=lambda finding: [without_calls(finding.evidence)],
    needs=(Need("kernels", KERNELS), Need("idle-calls", KERNELS)),
    thresholds=(Threshold("least_idle_percent", 5.0, "share of the time of the critical rank"),),
    # After each wait the GPU idles until the host has launched again.
    explains=lambda cause, other: other.rule == "gpu.starved" and 2 * _gain(cause) >= _gain(other),
    shown_by="rocpd summary idle-calls JOB --by rank",
    action="Wait less often: leave out hipDeviceSynchronize between kernels, let streams wait for events "
    "(hipStreamWaitEvent) in place of the host, copy with hipMemcpyAsync, and do not read results back each time "
    "(PyTorch: .item(), .cpu(), print of a tensor). `rocpd summary calls JOB` shows who calls.",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/asynchronous.html",
)


def _module_load(case: Case) -> Iterator[Finding]:
    case.needs_steps()
    rows = some(case.of_critical("idle-calls"), HIP)
    loads = [row for row in rows if row["cause"] == HostCall.MODULE.value]
    if not loads:
        return
    worst = max(loads, key=lambda row: int(row["idle_ns"]))
    share = case.job.share(sum(max(int(row["idle_ns"]), int(row["begun_ns"])) for row in loads))
    text = (
        f"the GPU of rank {case.job.critical} idles {share:.0f} % of the time in steps after warm-up while code is "
        f"loaded, most in {worst['name']}"
    )
    evidence = {str(row["name"]): row["idle_ns"] for row in loads}
    yield case.finding(text, share, evidence, Confidence.CERTAIN, worst, "longest_ns")


MODULE_LOAD = Rule(
    id="module.load",
    asks="is code loaded or compiled while steps run?",
    fires="the GPU of the critical rank idles for calls that load or compile code (hipModuleLoad*, hiprtc*, hipLink*, "
    "__hipRegister*) in steps after warm-up. Gains that time",
    look=_module_load,
    without=lambda finding: [without_calls(finding.evidence)],
    needs=(Need("kernels", KERNELS), Need("idle-calls", KERNELS)),
    shown_by="rocpd summary idle-calls JOB --by rank",
    action="Load and compile before the first step: run each shape once as warm-up, keep shapes the same (PyTorch: "
    "torch.compile with dynamic=True, padded batches), and keep compiled code between runs (MIOPEN_USER_DB_PATH, "
    "TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR on a local disk).",
    reference="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_rtc.html",
)
