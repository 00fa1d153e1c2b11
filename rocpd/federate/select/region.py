"""Windows set by kernels: from the first start to the last end of some kernels, over all ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rocpd.base.errors import RocpdError
from rocpd.federate.select.filters import regular_expression
from rocpd.schema.rules.kernel_names import matches, names_of_kernels
from rocpd.schema.rules.times import VALID_TIMES

if TYPE_CHECKING:
    from rocpd.base.types import Row
    from rocpd.federate.run.rank_reader import MapRanks, RankReader
    from rocpd.federate.select.timeline import TimeLine

# Sums as reals: a damaged trace can pass 64 bits, and only the order counts.
_KERNELS = f"""
SELECT S.name, TOTAL(K."end" - K.start), MIN(K.start), MAX(K."end")
FROM rocpd_kernel_dispatch K LEFT JOIN ({names_of_kernels()}) S ON S.id = K.kernel_id
WHERE {VALID_TIMES}
GROUP BY K.kernel_id"""


def of_kernels(text: str, line: TimeLine, map_ranks: MapRanks) -> tuple[int, int]:
    """Return the region of all kernels whose name matches, on the aligned time line [ns].

    Raises:
        UsageError: not a regular expression.
        RocpdError: no kernel matches.
    """
    pattern = regular_expression(text, "--window-kernel")
    regions = [times for name, _, *times in _kernels(line, map_ranks, filtered=False) if matches(pattern, name)]
    if not regions:
        raise RocpdError(f"no kernel that ran matches {text}", "`rocpd summary kernels --full-names` lists them")
    return min(start for start, _ in regions), max(end for _, end in regions)


def hottest(line: TimeLine, map_ranks: MapRanks, note: Callable[[str], None]) -> tuple[int, int]:
    """Return the region of the kernel with the largest total time, on the aligned time line [ns]; note its name.

    Raises:
        RocpdError: no kernel ran.
    """
    sums: dict[str | None, float] = {}
    times: dict[str | None, list[int]] = {}
    for name, total, start, end in _kernels(line, map_ranks, filtered=True):
        sums[name] = sums.get(name, 0.0) + total
        times.setdefault(name, []).extend((start, end))
    if not sums:
        raise RocpdError("no kernel ran: there is no hottest region")
    name = max(sums, key=lambda name: (sums[name], name or ""))
    note(f"hottest region: first to last {name}")
    return min(times[name]), max(times[name])


def _kernels(line: TimeLine, map_ranks: MapRanks, *, filtered: bool) -> Iterator[tuple[str | None, float, int, int]]:
    """Yield name, total time, first start and last end of each kernel, per rank; `filtered`: of those that count."""
    for rank, rows in map_ranks(functools.partial(_kernels_of_rank, filtered)):
        shift = line.shift(rank.number)
        for name, total, start, end in rows:
            yield name, total, shift.to_line(start), shift.to_line(end)


def _kernels_of_rank(filtered: bool, reader: RankReader) -> list[Row]:
    return (reader if filtered else reader.whole()).rows(_KERNELS)
