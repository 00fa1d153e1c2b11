"""The agent of a copy: SQL and numpy say the same, whatever is known of its two ends."""

from __future__ import annotations

import itertools
import sqlite3

import numpy as np
import pytest

from rocpd.base import NULL
from rocpd.schema.rules.events import copy_agent_sql, copy_agents

CPU, GPU, GPU2, UNKNOWN = 0, 1, 2, 99
ENDS = (CPU, GPU, GPU2, UNKNOWN, None)


def agent(to: int | None, source: int | None) -> int | None:
    """The rule in words of Python: the GPU that it reaches, else the GPU that it leaves, else where it goes."""
    if to in (GPU, GPU2):
        return to
    return source if source in (GPU, GPU2) else to


@pytest.mark.parametrize(("to", "source"), list(itertools.product(ENDS, ENDS)))
def test_sql_and_numpy_agree(to: int | None, source: int | None) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE rocpd_info_agent (id INTEGER, type TEXT)")
    kinds = ((CPU, "CPU"), (GPU, "GPU"), (GPU2, "GPU"), (3, "NIC"), (4, None))
    connection.executemany("INSERT INTO rocpd_info_agent VALUES (?, ?)", kinds)
    copy = "FROM (SELECT ? AS dst_agent_id, ? AS src_agent_id)"
    for gpus in (copy_agent_sql(), copy_agent_sql(f"{GPU}, {GPU2}")):
        assert connection.execute(f"SELECT {gpus} {copy}", (to, source)).fetchall() == [(agent(to, source),)]
    connection.close()
    connection.close()
    reached, left = (np.array([NULL if end is None else end]) for end in (to, source))
    [chosen] = copy_agents(reached, left, [GPU, GPU2]).tolist()
    assert (None if chosen == NULL else chosen) == agent(to, source)
