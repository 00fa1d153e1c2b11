"""Puts the event model of one rank together. Writes nothing, and knows no other rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rocpd.base import Ints
from rocpd.convert.deliver import Placement
from rocpd.convert.gather import cpu, gpu
from rocpd.convert.gather.context import Context, Damage
from rocpd.convert.gather.cpu import connect, gpu_time, launching_calls, marked, queue_depths, read_steps, step_slices
from rocpd.convert.model import RankEvents
from rocpd.convert.options import ConvertOptions
from rocpd.facts.regions import Steps
from rocpd.federate.run.rank_reader import RankReader


def collect(reader: RankReader, placement: Placement, options: ConvertOptions, damage: Damage) -> RankEvents:
    """Return the events of one rank on the common time line.

    Args:
        reader: reads the rank.
        placement: the place of the rank.
        options: the look of events.
        damage: gets the numbers of rows that cannot be shown.
    """
    context = Context(reader, placement, options, damage, {})
    _gather(context)
    return context.events


def collect_for_viewers(
    reader: RankReader, placement: Placement, options: ConvertOptions, damage: Damage, titles: Mapping[str, str]
) -> tuple[RankEvents, Steps]:
    """Return the events with the additions for viewers (work of GPUs, markers on GPUs, steps), and the steps.

    Args:
        reader, placement, options, damage: as for `collect`.
        titles: full name of a kernel or copy -> its title.
    """
    context = Context(reader, placement, options, damage, titles)
    launching = _gather(context)
    events = context.events
    calls, *work = events.slices[:3]
    steps = read_steps(context)
    events.slices += [gpu_time(events, *work), step_slices(events, steps), marked(events, calls, work, launching)]
    return events, steps


def _gather(context: Context) -> Sequence[Ints]:
    """Gather all events; return the row of the launching call for each dispatch and copy."""
    events = context.events
    dispatches = gpu.dispatches(context)
    copies = gpu.copies(context)
    values = gpu.counter_values(context)
    sums = gpu.of_dispatches(values, dispatches)
    kernels = dispatches.slices
    if context.options.annotate_pmc:
        annotations = (*kernels.annotations, *gpu.as_annotations(values, sums, len(kernels)))
        kernels = dataclasses.replace(kernels, annotations=annotations)
    regions = cpu.regions(context)
    work = kernels, copies
    launching = launching_calls(regions, work)
    waiting = [queue_depths(context, regions, work, launching)] if context.options.queue_depth else []
    calls, (kernels, copies) = connect(events.rank, regions, work, launching)
    allocations, memory_held = gpu.allocations(context)
    events.slices = [calls, kernels, copies, gpu.graph_launches(context), allocations]
    samples = cpu.read_samples(context)
    events.instants = [cpu.samples(context, *samples, values.events)]
    events.counters = [
        *gpu.dispatch_counters(context, values, sums, dispatches),
        *gpu.sample_counters(context, *samples, values, dispatches),
        memory_held,
        *waiting,
    ]
    return launching
