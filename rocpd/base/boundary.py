"""Contains failures: if one of several parts of an answer fails, it is named, and the other parts stay.

Errors of inputs or requests (`RocpdError`) pass unchanged: they are no failure of a part. Never prints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rocpd.base import RocpdError, frozen

Made = TypeVar("Made")


@frozen
class Failure:
    """A part that failed, with reason and traceback as texts, which keep no objects alive.

    Args:
        what: name of the part.
        reason: the reason, in words.
        trace: the traceback, as Python writes it.
    """

    what: str
    reason: str
    trace: str


failures: deque[Failure] = deque(maxlen=100)
"""The latest failures of this process; a command reports those that happened while it ran."""


class Policy:
    """The way a failure is handled; tests have it raised.

    Attributes:
        is_raised: a failure ends the whole answer, as it would without a boundary.
    """

    is_raised = False


def each_for_itself(what: str, make: Callable[[], Made], otherwise: Callable[[str], Made]) -> Made:
    """Return the result of `make`; if it fails, the result of `otherwise` for the reason.

    Args:
        what: name of the part, as in `rule copy.small`.
        make: makes the part.
        otherwise: makes a replacement, given the reason in words.

    Raises:
        RocpdError: as `make`.
    """
    try:
        return make()
    except Exception as error:  # noqa: BLE001 (named)
        _note(what, error)
        return otherwise(reason_of(error))


def as_far_as_made(what: str, parts: Iterable[Made]) -> Iterator[Made]:
    """Yield the parts that an analysis, or another generator, makes until it fails.

    Args:
        what: name of the whole, as in `analysis gaps`.
        parts: iterator that makes the parts.

    Raises:
        RocpdError: as `parts`.
    """
    try:
        yield from parts
    except Exception as error:  # noqa: BLE001 (named)
        _note(what, error)


def _note(what: str, error: Exception) -> None:
    """Note a failure; raise it if it is an error of inputs or requests, or if tests ask for that."""
    if isinstance(error, RocpdError) or Policy.is_raised:
        raise error
    import traceback

    failures.append(Failure(what, reason_of(error), "".join(traceback.format_exception(error))))


def reason_of(error: Exception) -> str:
    """Return why a part could not be judged, in words."""
    return f"could not be judged: {type(error).__name__}: {error}"
