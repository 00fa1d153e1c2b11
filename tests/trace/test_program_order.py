"""What two ranks do under a name that says nothing: by how many launches each is ahead, it is a collective or not."""

from __future__ import annotations

import numpy as np
import pytest

from rocpd.facts.communication.collectives import Channel, CommunicationKernels
from rocpd.facts.communication.program_order import sends

NCCL = "ncclDevKernel_Generic_1"
FORWARD, BACKWARD = 30, 60


def channel(rank: int, program: str, name: str = NCCL) -> Channel:
    """Return the channel of a rank: phases of work (f, b), setup (s), another kernel (k), and what counts (c)."""
    launches, order = 0, []
    for part in program:
        launches += {"f": FORWARD, "b": BACKWARD, "s": 200, "k": 1, "c": 1}[part]
        order += [launches] if part == "c" else []
    nothing = np.zeros(len(order), np.int64)
    counted = CommunicationKernels(*[nothing] * 6)
    return Channel(
        name, rank, 0, None, None, nothing, nothing, nothing, nothing, counted, order=np.array([*order, launches])
    )


PROGRAMS = {
    "data in parallel": ("fbc" * 20, "fbc" * 20, False),
    "one sets up more": ("s" + "fbc" * 20, "fbc" * 20, False),
    "one runs a kernel more in each step": ("fbkc" * 50, "fbc" * 50, False),
    "a single collective": ("fbcf", "fbcf", False),
    "a pipeline of two stages": ("fcfccbcb" * 10, "cfcfbcbc" * 10, True),
    "many batches, one step": ("fc" * 8 + "cb" * 8, "cf" * 8 + "bc" * 8, None),
    "many batches, many steps": (("fc" * 8 + "cb" * 8) * 9, ("cf" * 8 + "bc" * 8) * 9, True),
    "results are passed on only": ("fc" * 20, "cf" * 20, True),
    "a single transfer": ("fc", "cf", True),
    "nothing but communication": ("c" * 20, "c" * 20, None),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_who_is_ahead_tells_transfers_from_collectives(case: str) -> None:
    first, second, answer = PROGRAMS[case]
    assert sends((channel(0, first), channel(1, second))) is answer
    assert sends((channel(0, second), channel(1, first))) is answer


def test_a_name_or_a_call_decides_first() -> None:
    first, second, _ = PROGRAMS["results are passed on only"]
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    assert sends((channel(0, first, name), channel(1, second, name))) is False


def test_pairs_in_step_are_no_collective_of_four() -> None:
    first, second, _ = PROGRAMS["a pipeline of two stages"]
    stages = [channel(rank, first if rank < 2 else second) for rank in range(4)]
    assert sends(tuple(stages)) is True
    assert sends((stages[0], stages[1])) is False


def test_without_numbers_of_launches_nothing_is_known() -> None:
    unknown = channel(0, "")
    assert sends((unknown, unknown)) is None
    assert sends((unknown, unknown, unknown)) is False
