"""Owns which rules there are, in the order in which they look."""

from __future__ import annotations

from collections.abc import Mapping

from rocpd import entries
from rocpd.advice.rule import ENTRY_POINTS, Rule
from rocpd.advice.rules import (
    alloc_steady,
    clock_throttle,
    comm_exposed,
    comm_same_stream,
    comm_slow,
    comm_straggler,
    copy_blocking,
    copy_small,
    gpu_starved,
    kernel_atomics,
    kernel_bandwidth,
    kernel_bank_conflicts,
    kernel_first_touch,
    kernel_grid,
    kernel_matrix_idle,
    kernel_occupancy,
    kernel_resources,
    kernel_strided,
    kernel_unstable,
    launch_small,
    memory_leak,
    memory_peak,
    module_load,
    profiler_cost,
    rank_imbalance,
    step_outlier,
    sync_calls,
    trace_incomplete,
)
from rocpd.errors import RocpdError

RULES: tuple[Rule, ...] = (
    trace_incomplete.RULE,
    profiler_cost.RULE,
    comm_straggler.RULE,
    rank_imbalance.RULE,
    clock_throttle.RULE,
    step_outlier.RULE,
    gpu_starved.RULE,
    launch_small.RULE,
    sync_calls.RULE,
    module_load.RULE,
    alloc_steady.RULE,
    memory_leak.RULE,
    memory_peak.RULE,
    copy_blocking.RULE,
    copy_small.RULE,
    comm_exposed.RULE,
    comm_same_stream.RULE,
    comm_slow.RULE,
    kernel_grid.RULE,
    kernel_occupancy.RULE,
    kernel_resources.RULE,
    kernel_unstable.RULE,
    kernel_first_touch.RULE,
    kernel_bandwidth.RULE,
    kernel_strided.RULE,
    kernel_bank_conflicts.RULE,
    kernel_atomics.RULE,
    kernel_matrix_idle.RULE,
)
"""The rules that are built in; `trace.incomplete` is the first: what is not recorded limits all others."""


def known_rules() -> dict[str, Rule]:
    """Return RULES and those of installed packages by id; one of ours can't be replaced.

    Raises:
        RocpdError: an entry point that names no `Rule`.
    """
    return {**{rule.id: rule for _, rule in entries.added(ENTRY_POINTS, Rule, _no_rule)}, **_ours()}


def _ours() -> Mapping[str, Rule]:
    return {rule.id: rule for rule in RULES}


def _no_rule(name: str, home: str, package: str) -> Rule:
    raise RocpdError(f"entry point {name} of {package}: {home} is no rocpd.advice.rule.Rule", "uninstall the package")
