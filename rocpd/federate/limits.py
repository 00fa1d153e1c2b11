"""The sizes and times at which rocpd changes how it works; answers never depend on them."""

from __future__ import annotations

from rocpd.base import frozen


@frozen
class Limits:
    """Sizes and times at which the way of working changes.

    Args:
        small_bytes: a job whose files are smaller in total [bytes] is read attached: that takes as long as planning.
        indexed_bytes: a single file that is smaller [bytes] is read attached, even where it is indexed: importing what
            plans and DuckDB takes 0.2 s.
        kept_bytes: what is derived of ranks is kept where files are as large on average [bytes]: writing it takes 14 ms
            a rank, which in 64 files of 0.6 MB three later commands save, in files of 36 MB the next one.
        few_rows: with more rows than this in a share, threads only get in each other's way (measured: 1.5 times
            slower), and the rows are read one share after the other.
        chunk_rows: rows that are yielded at a time.
        process_bytes: a job of at least this size [bytes] is read by several processes: they take 0.2 s to start, and
            reading this much takes about twice as long.
        idle_connections: connections kept open between statements: 0.4 MB each; opening a file again takes 1 ms.
        busy_ms: how long a reader waits for a writer's lock [ms].
        task_bytes: least size [bytes] of a task of a cluster: a scheduler handles several thousand tasks a second.
        fan_in: partial results that a cluster adds up at a time.
        dial_s: how long to wait for a scheduler [s].
    """

    small_bytes: int = 32_000_000
    indexed_bytes: int = 200_000_000
    kept_bytes: int = 8 << 20
    few_rows: int = 10_000
    chunk_rows: int = 10_000
    process_bytes: int = 48 << 20
    idle_connections: int = 256
    busy_ms: int = 2000
    task_bytes: int = 4 << 20
    fan_in: int = 16
    dial_s: float = 10


DEFAULT = Limits()
"""The limits of a session that is given none."""
