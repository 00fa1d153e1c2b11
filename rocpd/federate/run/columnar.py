"""What ranks are asked, and what answers for them from an index of columns: `rocpd.index` does it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from rocpd.base.frozen import frozen
from rocpd.base.types import Answer, Row
from rocpd.federate.plan.steps import Scatter, Step
from rocpd.federate.run.pool import Share
from rocpd.federate.run.rank_reader import RankTask

Bindings: TypeAlias = Mapping[str, Any]
"""Values of the parameters of a statement, by name."""


@frozen
class RankQuestion:
    """A SELECT for every rank.

    Args:
        step: the statement, which sees one rank.
        bindings: values of its parameters.
        gathered: gathered tables that it joins, with their rows.
    """

    step: Scatter
    bindings: Bindings
    gathered: tuple[tuple[Step, tuple[Row, ...]], ...] = ()


class Columnar(Protocol):
    """Answers what every rank would be asked, without reading its file."""

    def rows(
        self, question: RankQuestion, shares: Sequence[Share], *, insists: bool = False
    ) -> Iterator[list[Row]] | None:
        """Return the rows that ranks would answer a question with, added up over ranks where they add up.

        Args:
            question: what is asked.
            shares: the ranks with their selected rows.
            insists: raise an error instead of returning None.

        Returns:
            Rows, some at a time; None: the ranks have to be asked.

        Raises:
            UsageError: the ranks have to be asked; the message says why.
        """
        ...

    def each(
        self,
        tasks: Sequence[RankTask[Answer]],
        do: Callable[[Sequence[RankTask[Answer]]], Generator[Answer, None, None]],
    ) -> Generator[Answer, None, None]:
        """Yield the answers of tasks, in order: those of an earlier time where they hold, else what `do` yields.

        Args:
            tasks: what is asked of ranks.
            do: does some of the tasks, in order.

        Raises:
            what the works raise.
        """
        ...

    @property
    def why_not(self) -> str:
        """Why nothing can be answered, as a file has no index or has changed; empty: something can."""
        ...

    def can_answer(self, question: RankQuestion, shares: Sequence[Share]) -> str:
        """Return why the ranks have to be asked; empty: they need not be, unless for gathered rows still to come."""
        ...

    def of_ranks(self, numbers: Collection[int]) -> Columnar:
        """Return the index of some ranks, which can be sent to a process that looks their entries up by itself.

        Args:
            numbers: of the ranks.
        """
        ...

    def close(self) -> None:
        """Release what was opened; idempotent."""
        ...
