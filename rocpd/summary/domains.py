"""Owns which domain an event category belongs to: HIP, HSA, RCCL, MARKERS …

Categories are rocprofiler-sdk's (`HIP_RUNTIME_API`) and rocprofiler-systems' (`rocm_hip_api`).
"""

from __future__ import annotations

import dataclasses

from rocpd.summary.survey import KINDS, Group, Survey

_RENAMED = {"MARKER": "MARKERS"}
_FIXED = {"KERNELS", "MEMORY_COPIES", "MEMORY_ALLOCATIONS", "SCRATCH_MEMORY", "MARKERS"}


def domain_of(category: str | None) -> str:
    """Give the domain of an event category.

    >>> domain_of("HIP_RUNTIME_API_EXT"), domain_of("rocm_marker_api"), domain_of(None)
    ('HIP', 'MARKERS', 'OTHER')
    """
    if not category:
        return "OTHER"
    upper = category.upper()
    if upper in _FIXED:
        return upper
    first = upper.removeprefix("ROCM_").split("_")[0]
    return _RENAMED.get(first, first)


def groups_by_domain(survey: Survey) -> dict[str, list[Group]]:
    """Sort all groups of a session into domains, most time first."""
    found: dict[str, list[Group]] = {}
    for kind in KINDS:
        for group in survey.groups(kind):
            found.setdefault(domain_of(group.category), []).append(group)
    return dict(sorted(found.items(), key=lambda item: (-sum(g.moments.total for g in item[1]), item[0])))


def domain_groups(survey: Survey) -> list[Group]:
    """Give one group per rank and domain, named by the domain: moments are merged, never averages."""
    return [
        dataclasses.replace(group, name=domain)
        for domain, groups in groups_by_domain(survey).items()
        for group in groups
    ]
