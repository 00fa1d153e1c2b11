"""Says why a rank holds others up, as far as its file says: against one of its peers, whose time is usual.

Reads these two ranks alone, once the verdict is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocpd.federate.run.rank_reader import RankReader
from rocpd.read.names import as_text
from rocpd.summary.intervals import Union, covered, union
from rocpd.summary.periods import Periods
from rocpd.summary.statements import statement
from rocpd.trace.kernel_categories import Categories, is_communication
from rocpd.trace.kernel_names import names_of_kernels
from rocpd.types import Ints

_MOSTLY = 2 / 3  # of what a rank computes longer
_MATTERS = 0.01  # of what a peer takes
_LEAST_SAMPLES = 3

Shape = tuple[object, ...]
"""A kernel's name and what it was launched with."""


class _Rank(NamedTuple):
    """What a rank did between the first step and the last.

    Args:
        kernels: shape -> how often, how long in all [ns], how many work-items in all; communication is left out.
        busy: time in which its GPUs ran any kernel.
        clock: mean of the samples of its clock [MHz], None where there are too few.
    """

    kernels: dict[Shape, tuple[int, int, int]]
    busy: Union
    clock: float | None

    @property
    def time(self) -> int:
        """How long all kernels ran [ns]."""
        return sum(time for _, time, _ in self.kernels.values())

    @property
    def items(self) -> int:
        """How many work-items all kernels had."""
        return sum(items for _, _, items in self.kernels.values())


class Cause(NamedTuple):
    """Why a rank is late: words that go on a sentence, and numbers by name."""

    text: str
    evidence: dict[str, float]


def cause_of(late: RankReader, peer: RankReader, pieces: Periods, categories: Categories) -> Cause:
    """Return why a rank is late; without words where nothing shows it.

    Args:
        late: reads the rank.
        peer: reads a rank that does the same and takes as long as usual.
        pieces: the steps.
        categories: say which kernels are communication.
    """
    first, second = (_read(reader, *_span(reader, pieces), categories) for reader in (late, peer))
    causes = [cause for cause in (_computing(first, second), _clock(first, second)) if cause]
    if not causes:
        idles = (_idle(first, pieces, late.rank.number), _idle(second, pieces, peer.rank.number))
        causes = [cause for cause in (_idling(*idles, float(np.median(pieces.length))),) if cause]
    evidence = {name: value for cause in causes for name, value in cause.evidence.items()}
    return Cause(", ".join(cause.text for cause in causes), evidence)


def _span(reader: RankReader, pieces: Periods) -> tuple[int, int]:
    column = pieces.ranks.index(reader.rank.number)
    return int(pieces.start[0, column]), int(pieces.end[-1, column])


def _read(reader: RankReader, start: int, end: int, categories: Categories) -> _Rank:
    texts = {number: as_text(name) for number, name in reader.rows(names_of_kernels())}
    compute = {number: text for number, text in texts.items() if not is_communication(categories.of(text))}
    kernels: dict[Shape, tuple[int, int, int]] = {}
    for number, *shape, count, time, items in reader.rows(statement("shapes"), (start, end)):
        if number in compute:
            key = (compute[number], *shape)
            before = kernels.get(key, (0, 0, 0))
            kernels[key] = before[0] + count, before[1] + time, before[2] + (items or 0)
    times = np.array(reader.rows(statement("kernel_times"), (start, end)), np.int64).reshape(-1, 2)
    ((samples, clock),) = reader.rows(statement("clock_samples"), (start, end))
    return _Rank(kernels, union(times[:, 0], times[:, 1]), clock if samples >= _LEAST_SAMPLES else None)


def _computing(late: _Rank, peer: _Rank) -> Cause | None:
    """Return what makes the kernels of a rank take longer: the same ones do, or there is more to do."""
    longer = late.time - peer.time
    if not peer.time or longer < _MATTERS * peer.time:
        return None
    same = [key for key, (count, *_) in late.kernels.items() if peer.kernels.get(key, (0,))[0] == count]
    times = [sum(rank.kernels[key][1] for key in same) for rank in (late, peer)]
    slower = times[0] - times[1]
    percent = slower * 100 / times[1] if times[1] else 0.0
    more = (late.items / peer.items - 1) * 100 if peer.items else 0.0
    evidence = {"same_kernels_longer_percent": percent, "more_work_items_percent": more}
    if slower >= _MOSTLY * longer:
        return Cause(f"the same kernels with equal grids take {percent:.2g} % longer", evidence)
    if slower > (1 - _MOSTLY) * longer:
        return Cause(f"the same kernels take {percent:.2g} % longer, and it has other ones or larger grids", evidence)
    return Cause(f"it has more work: {more:.2g} % more work-items" if more >= 1 else "it runs other kernels", evidence)


def _clock(late: _Rank, peer: _Rank) -> Cause | None:
    if not late.clock or not peer.clock or late.clock > (1 - _MATTERS) * peer.clock:
        return None
    percent = (1 - late.clock / peer.clock) * 100
    return Cause(f"its clock is {percent:.2g} % lower", {"clock_lower_percent": percent})


_Idle = tuple[Ints, Ints, Ints]
"""Time between steps, time in steps before the first kernel, and idle time after it [ns]."""


def _idling(late: _Idle, peer: _Idle, step: float) -> Cause | None:
    """Return where a rank that computes no longer loses time; `step` is how long a step takes [ns]."""
    names = ("starts its steps {} later", "launches its first kernel of a step {} later", "idles {} longer in a step")
    more = [float(np.median(a - b)) if len(a) else 0.0 for a, b in zip(late, peer, strict=True)]
    most = int(np.argmax(more))
    if more[most] < _MATTERS * step:
        return None
    return Cause(f"it {names[most].format(f'{more[most] / 1000:.3g} us')}", {"later_ns": more[most]})


def _idle(rank: _Rank, pieces: Periods, number: int) -> _Idle:
    column = pieces.ranks.index(number)
    start, end = pieces.start[:, column], pieces.end[:, column]
    first = np.append(rank.busy[0], end[-1])[np.searchsorted(rank.busy[0], start)]
    begun = np.clip(first, start, end)
    return start[1:] - end[:-1], begun - start, end - begun - (covered(rank.busy, end) - covered(rank.busy, begun))
