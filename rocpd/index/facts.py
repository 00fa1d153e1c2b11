"""Keeps facts of ranks and of jobs, as columns, for the next command that reads the same files.

A fact belongs to the state of a file and to the version of its definition: not to what was asked, nor to other code. An
entry is a folder of a file with one file per fact, each complete when it has its name. Never keeps an answer.
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

LAYOUT = 3
"""Goes into the name of every file: raise it when facts are written in another way."""

_MOST = 0.12  # of the size of a file, that its facts may take; with its index 15 %


class FactCache:
    """The facts that are kept; see `rocpd.federate.run.rank_reader.FactStore`.

    Raises:
        OutputError: there is no cache folder.
    """

    def __init__(self) -> None:
        self._cache = file_entries("facts")
        self._listed = self._state()

    def of(self, *ranks: Rank) -> FactFolder | None:
        """Return those of a rank, or of several together; None: of a file of theirs nothing can be kept now."""
        with contextlib.suppress(RocpdError, OSError):
            if not any(map(cannot_index, ranks)):
                return FactFolder(self._cache, ranks, [state_of(rank) for rank in ranks])
        return None

    def close(self) -> None:
        """Remove what was not used for the longest time, if something was added; idempotent."""
        if self._state() != self._listed:
            with contextlib.suppress(RocpdError):
                self._cache.evict()

    def _state(self) -> int:
        status = status_of(self._cache.root)
        return status.st_mtime_ns if status else 0


class FactFolder:
    """The facts of one rank, or of several together, while work on them is done.

    Args:
        cache: of all facts.
        ranks: whose they are.
        states: of their files, when the work begins.
    """

    def __init__(self, cache: Cache[FileEntry], ranks: Sequence[Rank], states: Sequence[str]) -> None:
        self._cache, self._ranks, self._states = cache, ranks, states
        self._state = states[0] if len(states) == 1 else _hashed(states)
        self._folder = cache.root / self._state
        self._derived: dict[str, bytes] = {}
        self._is_used = False

    def known(self, fact: Fact) -> Any:
        """Return the value of a fact that is kept; None: it is not, or it is damaged."""
        from rocpd.index.packed import unpacked  # imports numpy, which a statement in SQL does without

        try:
            value = unpacked(fact, (self._folder / _name(fact)).read_bytes())
        except Exception:  # noqa: BLE001 (what is no fact may be anything)
            return None
        self._is_used = True
        return value

    def derived(self, fact: Fact, value: object) -> None:
        """Take the value of a fact, to be kept when the work is done."""
        from rocpd.index.packed import packed

        with contextlib.suppress(TypeError, OverflowError):  # a damaged file may make it hold anything
            self._derived[_name(fact)] = packed(fact, value)

    def keep(self) -> None:
        """Write what was derived, unless the file has changed meanwhile, or there is no room."""
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
