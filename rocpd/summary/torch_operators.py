"""Reads the operators of PyTorch of one rank, and finds those in which GPU work was launched.

Operators are regions of a category of their own, from PyTorch's traces or from RPD's; their arguments are the sizes of
inputs and the sequence number by which a backward operator knows its forward one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.read.columns import columns
from rocpd.read.names import as_text
from rocpd.summary.links import launch_calls
from rocpd.summary.ops import Ops, string_texts
from rocpd.summary.reading import RankReading
from rocpd.summary.statements import statement
from rocpd.trace.nesting import Nesting, nest_times
from rocpd.trace.times import valid_times
from rocpd.types import Ints

_COLUMNS = ("name", "start", "end", "thread", "event")


@frozen
class TorchOperators:
    """The operators of a rank, of the whole trace.

    Args:
        names: of each.
        sizes: texts of the sizes of its inputs, None where they were not recorded.
        values: texts of the inputs that are no tensors, None where they were not recorded.
        sequence: its sequence number, None where it has none.
        start, end: [ns].
        thread: id.
        event: id of its event.
        nesting: which lies in which.
    """

    names: Sequence[str | None]
    sizes: Sequence[str | None]
    values: Sequence[str | None]
    sequence: Sequence[int | None]
    start: Ints
    end: Ints
    thread: Ints
    event: Ints
    nesting: Nesting

    def around(self, row: int) -> Iterator[int]:
        """Yield an operator and those around it, from the inside out; nothing for -1."""
        return self.nesting.path(row)


def read_operators(reading: RankReading) -> TorchOperators:
    """Read the operators of a rank; those with invalid times are left out."""
    reader = reading.reader.whole()
    name, start, end, thread, event = columns(reader, "rocpd_region", statement("operators"), _COLUMNS)
    valid = np.flatnonzero(valid_times(start, end))
    name, start, end, thread, event = (column[valid] for column in (name, start, end, thread, event))
    facts = _facts(reading) if len(event) else {}
    events = event.tolist()
    texts = string_texts(reader, name)
    return TorchOperators(
        [texts.get(number) for number in name.tolist()],
        [facts.get((number, "Input Dims")) for number in events],
        [facts.get((number, "Concrete Inputs")) for number in events],
        [_whole(facts.get((number, "Sequence number"))) for number in events],
        start,
        end,
        thread,
        event,
        nest_times(start, end, thread),
    )


def _facts(reading: RankReading) -> Mapping[tuple[int, str], str]:
    rows = reading.reader.whole().rows(statement("operator_facts"))
    return {(event, name): as_text(value) or "" for event, name, value in rows}


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def launched_by(reading: RankReading, operators: TorchOperators, ops: Ops) -> Ints:
    """Return the innermost operator around the call that launched each operation, -1 where there is none."""
    return operators.nesting.innermost(*launch_calls(reading.reader, ops.stack))
