"""An executor that does what a cluster does, in this process: batches, requests that were sent, sums as a tree."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from rocpd.base import Answer, Progress, Row
from rocpd.federate.run.cluster import reduced
from rocpd.federate.run.rank_reader import RankTask, run_task
from rocpd.federate.run.shares import Request, Share, ShareDatabase


class Tree:
    """Two shares per batch, two partial results per sum; databases stay open, as a worker keeps them."""

    is_remote = True

    def __init__(self) -> None:
        self._databases: dict[bytes, ShareDatabase] = {}

    def rows(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        """As `Executor.rows`."""
        batches = [shares[i : i + 2] for i in range(0, len(shares), 2)]
        level = [self._batch(sent(request.of_shares(batch)), batch) for batch in batches]
        while request.step.merges and len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [reduced(itertools.chain.from_iterable(pair), request.step.merges) for pair in pairs]
        yield from level

    def each(self, tasks: Sequence[RankTask[Answer]]) -> Generator[Answer, None, None]:
        """As `Executor.each`."""
        for task in tasks:
            yield sent(run_task(sent(task)))

    def rest(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Close the databases."""
        for database in self._databases.values():
            database.close()
        self._databases.clear()

    def _batch(self, request: Request, shares: Sequence[Share]) -> list[Row]:
        rows = request.from_index(shares)
        if rows is not None:
            return rows
        rows = []
        for share in shares:
            key = pickle.dumps(share)
            if key not in self._databases:
                self._databases[key] = ShareDatabase(pickle.loads(key))
            rows += request.collect(self._databases[key])
        return reduced(rows, request.step.merges)


def sent(value: Any) -> Any:
    """Return what arrives at another process."""
    return pickle.loads(pickle.dumps(value))
