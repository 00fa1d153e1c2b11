"""Keeps facts of ranks and of jobs, as columns, for the next command that reads the same files.

A fact belongs to the state of a file and to the version of its definition, not to a question or to other code. An
entry is a folder for a trace file with one file per fact, each complete when it has its name. Never keeps an answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from rocpd.base import RocpdError
from rocpd.base.cache import Cache, FileEntry, file_entries, write_complete
from rocpd.base.identity import blake2b, status_of
from rocpd.base.output import size_of
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Fact
from rocpd.index.entries import cannot_index, is_still, state_of

LAYOUT = 4
"""Part of the name of every file: raise it when the format of facts changes."""

_MOST = 0.12  # share of a file's size that its facts may take; with its index 15 %


class FactCache:
    """The kept facts; see `rocpd.federate.run.rank_reader.FactStore`.

    Raises:
        OutputError: there is no cache folder.
    """

    def __init__(self) -> None:
        self._cache = file_entries("facts")
        self._listed = self._state()

    def of(self, *ranks: Rank) -> FactFolder | None:
        """Return the facts of a rank, or of several together; None: nothing of one of their files can be kept now."""
        with contextlib.suppress(RocpdError, OSError):
            if not any(map(cannot_index, ranks)):
                return FactFolder(self._cache, ranks, [state_of(rank) for rank in ranks])
        return None

    def close(self) -> None:
        """Remove the least recently used facts, if facts were added; idempotent."""
        if self._state() != self._listed:
            with contextlib.suppress(RocpdError):
                self._cache.evict()

    def _state(self) -> int:
        status = status_of(self._cache.root)
        return status.st_mtime_ns if status else 0


class FactFolder:
    """The facts of one rank, or of several together, for the duration of work on them.

    Args:
        cache: the cache of all facts.
        ranks: the ranks.
        states: states of their files when the work begins.
    """

    def __init__(self, cache: Cache[FileEntry], ranks: Sequence[Rank], states: Sequence[str]) -> None:
        self._cache, self._ranks, self._states = cache, ranks, states
        self._state = states[0] if len(states) == 1 else _hashed(states)
        self._folder = cache.root / self._state
        self._derived: dict[str, bytes] = {}
        self._is_used = False

    def known(self, fact: Fact) -> Any:
        """Return the kept value of a fact; None: it is not kept, or damaged."""
        from rocpd.index.packed import unpacked  # imports numpy, which a statement in SQL does not need

        try:
            value = unpacked(fact, (self._folder / _name(fact)).read_bytes())
        except Exception:  # noqa: BLE001 (a damaged file may hold anything)
            return None
        self._is_used = True
        return value

    def derived(self, fact: Fact, value: object) -> None:
        """Note the value of a fact, to be kept when the work is done."""
        from rocpd.index.packed import packed

        with contextlib.suppress(TypeError, OverflowError):  # facts of a damaged file may hold anything
            self._derived[_name(fact)] = packed(fact, value)

    def keep(self) -> None:
        """Write the noted values, unless a file has changed meanwhile, or there is no room."""
        with contextlib.suppress(RocpdError, OSError):
            if self._derived and all(map(is_still, self._ranks, self._states)):
                self._write()
            elif self._is_used:
                self._cache.touch(self._folder)

    def _write(self) -> None:
        self._cache.growing(self._state, self._ranks[0].opening.path)
        left = _MOST * sum(rank.opening.size for rank in self._ranks) - size_of(self._folder)
        for name, content in self._derived.items():
            left -= len(content)
            if left < 0:
                return
            write_complete(self._folder / name, content)


def _name(fact: Fact) -> str:
    return f"{fact.name.replace(' ', '-')}-{LAYOUT}-{fact.version}-{_hashed(fact.asked)}"


def _hashed(value: object) -> str:
    return blake2b(repr(value).encode(errors="surrogatepass"), digest_size=16).hexdigest()
