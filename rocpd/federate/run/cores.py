"""How many cores this process may use: by its CPU affinity (taskset, Slurm) and the CPU quotas of its cgroups."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


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
    """Yield the folder of a cgroup and those above it, up to the mount point: a quota holds for all below it."""
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
