"""Owns putting the event model of one rank together. Never writes, never looks at two ranks."""

from __future__ import annotations

import dataclasses

from rocpd.convert.deliver.placement import Placement
from rocpd.convert.gather import cpu, gpu, memory, pmc
from rocpd.convert.gather.context import Context, Damage
from rocpd.convert.gather.flows import connect
from rocpd.convert.model import RankEvents
from rocpd.convert.options import ConvertOptions
from rocpd.federate.run.rank_reader import RankReader


def collect(reader: RankReader, placement: Placement, options: ConvertOptions, damage: Damage) -> RankEvents:
    """Return the events of one rank on the common time line.

    Args:
        reader: reads the rank.
        placement: where it stands.
        options: how events are shown.
        damage: gets the counts of what cannot be shown.
    """
    events = RankEvents(reader.rank.number, reader.rank.label, reader.rank.pid)
    _gather(Context(reader, placement, events, options, damage))
    return events


def _gather(context: Context) -> None:
    events = context.events
    dispatches = gpu.dispatches(context)
    copies = gpu.copies(context)
    read = pmc.values(context)
    found = pmc.of_dispatches(read, dispatches)
    kernels = dispatches.slices
    if context.options.annotate_pmc:
        more = pmc.as_annotations(read, found, len(kernels))
        kernels = dataclasses.replace(kernels, annotations=(*kernels.annotations, *more))
    calls, (kernels, copies) = connect(events.rank, cpu.regions(context), (kernels, copies))
    held, sums = memory.allocations(context)
    events.slices = [calls, kernels, copies, gpu.graph_launches(context), held]
    events.instants = [cpu.samples(context, read.events)]
    events.counters = [
        *pmc.dispatch_counters(context, read, found, dispatches),
        *pmc.sample_counters(context, read, dispatches),
        sums,
    ]
