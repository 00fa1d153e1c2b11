"""Owns putting the event model of one rank together, and going through the ranks one after the other.

Holds one rank's columns at a time. Never writes; what the user should know goes to `Session.note` at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from rocpd.convert import Progress, cpu, gpu, memory, pmc
from rocpd.convert.context import Context, Damage
from rocpd.convert.flows import connect
from rocpd.convert.model import RankEvents
from rocpd.convert.options import ConvertOptions
from rocpd.convert.read import Tables, total_rows
from rocpd.federate.open import told_as_input_error
from rocpd.federate.session import Session


def ranks(session: Session, options: ConvertOptions, progress: Progress | None = None) -> Iterator[RankEvents]:
    """Give the events of each rank in order of rank number; tell what could not be shown when all are through."""
    damage = Damage()
    tables = [Tables(session, part) for part in session.parts]
    total = total_rows(tables) if progress else 0
    done = 0
    offsets = session.alignment.offsets
    for rank, table in zip(session.ranks, tables, strict=True):
        events = RankEvents(rank.number, rank.label, rank.pid)
        with told_as_input_error(rank.opening.path):
            gather(Context(table, events, options, offsets.get(rank.number, 0), damage))
        yield events
        # Kept, the rank's columns and SQLite's pages of its file would stay while the next rank is read.
        del events
        session.connection.release_memory()
        if progress:
            done += total_rows([table])
            progress(done, total)
    for line in damage.lines():
        session.note(line)


def gather(context: Context) -> None:
    """Fill the events of one rank."""
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
