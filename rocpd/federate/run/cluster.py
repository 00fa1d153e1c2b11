"""Works on a Dask cluster: batches of ranks are tasks, repeated when a worker is lost; answers come in rank order.

Workers open the files themselves and need this package. Never sends a file, never starts a cluster.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import socket
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rocpd.base import Answer, Progress, RocpdError, Row, UsageError, frozen
from rocpd.base.version import __version__
from rocpd.federate import limits as standard
from rocpd.federate.limits import Limits
from rocpd.federate.run.local import in_batches, sizes_of
from rocpd.federate.run.rank_reader import RankTask, run_task
from rocpd.federate.run.shares import ConnectionCache, Request, Share, ShareDatabase
from rocpd.federate.run.threads import in_order

if TYPE_CHECKING:
    from distributed import Client, Future

_TASKS_PER_THREAD = 4  # so that all threads end at about the same time
_MOST_BYTES = 256 << 20  # that a task reads


@frozen
class _Batch:
    """The ranks or shares of one task, and the workers that may do it; empty: any worker."""

    items: list[Any]
    workers: tuple[str, ...]


def dial(address: str, seconds: float) -> Client:
    """Connect to a scheduler.

    Args:
        address: `tcp://host:port`, or the scheduler's JSON file.
        seconds: how long to wait for it [s].

    Raises:
        UsageError: no scheduler answers there, or `distributed` is not installed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError("a cluster needs the package distributed", "pip install 'rocpd[dask]'") from error
    end = time.monotonic() + seconds
    while address.endswith(".json") and not Path(address).exists():  # the scheduler may just be starting
        if time.monotonic() > end:
            raise UsageError(f"no scheduler at {address}: no such file", "`dask scheduler --scheduler-file` writes it")
        time.sleep(0.1)
    target = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        return Client(**target, timeout=seconds, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"no scheduler at {address}: {error}", "start one with `dask scheduler`") from error


class Cluster:
    """Workers of a Dask scheduler.

    Args:
        client: a `distributed.Client`, or the address of a scheduler as for `dial`.
        local_hosts: a worker on the host that a file's path or metadata names reads that file.
        on_note: called with notes for the user.
        limits: sizes of tasks, and how long to wait for the scheduler.

    Raises:
        UsageError: no scheduler is at the address; workers lack this package, or have another version of it; the
            client is closed, or asynchronous.
    """

    is_remote = True

    def __init__(
        self,
        client: Client | str,
        local_hosts: bool = False,
        on_note: Callable[[str], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits = limits or standard.DEFAULT
        self._owned = isinstance(client, str)
        self._client: Any = dial(client, limits.dial_s) if isinstance(client, str) else client
        if getattr(self._client, "asynchronous", True):
            raise UsageError(f"client: not a synchronous one: {client!r}", "distributed.Client(…, asynchronous=False)")
        if self._client.status != "running":
            raise UsageError(f"the client of the cluster is {self._client.status}", "make a new one")
        versions: Any = self._client.get_versions(packages=["rocpd"])
        others = {worker["packages"].get("rocpd") for worker in versions["workers"].values()} - {__version__}
        if others:
            listed = ", ".join(sorted(str(version) for version in others)).replace("None", "none")
            raise UsageError(f"workers have another rocpd than {__version__}: {listed}", "install it on all nodes")
        if not versions["workers"] and on_note:
            on_note(f"{self._client.scheduler_info()['address']} has no workers yet: waiting for them")
        self._hosts: dict[str, list[str]] | None = {} if local_hosts else None

    def rows(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        """As `Executor.rows`; partial aggregates are added up on the way, as a tree."""
        with self._as_rocpd_errors():
            yield from (self._merged if request.step.merges else self._streamed)(request, shares, progress)

    def _streamed(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        batches = self._batches_of(shares)
        done = 0
        for rows, batch in zip(self._in_order(partial(self._ask, request), batches), batches, strict=True):
            yield rows
            done += len(batch.items)
            if progress:
                progress(done, len(shares))

    def _merged(self, request: Request, shares: Sequence[Share], progress: Progress | None) -> Iterator[list[Row]]:
        batches = self._batches_of(shares)
        with self._futures() as futures:
            for batch in batches:
                futures.append(self._ask(request, batch))
            self._watch(list(futures), batches, progress)
            level = list(futures)
            fan_in = self._limits.fan_in
            while len(level) > fan_in:
                groups = [level[i : i + fan_in] for i in range(0, len(level), fan_in)]
                level = [self._client.submit(_added_up, group, request.step.merges, pure=False) for group in groups]
                futures += level
            for future in level:
                yield pickle.loads(future.result())

    def each(self, tasks: Sequence[RankTask[Answer]]) -> Generator[Answer, None, None]:
        """As `Executor.each`."""
        with self._as_rocpd_errors():
            workers = [self._workers(task.rank.opening.path, task.rank.hostname) for task in tasks]
            batches = self._batches(tasks, sizes_of(tasks), workers)
            with contextlib.closing(self._in_order(partial(self._submit, _each), batches)) as answers:
                for answers_of_batch in answers:
                    yield from answers_of_batch

    def rest(self) -> None:
        """Keep the workers: other clients use them, too."""

    def close(self) -> None:
        """Close the client if it was made here."""
        if self._owned:
            self._client.close()

    def _in_order(self, submit: Callable[[_Batch], Future[Any]], batches: Sequence[_Batch]) -> Generator[Any]:
        """Yield the answer to each batch; twice as many batches as the cluster has threads are under way."""
        with self._futures() as futures:
            for answer in in_order(submit, batches, 2 * max(1, self._threads()), futures):
                yield pickle.loads(answer)

    def _ask(self, request: Request, batch: _Batch) -> Future[Any]:
        return self._submit(partial(_rows, request.of_shares(batch.items)), batch)

    def _submit(self, work: Callable[..., object], batch: _Batch) -> Future[Any]:
        return cast("Future[Any]", self._client.submit(work, batch.items, workers=batch.workers or None, pure=False))

    @contextlib.contextmanager
    def _futures(self) -> Iterator[deque[Future[Any]]]:
        """Yield a list of tasks, cancelled when the block ends: also by Ctrl-C, an error, an abandoned result."""
        futures: deque[Future[Any]] = deque()
        try:
            yield futures
        finally:
            if futures:
                with contextlib.suppress(Exception):  # the scheduler may be gone
                    self._client.cancel(list(futures), force=True)

    def _watch(self, futures: Sequence[Future[Any]], batches: Sequence[_Batch], progress: Progress | None) -> None:
        from distributed import as_completed

        total = sum(len(batch.items) for batch in batches)
        sizes = {future.key: len(batch.items) for future, batch in zip(futures, batches, strict=True)}
        done = 0
        for future in as_completed(futures, loop=self._client.loop):  # type: ignore[no-untyped-call]
            if future.status != "finished":
                future.result()
            done += sizes[future.key]
            if progress:
                progress(done, total)

    def _threads(self) -> int:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["nthreads"] for worker in workers)

    def _batches(
        self, items: Sequence[Any], sizes: Sequence[float], workers: Sequence[tuple[str, ...]]
    ) -> list[_Batch]:
        """Put neighbours with the same workers into batches, so that all tasks read about equally much.

        Args:
            items: ranks or shares.
            sizes: size that each reads [bytes].
            workers: workers that can read each; empty: any worker can.
        """
        total = sum(sizes)
        most = min(max(total // (_TASKS_PER_THREAD * max(1, self._threads())), self._limits.task_bytes), _MOST_BYTES)
        batches: list[_Batch] = []
        for able, neighbours in itertools.groupby(zip(items, sizes, workers, strict=True), key=itemgetter(2)):
            alike, sizes_of_alike, _ = zip(*neighbours, strict=True)
            batches += [_Batch(batch, able) for batch in in_batches(alike, sizes_of_alike, most)]
        return batches

    def _batches_of(self, shares: Sequence[Share]) -> list[_Batch]:
        workers = [self._workers(share.opening.path, share.tables[0].hostname) for share in shares]
        return self._batches(shares, [share.opening.size for share in shares], workers)

    def _workers(self, path: Path, hostname: str | None) -> tuple[str, ...]:
        """Return the addresses of the workers on a file's host; empty: any worker may read it."""
        if self._hosts is None:
            return ()
        if not self._hosts:
            for address, host in self._client.run(socket.gethostname).items():
                self._hosts.setdefault(_short(host), []).append(address)
        for name in (*reversed(Path(path).absolute().parts), hostname or ""):
            if _short(name) in self._hosts:
                return tuple(self._hosts[_short(name)])
        raise UsageError(
            f"{path}: no worker on its host ({hostname or 'unknown'})",
            f"workers run on {', '.join(sorted(self._hosts)) or 'no host'}",
        )

    @contextlib.contextmanager
    def _as_rocpd_errors(self) -> Iterator[None]:
        """Turn errors of the cluster itself into errors with a message and a hint."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        try:
            yield
        except RocpdError:
            raise
        except KilledWorker as error:
            raise RocpdError(
                f"workers died while they read ranks: {error}",
                "give them more memory, or have fewer threads per worker",
            ) from error
        except ModuleNotFoundError as error:
            raise UsageError(f"a worker lacks a package: {error}", "install rocpd on all nodes") from error
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise RocpdError(f"the cluster gave up: {error}", "is the scheduler still running?") from error
        except Exception as error:
            if self._client.status == "running":
                raise
            raise RocpdError("the client of the cluster was closed", "open a new session") from error


def _short(host: str) -> str:
    return host.split(".")[0].lower()


# Answers of tasks are pickled here: Dask would inspect every value of a list to find a better way.


def _rows(request: Request, shares: Sequence[Share]) -> bytes:
    """On a worker: run a statement in some shares, unless an index answers for all shares."""
    stopped = _cancelled()
    if (rows := request.from_index(shares)) is not None:
        return pickle.dumps(rows)
    rows = []
    for share in shares:
        with contextlib.closing(ShareDatabase(share)) as database:
            rows += request.collect(database, stopped)
    return pickle.dumps(reduced(rows, request.step.merges))


def _added_up(partials: Iterable[bytes], merges: Sequence[str]) -> bytes:
    """On a worker: add up partial aggregates."""
    return pickle.dumps(reduced(itertools.chain.from_iterable(map(pickle.loads, partials)), merges))


def _each(tasks: Iterable[RankTask[Any]]) -> bytes:
    """On a worker: do some tasks."""
    stopped = _cancelled()
    with contextlib.closing(ConnectionCache()) as cache:
        return pickle.dumps([run_task(task, cache.lend) for task in tasks if not stopped()])


def _cancelled() -> Callable[[], bool]:
    """Return a function that returns whether the task of this thread was cancelled: Dask itself lets it run on."""
    from distributed import get_worker
    from distributed.worker import thread_state  # type: ignore[attr-defined]

    tasks, key = get_worker().state.tasks, thread_state.key

    def stopped() -> bool:
        state = tasks.get(key)
        return state is None or state.state == "cancelled"

    return stopped


_EXACT = 1 << 53  # sums of whole numbers up to here are exact as floats
_LARGEST = (1 << 63) - 1


def reduced(rows: Iterable[Row], merges: Sequence[str]) -> list[Row]:
    """Return rows with equal groups added up, as far as that is exact; groups come in order of first appearance.

    Args:
        rows: partial aggregates in rank order.
        merges: how each column adds up, as `Scatter.merges`; if empty, rows stay as they are.
    """
    if not merges:
        return list(rows)
    group_columns = [index for index, merge in enumerate(merges) if merge == "GROUP"]
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        members = groups.setdefault(tuple((type(row[index]), row[index]) for index in group_columns), [])
        # Only the first rows are added up: the rows from the first that could not be added on stay, in their order.
        added = _added(members[0], row, merges) if len(members) == 1 else None
        if added:
            members[0] = added
        else:
            members.append(row)
    return [row for members in groups.values() for row in members]


def _added(first: Row, second: Row, merges: Sequence[str]) -> Row | None:
    """Return the sum of two rows of a group; None if that would not be exact."""
    values = []
    for merge, a, b in zip(merges, first, second, strict=True):
        if merge == "GROUP" or b is None:
            values.append(a)
        elif a is None:
            values.append(b)
        elif merge in ("SUM", "TOTAL"):
            if not _is_exact(a, b):
                return None
            values.append(a + b)
        elif _class(a) == _class(b) != 0:
            values.append(min(a, b) if merge == "MIN" else max(a, b))
        else:
            return None
    return tuple(values)


def _is_exact(a: Any, b: Any) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return abs(a + b) <= _LARGEST
    if isinstance(a, float) and isinstance(b, float):
        return a.is_integer() and b.is_integer() and abs(a) + abs(b) < _EXACT
    return False


def _class(value: object) -> int:
    """Return the class of a value, in which Python and SQLite order alike: numbers of one type, or texts; 0: none."""
    return 1 if isinstance(value, int) else 2 if isinstance(value, float) else 3 if isinstance(value, str) else 0
