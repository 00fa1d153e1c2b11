"""Distinguishes collectives of two ranks from sends and receives by the progress of their programs. Pure arithmetic.

A kernel may be either if its name and calls say nothing. Members of a collective come to it after equally many
launches, as they run one program. When one rank sends to another, the sender has done its part of the work, the
receiver has not.
"""

from __future__ import annotations

import numpy as np

from rocpd.base import Floats
from rocpd.facts.communication.collectives import Channel, Group
from rocpd.facts.communication.rccl import BARRIER, transfer_of

EITHER = "which of them send and receive, and which are collectives, is not clear"

_LEAST = 5  # kernels to fit a line to
_IN_STEP, _APART = 0.25, 0.6  # of the launches from one kernel to the next
_NOTHING = 1.5  # launches from one kernel to the next: nothing happens between


def sends(group: Group) -> bool | None:
    """Whether the kernels of a group send and receive; None if unknown.

    Args:
        group: channels that run at the same time and end together; more than two may be pairs that run in step.
    """
    if is_known(group):
        return False
    return any(_send(group[0], other) for other in group[1:]) if len(group) > 2 else _send(*group)


def _send(member: Channel, partner: Channel) -> bool | None:
    """Whether kernels of two ranks send and receive; None if unknown."""
    first, second = (channel.order.astype(float) for channel in (member, partner))
    if min(len(first), len(second)) < 2 or min(np.diff(first).min(), np.diff(second).min()) < 0:
        return None
    between = float(first[-1] + second[-1]) / 2 / len(first)
    if between < _NOTHING:
        return None
    ahead = first[:-1] - second[:-1]
    left = first[-1] - second[-1] - ahead[-1]
    if ahead[0] * left < 0 and min(abs(ahead[0]), abs(left)) > between / 2:
        return True  # one rank is ahead by the same part of its work all the time
    swing = float(np.abs(_without_trend(ahead)).mean()) / between
    return None if _IN_STEP < swing < _APART else swing >= _APART


def is_known(group: Group) -> bool:
    """Whether name or calls show that the kernels of a group are collectives."""
    by_name = (transfer_of(channel.name, ()) for channel in group)
    named = any(channel.communicator or channel.size or any(channel.transfers) for channel in group)
    return named or any(each is not None and each.operation != BARRIER for each in by_name)


def _without_trend(values: Floats) -> Floats:
    """Return values minus the line through them: one rank may launch a little more each time."""
    at = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float((at @ values) / (at @ at)) if len(values) >= _LEAST else 0.0
    rest: Floats = values - values.mean() - at * slope
    return rest
