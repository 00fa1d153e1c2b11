"""Owns the GPU operations of one rank, kernels and copies, as columns in the order in which each agent ran them.

Memory: one rank at a time, about 80 bytes per operation. Rows without sound times are left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rocpd.federate.identify import Rank
from rocpd.federate.session import Session
from rocpd.summary.options import KernelNames
from rocpd.summary.read import NULL, columns, sound, texts
from rocpd.summary.reading import Reading
from rocpd.summary.spread import Ints

KERNEL, COPY = 0, 1

_KERNELS = (
    'SELECT K.id, K.start, K."end", K.agent_id, K.stream_id, K.kernel_id, {stack} FROM rocpd_kernel_dispatch K{event}'
)
# A copy belongs to the GPU that it reaches, else to the one that it leaves, else to where it goes.
_COPIES = """
SELECT M.id, M.start, M."end",
    CASE WHEN D.type IS 'GPU' OR S.type IS NOT 'GPU' THEN M.dst_agent_id ELSE M.src_agent_id END,
    M.stream_id, M.name_id, {stack}
FROM rocpd_memory_copy M
LEFT JOIN rocpd_info_agent D ON D.id = M.dst_agent_id
LEFT JOIN rocpd_info_agent S ON S.id = M.src_agent_id{event}"""
_SYMBOLS = {
    KernelNames.DISPLAY: "SELECT id, display_name FROM rocpd_info_kernel_symbol",
    KernelNames.MANGLED: "SELECT id, COALESCE(kernel_name, display_name) FROM rocpd_info_kernel_symbol",
    KernelNames.TRUNCATED: (
        "SELECT id, COALESCE(replace(truncated_kernel_name, '.kd', ''), display_name) FROM kernel_symbols"
    ),
}
_STRINGS = "SELECT id, string FROM rocpd_string"
_AMONG = " WHERE id IN (SELECT value FROM json_each(?))"


class Names:
    """Numbers for names, the same in all ranks."""

    def __init__(self) -> None:
        self.texts: list[str | None] = []
        self._codes: dict[str | None, int] = {}

    def code(self, text: str | None) -> int:
        """Give the number of a name; a new one gets the next."""
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
        return self._codes[text]

    def translate(self, ids: Ints, known: dict[int, str | None]) -> Ints:
        """Turn ids of a rank into numbers; ids that lead nowhere have the name None."""
        if not len(ids):
            return ids
        distinct, places = np.unique(ids, return_inverse=True)
        codes = np.array([self.code(known.get(int(number))) for number in distinct], np.int64)
        return codes[places]


@dataclass(frozen=True)
class Ops:
    """Operations of one rank, sorted by (agent, start, end, kind, id); all columns are equally long.

    Args:
        kind: `KERNEL` or `COPY`.
        row: id of the dispatch or copy.
        start, end: as recorded [ns].
        agent, stream: ids, `NULL` where unknown.
        name: number in `Names`.
        stack: correlation id, equal to that of the call that launched it; `NULL` where unknown or not asked for.
    """

    kind: Ints
    row: Ints
    start: Ints
    end: Ints
    agent: Ints
    stream: Ints
    name: Ints
    stack: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def duration(self) -> Ints:
        """Length of each operation [ns]."""
        return self.end - self.start

    def take(self, places: Ints) -> Ops:
        """Give some of the operations, in the order of `places`."""
        return Ops(*(column[places] for column in self._all()))

    def agents(self) -> Iterator[tuple[int, Ops]]:
        """Give the operations of each agent."""
        for agent in np.unique(self.agent).tolist():
            yield agent, self.take(np.flatnonzero(self.agent == agent))

    def _all(self) -> tuple[Ints, ...]:
        return self.kind, self.row, self.start, self.end, self.agent, self.stream, self.name, self.stack


def kernel_texts(session: Session, rank: int, names: KernelNames, ids: Ints) -> dict[int, str | None]:
    """Give kernel id -> name."""
    return texts(session, rank, _SYMBOLS[names] + _AMONG, np.unique(ids).tolist())


def string_texts(session: Session, rank: int, ids: Ints) -> dict[int, str | None]:
    """Give string id -> text."""
    return texts(session, rank, _STRINGS + _AMONG, np.unique(ids).tolist())


def read_ops(reading: Reading, rank: Rank, names: Names, stacks: bool = False) -> Ops:
    """Read the operations of a rank; `stacks` also reads which call launched each."""
    session = reading.session
    kernels = _read(session, rank.number, _KERNELS, "K", stacks)
    copies = _read(session, rank.number, _COPIES, "M", stacks)
    known = kernel_texts(session, rank.number, reading.options.kernel_names, kernels[5])
    kernels[5] = names.translate(kernels[5], known)
    copies[5] = names.translate(copies[5], string_texts(session, rank.number, copies[5]))
    kind = np.repeat(np.array([KERNEL, COPY], np.int64), [len(kernels[0]), len(copies[0])])
    row, start, end, agent, stream, name, stack = (np.concatenate(pair) for pair in zip(kernels, copies, strict=True))
    whole = Ops(kind, row, start, end, agent, stream, name, stack)
    good = sound(start, end)
    reading.leave_out("GPU operations", int((~good).sum()))
    order = np.lexsort((row, kind, end, start, agent))
    return whole.take(order[good[order]])


def _read(session: Session, rank: int, select: str, alias: str, stacks: bool) -> list[Ints]:
    event = f"\nLEFT JOIN rocpd_event E ON E.id = {alias}.event_id" if stacks else ""
    return columns(session, rank, select.format(stack="E.stack_id" if stacks else str(NULL), event=event), 7)
