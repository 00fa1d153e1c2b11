"""Clocks that were set ahead, as steps show it where no collective does. Pure arithmetic.

Ranks that train together go through their steps together: a host that stalls makes the steps of all ranks longer. So
where a step takes longer by one clock alone, and later steps do not make up for it, that clock was set, provided that
none of its ranks did anything for as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rocpd.base import Ints, by_key
from rocpd.federate.select.align import Shift
from rocpd.federate.select.clocks import ClockJump
from rocpd.replay.trend import NORMAL

_FEWEST = 4  # steps
_FAR = 10.0  # deviations of the other steps
_LEAST = 0.02  # share of a step, at least, of a jump
_KEPT = 0.75  # share of the jump that all steps together take longer, and that no event lies in


def jumps(
    begins: Mapping[int, Mapping[int | None, int]], lines: Mapping[int, int], events: Callable[[int], Ints]
) -> dict[int, Shift]:
    """Return the shift of each rank whose clock was set ahead, which takes that out.

    Args:
        begins: rank -> number of a step -> its begin [ns of the clock of the rank].
        lines: rank -> number of its clock; times of different clocks do not compare.
        events: returns starts and ends of the events of a rank [ns of its clock].
    """
    of_line = by_key((lines[rank], rank) for rank in begins)
    if len(of_line) < 2:
        return {}
    steps = sorted(set.intersection(*({each for each in of if each is not None} for of in begins.values())))
    if len(steps) <= _FEWEST:
        return {}
    at = {line: np.array([[begins[rank][step] for step in steps] for rank in ranks]) for line, ranks in of_line.items()}
    lasts = np.array([np.median(np.diff(each), axis=0) for each in at.values()])
    shifts: dict[int, Shift] = {}
    for number, (line, ranks) in enumerate(of_line.items()):
        longer = lasts[number] - np.median(np.delete(lasts, number, axis=0), axis=0)
        place = int(longer.argmax())
        jump, noise = float(longer[place]), NORMAL * float(np.median(np.abs(longer - np.median(longer))))
        is_far = jump > max(_FAR * noise, _LEAST * float(np.median(lasts)))
        if is_far and abs(longer.sum() - jump) <= (1 - _KEPT) * jump:
            within = int(at[line][:, place].min()), int(at[line][:, place + 1].max())
            times = np.concatenate([events(rank) for rank in ranks])
            seen = ClockJump(round(jump), within[1], within).at_gap(times[(times > within[0]) & (times < within[1])])
            if seen.jump_ns >= _KEPT * jump:
                shifts |= dict.fromkeys(ranks, Shift(jump=seen.jump_ns, since=seen.at_ns))
    return shifts
