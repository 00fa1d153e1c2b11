"""Everything that one rank recorded, whatever window and filters: by that a recording is judged."""

from __future__ import annotations

from typing import NamedTuple

from rocpd.facts.columns import Names
from rocpd.facts.operations import OperationNames, Ops, read_ops
from rocpd.facts.rank import RankReading
from rocpd.facts.regions import RankRegions, read_regions


class RankRecording(NamedTuple):
    """The operations and regions of a rank.

    Args:
        ops: operations, with their stack ids.
        kernels: what their names stand for.
        regions: calls and markers.
        names: what their names stand for.
        invalid: how many operations and regions have invalid timestamps.
    """

    ops: Ops
    kernels: OperationNames
    regions: RankRegions
    names: Names
    invalid: int


def read_recording(reading: RankReading) -> RankRecording:
    """Read everything that a rank recorded."""
    whole, kernels = reading.whole(), OperationNames()
    ops = read_ops(whole, kernels, stacks=True)
    return RankRecording(ops, kernels, *read_regions(whole), sum(whole.left_out.values()))
