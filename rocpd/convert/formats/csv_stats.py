"""Makes the statistics files of rocprofv3: `kernel_stats`, `hip_api_stats` … and `domain_stats`, over all ranks.

Sums are exact integers; only averages, shares and deviations round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rocpd.base.types import Ints
from rocpd.convert.cells import Coded, Values, listed
from rocpd.facts.columns import grouped
from rocpd.facts.spread import Moments
from rocpd.schema.rules.events import valid_times

HEADER = '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"\n'

Groups = dict[str, Moments]
"""Statistics by name."""


def group(names: Values, start: Ints, end: Ints) -> Groups:
    """Return the statistics of durations by name; rows with invalid timestamps count as calls, not as time."""
    coded = names if isinstance(names, Coded) else Coded.of(listed(names))
    texts = [*coded.texts, ""]
    length, valid = end - start, valid_times(start, end)
    groups: Groups = {}
    for (code,), rows in grouped([coded.codes]):
        durations = length[rows[valid[rows]]].tolist()
        shortest, longest = min(durations, default=None), max(durations, default=None)
        squares = sum(duration * duration for duration in durations)
        moments = Moments(len(rows), len(durations), sum(durations), shortest, longest, squares)
        add(groups, {texts[code]: moments})
    return groups


def add(total: Groups, part: Mapping[str, Moments]) -> None:
    """Add the statistics of a rank to `total`."""
    for name, moments in part.items():
        total[name] = total.get(name, Moments()) + moments


def lines(groups: Mapping[str, Moments]) -> Iterable[str]:
    """Yield the lines of one file, most time first; shares are of the time in the file."""
    yield HEADER
    total = sum(m.total for m in groups.values())
    for name, m in sorted(groups.items(), key=lambda item: (-item[1].total, item[0])):
        share = m.total * 100 / total if total else None
        numbers = (m.calls, m.total, m.mean, share, m.shortest, m.longest, m.deviation)
        cells = ("" if value is None else repr(value) for value in numbers)
        yield f'"{name.replace(chr(34), chr(34) * 2)}",{",".join(cells)}\n'
