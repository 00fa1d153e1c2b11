"""The verdict from the ranks that were read so far, for those who wait. Findings that compare ranks wait for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from rocpd.base.boundary import each_for_itself
from rocpd.summary.findings import Finding
from rocpd.summary.reading import Reading
from rocpd.summary.result import Summary
from rocpd.summary.run import Function, Known, tables_of_some

_PATIENCE_S = 1.5  # of people who see nothing but a bar
_LONG_S = 3.0  # reading that takes no longer ends soon enough by itself
_FEWEST = 2  # ranks that say something about a job
_OF_ALL = frozenset({"trace", "ranks"})  # analyses that compare ranks
_RULES = frozenset({"step.outlier", "gpu.idle", "gpu.compute", "comm.exposed", "copy.exposed", "job.startup"})


class Preliminary:
    """Calls `reading.on_preliminary` once, where reading takes several seconds.

    Args:
        reading: of the whole job.
        analyses: by name.
        conclude: returns what tables, by name, say of a job.
        wanted: tables that it looks at.
    """

    def __init__(
        self,
        reading: Reading,
        analyses: Mapping[str, Function],
        conclude: Callable[[Mapping[str, Summary]], Iterable[Finding]],
        wanted: frozenset[str],
    ) -> None:
        self._reading, self._analyses, self._conclude, self._wanted = reading, analyses, conclude, wanted
        self._start = time.monotonic()

    def __call__(self, known: Mapping[str, Known]) -> None:
        """Take the answers so far."""
        tell, ranks = self._reading.on_preliminary, len(self._reading.session.ranks)
        done = max(map(len, known.values()), default=0)
        passed = time.monotonic() - self._start
        if not tell or done < _FEWEST or passed < _PATIENCE_S or passed / done * (ranks - done) < _LONG_S:
            return
        self._reading.on_preliminary = None
        each_for_itself("preliminary verdict", lambda: tell(done, self._findings(known)), str)

    def _findings(self, known: Mapping[str, Known]) -> list[Finding]:
        """Return what the ranks so far show."""
        some = {name: answers for name, answers in known.items() if name not in _OF_ALL}
        tables = tables_of_some(self._reading.session, self._analyses, some, self._wanted)
        return [finding for finding in self._conclude(tables) if finding.rule in _RULES]
