"""Plans which counters to collect together: as few runs of the program as the hardware allows.

A block counts a few things at a time (rocprof-compute's `perfmon_config`), and accumulates one level counter. Whatever
a metric needs goes into one run where it fits: a ratio of two runs is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rocpd.base.frozen import frozen
from rocpd.counters.measured import ACCUMULATOR

CYCLES = "GRBM_GUI_ACTIVE"
"""Goes into every run: cycles say whether the times of two runs compare."""

_SLOTS: Mapping[str, int] = {
    "SQ": 8, "TA": 2, "TD": 2, "TCP": 4, "TCC": 4, "CPC": 2, "CPF": 2, "SPI": 6, "GRBM": 2,
}  # fmt: skip


def block_of(counter: str) -> str:
    """Return the block that counts.

    >>> block_of("SQC_DCACHE_HITS"), block_of("TCC_EA0_RDREQ_sum"), block_of("GRBM_COUNT")
    ('SQ', 'TCC', 'GRBM')
    """
    block = counter.partition("_")[0]
    return "SQ" if block == "SQC" else block


@frozen
class CollectingRun:
    """Counters of one run of the program."""

    counters: tuple[str, ...] = (CYCLES,)

    def with_counters(self, names: Iterable[str]) -> CollectingRun | None:
        """Return the run with further counters; None: they do not fit."""
        counters = tuple(dict.fromkeys((*self.counters, *names)))
        used: dict[str, int] = {}
        for name in counters:
            used[block_of(name)] = used.get(block_of(name), 0) + 1
        levels = [name for name in counters if "_LEVEL" in name and block_of(name) == "SQ"]
        fits = all(count <= _SLOTS.get(block, 1) for block, count in used.items())
        return CollectingRun(counters) if fits and (ACCUMULATOR not in counters or len(levels) == 1) else None

    @property
    def line(self) -> str:
        """The option of rocprofv3."""
        return f"--pmc {' '.join(self.counters)}"


def collecting_runs(metrics: Iterable[Iterable[str]]) -> list[CollectingRun]:
    """Return the runs that collect what metrics need, by the names that their formulas use.

    >>> [run.line for run in collecting_runs([["TCC_HIT_sum", "TCC_MISS_sum"], ["ACC(SQ_LEVEL_WAVES)"]])]
    ['--pmc GRBM_GUI_ACTIVE TCC_HIT_sum TCC_MISS_sum SQ_ACCUM_PREV_HIRES SQ_LEVEL_WAVES']
    """
    runs: list[CollectingRun] = []
    for needed in metrics:
        together = tuple(dict.fromkeys(name for part in needed for name in _collected(part)))
        for names in (together,) if CollectingRun().with_counters(together) else map(_collected, needed):
            _place(runs, names)
    return runs


def _collected(name: str) -> tuple[str, ...]:
    return (ACCUMULATOR, name[4:-1]) if name.startswith("ACC(") else (name,)


def _place(runs: list[CollectingRun], names: tuple[str, ...]) -> None:
    """Put counters into the first run with room for them, or else into a new one, unless a run has them."""
    if any(set(names) <= set(run.counters) for run in runs):
        return
    for place, run in enumerate(runs):
        if grown := run.with_counters(names):
            runs[place] = grown
            return
    runs.append(CollectingRun().with_counters(names) or CollectingRun((CYCLES, *names)))
