"""The sizes and times at which rocpd changes how it works, and how many cores it may use; no answer depends on them.

Cores are those of the CPU affinity (taskset, Slurm), fewer under CPU quotas of cgroups.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from rocpd.base import frozen


@frozen
class Limits:
    """Sizes and times at which the way of working changes.

    Args:
        small_bytes: a job whose files are smaller in total [bytes] is read attached: that takes as long as planning.
        indexed_bytes: a single file that is smaller [bytes] is read attached, even if it is indexed: importing the
            planner and DuckDB takes 0.2 s.
        kept_bytes: facts derived of ranks are kept where files are on average at least this large [bytes]: writing
            them takes 14 ms a rank; with 64 files of 0.6 MB three later commands save that time, with files of 36 MB
            the next command does.
        few_rows: with more rows than this in a share, threads only get in each other's way (measured: 1.5 times
            slower), and the rows are read one share after the other.
        chunk_rows: number of rows yielded at a time.
        process_bytes: a job of at least this size [bytes] is read by several processes: they take 0.2 s to start, and
            reading this much takes about twice as long.
        idle_connections: connections kept open between statements: 0.4 MB each; opening a file again takes 1 ms.
        busy_ms: how long a reader waits for a writer's lock [ms].
        task_bytes: least size [bytes] of a task of a cluster: a scheduler handles several thousand tasks a second.
        fan_in: partial results that a cluster adds up at a time.
        dial_s: how long to wait for a scheduler [s].
    """

    small_bytes: int = 32_000_000
    indexed_bytes: int = 200_000_000
    kept_bytes: int = 8 << 20
    few_rows: int = 10_000
    chunk_rows: int = 10_000
    process_bytes: int = 48 << 20
    idle_connections: int = 256
    busy_ms: int = 2000
    task_bytes: int = 4 << 20
    fan_in: int = 16
    dial_s: float = 10


DEFAULT = Limits()
"""The limits of a session without limits of its own."""


def usable_cores(process: Path | None = None) -> int:
    """Return the number of threads that can run at the same time, at least 1.

    A quota of one and a half cores counts as two: one thread would leave half a core idle.

    Args:
        process: folder with the process's `cgroup` and `mountinfo`, as proc(5) describes them; None: this process,
            whose quotas are read once.
    """
    quotas = tuple(_quotas(process)) if process else _own_quotas()
    has_affinity = hasattr(os, "sched_getaffinity")  # macOS lacks it
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, math.ceil(min([cores, *quotas])))


@functools.cache
def _own_quotas() -> tuple[float, ...]:
    return tuple(_quotas(Path("/proc/self")))


def _quotas(process: Path) -> Iterator[float]:
    """Yield the CPU quota [cores] of each cgroup that holds the process; nothing where none is set."""
    try:
        groups = [line.split(":", 2) for line in (process / "cgroup").read_text().splitlines()]
        mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
    except OSError:
        return
    for _, controllers, group in groups:
        is_v2 = not controllers
        if is_v2 or "cpu" in controllers.split(","):
            for root, mount in _cpu_mounts(mounts, is_v2):
                for folder in _group_and_parents(Path(mount), group, root):
                    yield from _quota(folder, is_v2)


def _cpu_mounts(mounts: list[list[str]], is_v2: bool) -> Iterator[tuple[str, str]]:
    """Yield root and mount point of each hierarchy that may hold quotas; fields after `-`: type, source, options."""
    for fields in mounts:
        kind, _, options = fields[fields.index("-") + 1 :][:3]
        if kind == "cgroup2" if is_v2 else kind == "cgroup" and "cpu" in options.split(","):
            yield fields[3], fields[4].replace("\\040", " ")


def _group_and_parents(mount: Path, group: str, root: str) -> Iterator[Path]:
    """Yield the folder of a cgroup and its parents, up to the mount point: a quota holds for all groups below it."""
    path = PurePosixPath(group)
    inside = path.relative_to(root) if path.is_relative_to(root) and ".." not in path.parts else PurePosixPath()
    yield mount / inside
    yield from (mount / parent for parent in inside.parents)


def _quota(folder: Path, is_v2: bool) -> Iterator[float]:
    """Yield the quota that a cgroup sets, if any: time per period, both in microseconds."""
    names = ("cpu.max",) if is_v2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    try:
        quota, period = (field for name in names for field in (folder / name).read_text().split())
    except OSError:  # the root has no quota, or the controller is off
        return
    if quota not in {"max", "-1"}:
        yield int(quota) / int(period)
