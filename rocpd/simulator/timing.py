"""Owns when everything happens in true time: round after round, and how long exchanges between ranks take.

A round is the setup, one step, or the teardown. Knows no clocks and writes no rows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from rocpd.frozen import frozen
from rocpd.simulator.conditions import Conditions
from rocpd.simulator.program import Meeting, RoundProgram
from rocpd.types import Ints

LEAST_JITTER = 5.0
"""The members of an exchange end at least so far apart [us], unless the options ask for less."""

_ROUND_GAP = 5000  # between two rounds [ns]
_LATENCY = 18_000  # of an exchange, however small [ns]
_CONNECTING = 2_500_000  # what the first exchange of a group takes longer [ns]
_GROUP_RATE, _LINK_RATE = 320.0, 50.0  # bytes per ns, of a group and between two ranks


@frozen
class Timing:
    """True times [ns] of a job.

    Args:
        anchors: `[round, rank, anchor]`, as `template.Time` numbers them.
        end: when each rank is done.
    """

    anchors: Ints
    end: Ints


class Exchanging:
    """How long exchanges take."""

    def __init__(self, jitter: float, seed: int) -> None:
        """Let the members of each exchange end up to `jitter` us apart."""
        self._least, self._most = min(LEAST_JITTER, jitter) * 1000, jitter * 1000
        self._random = np.random.default_rng([seed, 4])

    def durations(self, meeting: Meeting, factor: float) -> Ints:
        """Return how long after the last arrival each member of each group is done [ns].

        Args:
            meeting: the exchange.
            factor: how much longer transfers take.
        """
        exchange, shape = meeting.exchange, meeting.members.shape
        rate = _LINK_RATE if exchange.peer else _GROUP_RATE
        shortest = _LATENCY + exchange.connects * _CONNECTING + exchange.size / rate * factor
        chance = self._random.random((shape[0], shape[1] + 1))
        apart = self._least + (self._most - self._least) * chance[:, :1]
        # When each member ends between the first (0) and the last (1) of its group.
        share = chance[:, 1:] - np.minimum.reduce(chance[:, 1:], axis=1, keepdims=True)
        if shape[1] > 1:
            share /= np.maximum.reduce(share, axis=1, keepdims=True)
        done: Ints = (shortest + apart * share).astype(np.int64)
        return done


def run(programs: Sequence[RoundProgram], conditions: Conditions, begin: Ints, exchanging: Exchanging) -> Timing:
    """Return the times of a job.

    Args:
        programs: one for each round.
        conditions: of each round.
        begin: when each rank begins the first round [ns].
        exchanging: how long exchanges take.
    """
    anchors = np.zeros((len(programs), len(begin), max(program.width for program in programs)), dtype=np.int64)
    now = begin
    for n, program in enumerate(programs):
        anchors[n, :, 0] = now + conditions.delay[n]
        durations = functools.partial(exchanging.durations, factor=float(conditions.transfer[n]))
        now = program.run(anchors[n], conditions.stretch[n], durations) + _ROUND_GAP
    return Timing(anchors, now)
