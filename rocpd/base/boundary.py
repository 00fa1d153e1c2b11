"""Failure stays where it happens: of several parts that make an answer one that fails is named, and the rest stands.

What is wrong with inputs, or with what was asked, passes as ever: it is no failure of a part. Never prints.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rocpd.base import RocpdError, frozen

Made = TypeVar("Made")


@frozen
class Failure:
    """A part that failed, why, and where: as texts, which hold nothing of what was being made.

    Args:
        what: the part.
        reason: in words.
        trace: as Python writes it.
    """

    what: str
    reason: str
    trace: str


failures: deque[Failure] = deque(maxlen=100)
"""The latest failures of this process; a command says those that came while it ran."""


class Policy:
    """The way a failure is handled; tests have it raised.

    Attributes:
        is_raised: it ends the whole, as it would without a boundary.
    """

    is_raised = False


def each_for_itself(what: str, make: Callable[[], Made], otherwise: Callable[[str], Made]) -> Made:
    """Return what `make` returns; where it fails, what `otherwise` makes of the reason.

    Args:
        what: the part, as in `rule copy.small`.
        make: makes it.
        otherwise: takes the reason, in words.

    Raises:
        RocpdError: as `make`.
    """
    try:
        return make()
    except Exception as error:  # noqa: BLE001 (named)
        _note(what, error)
        return otherwise(reason_of(error))


def as_far_as_made(what: str, parts: Iterable[Made]) -> Iterator[Made]:
    """Yield what an analysis, or another part that makes several things, makes until it fails.

    Args:
        what: the part, as in `analysis gaps`.
        parts: makes them.

    Raises:
        RocpdError: as `parts`.
    """
    try:
        yield from parts
    except Exception as error:  # noqa: BLE001 (named)
        _note(what, error)


def _note(what: str, error: Exception) -> None:
    """Note a failure; raise it if it is none of a part, or tests want it."""
    if isinstance(error, RocpdError) or Policy.is_raised:
        raise error
    import traceback

    failures.append(Failure(what, reason_of(error), "".join(traceback.format_exception(error))))


def reason_of(error: Exception) -> str:
    """Return why a part could not be judged, in words."""
    return f"could not be judged: {type(error).__name__}: {error}"
