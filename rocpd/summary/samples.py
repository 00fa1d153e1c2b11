"""What was sampled while the job ran: clocks, power, temperature, memory of GPUs and processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np

from rocpd.errors import RocpdError
from rocpd.read.columns import number
from rocpd.read.names import as_text
from rocpd.summary.reading import AGENT, RANK, Key, RankReading, Reading, order_of
from rocpd.summary.result import Field, Summary, TableDefinition, by_name
from rocpd.summary.statements import statement
from rocpd.summary.steady import steady_default
from rocpd.trace.steps import is_step
from rocpd.types import NULL

CLOCK = re.compile(r"gfx.?clock|gfxclk|sclk", re.IGNORECASE)
"""Names of what samples the clock of the compute units."""

TABLES = by_name(
    TableDefinition(
        "samples",
        "Sampled values of each rank and agent: in its steps without warm-up, where steps are marked.",
        (
            RANK,
            AGENT,
            Field("name", "", "what was sampled"),
            Field("units", "", "its unit"),
            Field("samples", "", "how many"),
            Field("mean", "", "mean of the values"),
            Field("min", "", "smallest"),
            Field("median", "", "median"),
            Field("max", "", "largest"),
        ),
    )
)


def samples(reading: Reading) -> Iterator[Summary]:
    """Return what was sampled.

    Raises:
        RocpdError: nothing was.
    """
    values: dict[Key, list[float]] = {}
    for _, added in reading.each(partial(_of_rank, step=is_step(reading.options.step_marker))):
        values |= added
    if not values:
        raise RocpdError("no samples in the selection")
    rows = []
    for key in sorted(values, key=order_of):
        some = np.array(values[key])
        statistics = (some.mean(), some.min(), np.median(some), some.max())
        rows.append((*key, len(some), *map(float, statistics)))
    yield Summary(TABLES["samples"], TABLES["samples"].fields, rows)


def _of_rank(reading: RankReading, step: re.Pattern[str]) -> dict[Key, list[float]]:
    steady = steady_default(reading, step)
    values: dict[Key, list[float]] = {}
    for name, units, agent, at, value in reading.reader.rows(statement("sampled_values")):
        if isinstance(value, int | float) and (not steady or steady.start <= number(at) < steady.end):
            lane = number(agent)
            key = (reading.rank.number, None if lane == NULL else lane, as_text(name), as_text(units))
            values.setdefault(key, []).append(float(value))
    return values
