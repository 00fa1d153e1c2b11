"""The agent of an operation: of a kernel the one that ran it, of a copy one of the two it lies between.

A copy belongs to the GPU that it reaches, else to the GPU that it leaves, else to where it goes: that is where it takes
time from other work, and where a person looks for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rocpd.base import Ints

GPUS = "SELECT id FROM rocpd_info_agent WHERE type = 'GPU' AND id IS NOT NULL"
"""SQL: the GPUs among the agents of a rank, by the names that its tables have without suffix."""


def copy_agent_sql(gpus: str = GPUS) -> str:
    """Return the SQL expression for the agent of a copy.

    Args:
        gpus: ids of GPUs, as what stands between the parentheses of IN.
    """
    to, source = "dst_agent_id", "src_agent_id"
    return " ".join(map(str.strip, _chosen(f"{to} IN ({gpus})", to, f"{source} IN ({gpus})", source)))


def _chosen(reaches_gpu: str, to: str, leaves_gpu: str, source: str) -> tuple[str, ...]:
    """Return the lines of the expression."""
    return "CASE", f"    WHEN {reaches_gpu} THEN {to}", f"    WHEN {leaves_gpu} THEN {source}", f"    ELSE {to}", "END"


COPY_AGENT = "\n".join(_chosen("D.type = 'GPU'", "M.dst_agent_id", "S.type = 'GPU'", "M.src_agent_id"))
"""SQL: the agent of a copy `M` whose agents, which it reaches and leaves, are joined as `D` and `S`."""


def copy_agents(to: Ints, source: Ints, gpus: Iterable[int]) -> Ints:
    """Return the agents of copies, as `copy_agent_sql` does in SQL.

    >>> import numpy as np
    >>> host, gpu, other = 0, 1, 2
    >>> copy_agents(np.array([gpu, host, other, host]), np.array([host, gpu, gpu, host]), [gpu, other]).tolist()
    [1, 1, 2, 0]
    """
    import numpy as np

    ids = np.fromiter(gpus, np.int64)
    return np.where(np.isin(source, ids) & ~np.isin(to, ids), source, to)
