"""What answers for ranks from an index of columns, as running plans and works knows it; `rocpd.index` does it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

from rocpd.federate.plan.steps import Scatter
from rocpd.federate.run.pool import Share
from rocpd.federate.run.rank_reader import RankTask
from rocpd.federate.run.request import Bindings
from rocpd.types import Answer, Row


class Columnar(Protocol):
    """Answers what every rank would be asked, without reading its file."""

    def rows(
        self, step: Scatter, bindings: Bindings, shares: Sequence[Share], *, insists: bool = False
    ) -> Iterator[list[Row]] | None:
        """Return the rows of a step, as the ranks would return them, added up over ranks where they add up.

        Args:
            step: the statement.
            bindings: values of its parameters.
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

    def can_answer(self, step: Scatter, bindings: Bindings, shares: Sequence[Share]) -> str:
        """Return why the ranks have to be asked for a step; empty: they need not be."""
        ...

    def close(self) -> None:
        """Release what was opened; idempotent."""
        ...
