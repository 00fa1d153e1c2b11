"""The rules in the order in which they look, and their descriptions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rocpd.advice.rule import ENTRY_POINTS, Rule
from rocpd.advice.rules import balance, communication, host, kernels, memory, trace
from rocpd.base import RocpdError, UsageError, entries

RULES: tuple[Rule, ...] = (
    trace.TRACE_INCOMPLETE,
    trace.PROFILER_COST,
    communication.COMM_STRAGGLER,
    balance.RANK_IMBALANCE,
    balance.CLOCK_THROTTLE,
    balance.STEP_OUTLIER,
    host.GPU_STARVED,
    host.LAUNCH_SMALL,
    host.SYNC_CALLS,
    host.MODULE_LOAD,
    memory.ALLOC_STEADY,
    memory.MEMORY_LEAK,
    memory.MEMORY_PEAK,
    memory.COPY_BLOCKING,
    memory.COPY_EXPOSED,
    memory.COPY_SMALL,
    communication.COMM_EXPOSED,
    communication.COMM_SAME_STREAM,
    communication.COMM_SLOW,
    kernels.KERNEL_GRID,
    kernels.KERNEL_OCCUPANCY,
    kernels.KERNEL_RESOURCES,
    kernels.KERNEL_UNSTABLE,
    kernels.KERNEL_BESIDE,
    kernels.KERNEL_FIRST_TOUCH,
    kernels.KERNEL_BANDWIDTH,
    kernels.KERNEL_STRIDED,
    kernels.KERNEL_BANK_CONFLICTS,
    kernels.KERNEL_ATOMICS,
    kernels.KERNEL_MATRIX_IDLE,
)
"""The built-in rules; `trace.incomplete` is the first, since a gap in the recording limits all others."""


def known_rules() -> dict[str, Rule]:
    """Return RULES and the rules of installed packages by id; a built-in one can't be replaced.

    Raises:
        RocpdError: an entry point does not name a `Rule`.
    """
    others = (rule for _, rule in entries.added(ENTRY_POINTS, Rule, _no_rule))
    return {rule.id: rule for rule in (*others, *RULES)}


def _no_rule(name: str, home: str, package: str) -> Rule:
    raise RocpdError(f"entry point {name} of {package}: {home} is no rocpd.advice.rule.Rule", "uninstall the package")


_WIDTH = 100


def listed() -> Iterator[str]:
    """Yield a line for each rule."""
    rules = known_rules()
    longest = max(map(len, rules))
    for rule in rules.values():
        yield f"{rule.id:<{longest}}  {rule.asks}"


def explained(name: str) -> Iterator[str]:
    """Yield the question, needs and thresholds of a rule.

    Raises:
        UsageError: there is no rule of this name.
    """
    rules = known_rules()
    if name not in rules:
        raise UsageError(f"no rule is called {name}", entries.near(name, rules, "`rocpd advise --list` shows all"))
    rule = rules[name]
    yield f"{rule.id}: {rule.asks}"
    yield ""
    yield from textwrap.wrap(f"Fires when {fires(rule)}.", _WIDTH)
    if rule.thresholds:
        yield ""
        yield f"Thresholds, as --thresholds FILE has them below [{rule.id}]:"
        yield from (f"  {each.name} = {each.value:g}  # {each.doc}" for each in rule.thresholds)
    if rule.needs:
        yield ""
        yield "Can't look where"
        for reason in dict.fromkeys(need.text() for need in rule.needs):
            yield from textwrap.wrap(reason, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def fires(rule: Rule) -> str:
    """Return the condition under which a rule fires, with its thresholds."""
    return rule.fires.format_map({each.name: f"{each.value:g}" for each in rule.thresholds})
