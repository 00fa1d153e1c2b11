"""Reads the communication kernels of one rank: its channels, and what each kernel does. Never looks at two ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rocpd.base import Ints
from rocpd.facts.columns import Names, as_text, columns, find_rows
from rocpd.facts.communication.collectives import Channel, CommunicationKernels
from rocpd.facts.communication.communicators import channels, launches
from rocpd.facts.communication.rccl import SendRole, Transfer, transfer_of
from rocpd.federate.run.rank_reader import Fact, RankReader
from rocpd.schema.rules.events import valid_times
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.schema.rules.kernel_names import names_of_kernels

_DISPATCHED = " WHERE id IN (SELECT kernel_id FROM rocpd_kernel_dispatch)"  # libraries bring thousands of others
_KERNELS = """
SELECT id, start, "end", agent_id, stream_id, queue_id, kernel_id FROM rocpd_kernel_dispatch WHERE kernel_id IN ({})"""
_COLUMNS = ("id", "start", "end", "agent_id", "stream_id", "queue_id", "kernel_id")


class Communication(NamedTuple):
    """A channel; of each of its kernels that count the queue, and what it does as a number in `transfers`."""

    channel: Channel
    queues: Ints
    codes: Ints
    transfers: Sequence[Transfer | None]


_COMMUNICATION = Fact("communication", 1, (Communication, Channel, CommunicationKernels, SendRole, Transfer))


def communication(reader: RankReader) -> list[Communication]:
    """Return the channels of one rank; they are not to be changed."""
    return reader.once(_COMMUNICATION.of(reader.rank.number), lambda: _communication(reader))


def _communication(reader: RankReader) -> list[Communication]:
    categories, names = load(None), Names()
    symbols = reader.rows(names_of_kernels() + _DISPATCHED)
    texts = {number: as_text(name) for number, name in symbols if isinstance(number, int)}
    wanted = {number: text for number, text in texts.items() if is_communication(categories.of(text))}
    counted, queues = _kernels(reader, wanted, names)
    if not len(counted):
        return []
    every = _kernels(reader.whole(), wanted, names)[0] if reader.selects("rocpd_kernel_dispatch") else counted
    every = every.take(np.lexsort((every.row, every.start)))
    launched = launches(reader.whole(), every.row)
    result = []
    for channel in channels(reader.whole(), names.texts, every, counted, launched):
        transfers = None if channel.role else transfer_of(channel.name, ()), *channel.transfers[1:]
        codes = channel.moves[channel.numbers] if len(channel.moves) else np.zeros(len(channel.numbers), np.int64)
        queues_of_channel = queues[find_rows(counted.row, channel.counted.row)[0]]
        result.append(Communication(channel, queues_of_channel, codes, transfers))
    return result


def _kernels(reader: RankReader, wanted: Mapping[int, str | None], names: Names) -> tuple[CommunicationKernels, Ints]:
    """Return the dispatches of some kernels that have valid times, and their queues."""
    sql = _KERNELS.format(", ".join(map(str, wanted)))
    row, start, end, agent, stream, queue, kernel = columns(reader, "rocpd_kernel_dispatch", sql, _COLUMNS)
    valid = np.flatnonzero(valid_times(start, end))
    kernels = CommunicationKernels(row, names.codes(kernel, wanted.get), agent, stream, start, end)
    return kernels.take(valid), queue[valid]
