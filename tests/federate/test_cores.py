"""The number of cores goes by CPU affinity and by the quotas of cgroups, of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocpd.federate.limits import usable_cores

V2 = "35 24 0:30 / {mount} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 32 0:28 / {mount} rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
MEMORY = "34 32 0:29 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def cores(tmp_path: Path, cgroup: str, mountinfo: str, files: dict[str, str]) -> int:
    """Count the cores of a process with these files in /proc/self and, below the mount point, these limits."""
    mount = tmp_path / "the cgroups"
    for name, text in files.items():
        path = mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "cgroup").write_text(cgroup)
    (tmp_path / "mountinfo").write_text(mountinfo.format(mount=str(mount).replace(" ", "\\040")))
    return usable_cores(tmp_path)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"job/step/cpu.max": "400000 100000\n"}, 4),
        ({"job/step/cpu.max": "150000 100000\n"}, 2),
        ({"job/step/cpu.max": "1000 100000\n"}, 1),
        ({"job/step/cpu.max": "max 100000\n"}, 8),
        ({"job/step/cpu.max": "6400000 100000\n"}, 8),
        ({"job/step/cpu.max": "max 100000\n", "job/cpu.max": "300000 100000\n"}, 3),
        ({"job/step/cpu.max": "200000 100000\n", "job/cpu.max": "300000 100000\n"}, 2),
        ({"other/cpu.max": "100000 100000\n"}, 8),
        ({}, 8),
    ],
)
def test_version_2(tmp_path: Path, limits: dict[str, str], expected: int) -> None:
    assert cores(tmp_path, "0::/job/step\n", MEMORY + V2, limits) == expected


@pytest.mark.parametrize(
    ("quota", "expected"), [("250000\n", 5), ("25000\n", 1), ("-1\n", 8)], ids=["five", "half", "none"]
)
def test_version_1(tmp_path: Path, quota: str, expected: int) -> None:
    limits = {"job/cpu.cfs_quota_us": quota, "job/cpu.cfs_period_us": "50000\n"}
    groups = "4:memory:/job\n3:cpuset:/\n2:cpu,cpuacct:/job\n1:name=systemd:/job\n0::/\n"
    assert cores(tmp_path, groups, MEMORY + V1, limits) == expected


def test_a_container_sees_its_own_part_of_the_hierarchy(tmp_path: Path) -> None:
    mounted = V2.replace(" / ", " /docker/4f1e ")
    assert cores(tmp_path, "0::/docker/4f1e/job\n", mounted, {"job/cpu.max": "100000 100000"}) == 1
    assert cores(tmp_path, "0::/docker/4f1e\n", mounted, {"cpu.max": "200000 100000"}) == 2


def test_a_group_outside_of_what_is_mounted_has_the_limits_of_the_mount_point(tmp_path: Path) -> None:
    assert cores(tmp_path, "0::/../job\n", V2, {"cpu.max": "300000 100000"}) == 3


def test_affinity_counts_without_cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert usable_cores(tmp_path) == 2
    assert cores(tmp_path, "0::/\n", V2, {"cpu.max": "800000 100000"}) == 2


def test_this_machine_has_at_least_one() -> None:
    assert 1 <= usable_cores() <= 8
