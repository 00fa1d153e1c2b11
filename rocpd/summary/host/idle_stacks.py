"""Call stacks of the threads that GPUs wait for: in which functions the host is while an agent has nothing to do.

A sample counts for an idle piece when it was taken during that piece, of the thread that launches the next operation of
the agent. What is recursive counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rocpd.base.types import NULL, Ints, Row
from rocpd.facts.agent_time import CAUSES, AgentTime, History
from rocpd.facts.frames import frame_of
from rocpd.facts.stacks import StackSamples
from rocpd.schema.rules.launch import launching_regions
from rocpd.summary.grouping import Sums, merge, order_of, percent
from rocpd.summary.result import Field, TableDefinition

TABLE = TableDefinition(
    "idle-stacks",
    "Functions in which the host is while agents have nothing to do, where call stacks were sampled; by cause, those\n"
    "with most time of their own first.",
    (
        Field("cause", "", "what the host does, or where the agent stands"),
        Field("function", "", "function"),
        Field("file", "", "its file, NULL where not recorded"),
        Field("count", "", "samples of the thread that launches the next operation that have it in their stack", True),
        Field("total_ns", "ns", "time that these stand for, of all agents together"),
        Field("self_ns", "ns", "time with it innermost"),
        Field("percent", "%", "self_ns by the time of all samples of the cause", is_share=True),
    ),
    title="Functions behind idle time",
)

IdleStacks = dict[tuple[str, str, str | None], Sums]
"""Cause, function and file -> samples, time in all and of its own [ns]."""


def stacks_while_idle(idle: AgentTime, samples: StackSamples, history: History) -> IdleStacks:
    """Return in which functions the threads were that an agent waited for; `idle` comes in order of time."""
    sums: IdleStacks = {}
    if not len(samples.at) or not len(idle.start):
        return sums
    piece = np.maximum(np.searchsorted(idle.start, samples.at, "right") - 1, 0)
    is_inside = (samples.at >= idle.start[piece]) & (samples.at < idle.end[piece])
    rows = np.flatnonzero(is_inside & (_threads(idle, history)[piece] == samples.thread) & (samples.thread != NULL))
    for row in rows.tolist():
        cause, time = CAUSES[idle.cause[piece[row]]], int(samples.length[row])
        places = [frame_of(text)[:2] for text in samples.paths[row]]
        for place in dict.fromkeys(places):
            merge(sums, {(cause, *place): Sums((1, time, time if place == places[-1] else 0))})
    return sums


def _threads(idle: AgentTime, history: History) -> Ints:
    """Return of each piece the thread that launches the next operation, `NULL` where none is known."""
    regions = history.regions
    ops = history.ops.take(np.flatnonzero(history.ops.agent == idle.agent))
    ops = ops.take(np.argsort(ops.start, kind="stable"))
    after = np.searchsorted(ops.start, idle.end)
    has_one = after < len(ops.start)
    threads = np.full(len(idle.end), NULL)
    if has_one.any() and len(regions.end):
        stack = ops.stack[after[has_one]]
        call = launching_regions(regions.stack, regions.start, regions.end, stack)
        threads[has_one] = np.where(call >= 0, regions.thread[call], NULL)
    return threads


def idle_stack_rows(key: Row, sums: Mapping[tuple[str, str, str | None], Sums]) -> Iterator[Row]:
    """Yield the rows of one division."""
    whole: dict[str, int] = {}
    for (cause, _, _), (_, _, own) in sums.items():
        whole[cause] = whole.get(cause, 0) + own
    for (cause, *place), (count, time, own) in sorted(
        sums.items(), key=lambda item: (-whole[item[0][0]], item[0][0], -item[1][2], -item[1][1], order_of(item[0]))
    ):
        yield (*key, cause, *place, count, time, own, percent(own, whole[cause]))
