"""What an executor is: something that works on ranks in parallel, with the cores of this machine or of a cluster.

The answers never depend on the executor: they come, and are merged, in rank order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from rocpd.base.types import Answer, Progress, Row
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.pool import Share
from rocpd.federate.run.request import Request

Task = TypeVar("Task")


@runtime_checkable
class Executor(Protocol):
    """Works on ranks in parallel.

    Attributes:
        is_remote: work is done on other machines, which open the files by themselves.
    """

    is_remote: bool

    def rows(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        """Run a statement in every share; yield the rows in order of shares, or fewer rows that merge to the same.

        Raises:
            QueryError: SQLite refuses the statement; it may still run attached.
            InputError: a file cannot be read.
        """
        ...

    def each(
        self, work: Callable[[Task], Answer], tasks: Sequence[Task], ranks: Sequence[Rank]
    ) -> Generator[Answer, None, None]:
        """Yield `work(task)` for each task, in order, with only a few tasks under way ahead of the consumer.

        Args:
            work: a module-level function or a `functools.partial` of one.
            tasks: values that can be pickled; so can the answers.
            ranks: the rank that each task is about.

        Raises:
            what `work` raises.
        """
        ...

    def close(self) -> None:
        """Release what was started for this session; idempotent."""
        ...


def in_order(
    submit: Callable[[Task], Any], tasks: Iterable[Task], most: int, running: deque[Any]
) -> Generator[Any, None, None]:
    """Yield the results of tasks in their order, with only a few tasks under way ahead of the consumer.

    Args:
        submit: starts a task and returns its future.
        tasks: what to do.
        most: how many are under way or finished but not yet yielded.
        running: holds their futures, including the one that is waited for.
    """
    for task in tasks:
        running.append(submit(task))
        if len(running) >= most:
            yield _first(running)
    while running:
        yield _first(running)


def _first(running: deque[Any]) -> Any:
    result = running[0].result()
    running.popleft()
    return result
