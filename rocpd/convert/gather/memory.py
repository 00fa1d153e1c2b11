"""Memory: allocations and frees as slices, and the held bytes per agent and level as a counter.

The size of a free is not guessed if its allocation is not in the trace; such frees are counted and reported.
"""

from __future__ import annotations

import functools

import numpy as np

from rocpd.base import NULL
from rocpd.convert.gather.context import Columns, Context, Damage, select_events
from rocpd.convert.gather.lanes import spread
from rocpd.convert.model import Annotation, Counters, Slices, TrackKind, optional
from rocpd.facts.columns import per_id
from rocpd.facts.memory import changes_of, freed, memory_keys
from rocpd.federate.run.rank_reader import RankReader
from rocpd.federate.select.selection import Part
from rocpd.schema.rules.events import ALLOCATING, SCRATCH

_COLUMNS = ("agent_id", "start", "end", "address", "size", "queue_id")
_TEXTS = ("type", "level")


def allocations(context: Context) -> tuple[Slices, Counters]:
    """Return allocations and frees, and the held bytes at the end of each."""
    window = context.placement.window
    rows = _read(context, context.reader, context.damage)
    # Part of the memory held within a window was allocated before it.
    all_rows = _read(context, context.reader.unwindowed(), Damage()) if window else rows
    text = context.events.strings.texts
    tracks = context.events.tracks
    scratch = per_id(rows["level"], lambda i: text[i] == SCRATCH)
    track = np.zeros(len(scratch), np.int64)
    for flag, word in ((0, "allocations"), (1, "scratch")):
        chosen = scratch == flag
        track[chosen] = per_id(
            rows["agent_id"][chosen],
            lambda i: context.agent_track(word, i, TrackKind.MEMORY, word),  # noqa: B023
        )
    code, width = context.events.names.code, len(text)
    names = per_id(rows["type"] * width + rows["level"], lambda i: code(f"{text[i // width]} {text[i % width]}"))
    annotations = (
        optional("bytes", rows["size"]),
        optional("address", rows["address"]),
        Annotation("type", rows["type"], text=True),
        Annotation("level", rows["level"], text=True),
        optional("queue_id", rows["queue_id"]),
    )
    placed = rows | {"track": spread(tracks, track, rows["start"], rows["end"]), "name": names}
    slices = context.slices(placed, "memory", None, annotations)
    return slices, _within(_held(context, all_rows), window)


def _read(context: Context, reader: RankReader, damage: Damage) -> Columns:
    select = select_events("rocpd_memory_allocate", _COLUMNS, _TEXTS)
    piece = context.read(select, reader, damage)
    code = context.events.strings.code
    texts = (np.array([code(str(text or "?")) for text in column], np.int64) for column in piece.texts)
    columns = zip(select.names, (*piece.numbers, *texts), strict=True)
    return context.on_time_line(dict(columns), "memory allocations", damage)


def _within(counters: Counters, part: Part | None) -> Counters:
    if part is None:
        return counters
    low = NULL if part.start is None else part.start
    keep = (counters.time >= low) & ((part.end is None) | (counters.time < (part.end or 0)))
    return Counters(counters.track[keep], counters.time[keep], counters.value[keep])


def _held(context: Context, rows: Columns) -> Counters:
    """Return running sums of bytes in order of ends: a free takes back the bytes of its allocation."""
    text = context.events.strings.texts
    order = np.argsort(rows["end"], kind="stable")
    names = ("end", "type", "level", "agent_id", "address", "size", "queue_id")
    end, kind, level, agent, address, size, queue = (rows[name][order] for name in names)
    allocates = per_id(kind, lambda code: text[code] in ALLOCATING) > 0
    is_scratch = per_id(level, lambda code: text[code] == SCRATCH) > 0
    ends = freed(memory_keys(level, is_scratch, address, agent, queue), allocates)
    context.damage[Damage.UNKNOWN_FREE, "frees"] += int((~allocates & (ends < 0)).sum())

    # Tracks are in the order in which agents first hold memory.
    @functools.cache
    def track_of(agent: int, level: int) -> int:
        title = f"memory {text[level]} held"
        return context.agent_track(("held", level), agent, TrackKind.MEMORY, title, unit="bytes")

    pairs = zip(agent.tolist(), level.tolist(), allocates.tolist(), strict=True)
    track = np.array([track_of(*pair) if is_held else NULL for *pair, is_held in pairs], np.int64)
    change = changes_of(np.maximum(size, 0), allocates, ends, [track])
    return Counters(track[change.of], end[change.by], change.held.astype(np.float64))
