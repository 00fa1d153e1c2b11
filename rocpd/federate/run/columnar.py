"""What answers the steps of plans from an index of columns, as running them knows it; `rocpd.index` does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rocpd.federate.plan.steps import Scatter
from rocpd.federate.run.pool import Share
from rocpd.federate.run.request import Bindings
from rocpd.types import Row


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
