"""Runs several analyses in one pass over the ranks, so that each rank is read once for all of them.

An analysis is asked twice: first what its work on a rank is, then, with the answers of all ranks at hand, for its
tables. Its tables are the same as alone; what it does before its work on ranks is done twice, and must be cheap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from rocpd.errors import RocpdError
from rocpd.federate.open.identify import Rank
from rocpd.federate.run.rank_reader import Works
from rocpd.summary.options import Options
from rocpd.summary.reading import RankReading, Reading, work_on_rank
from rocpd.summary.result import Summary
from rocpd.types import Answer

Analysis: TypeAlias = Callable[[Reading], Iterable[Summary]]
_Work: TypeAlias = Callable[[RankReading], Any]
_Answer: TypeAlias = "tuple[Any, Counter[str]] | RocpdError"


class _Asked(Exception):  # noqa: N818 - no error: it brings the work
    """Brings what an analysis wants to do on each rank."""

    def __init__(self, work: _Work) -> None:
        super().__init__()
        self.work = work


class _Asking(Reading):
    """Learns what the work on ranks is, and does none."""

    def each(self, work: Callable[[RankReading], Answer]) -> Iterator[tuple[Rank, Answer]]:
        raise _Asked(work)

    def with_passes(self) -> Reading:
        if self.every_pass is not self.session:
            raise RocpdError("passes are read apart: the others read one of them")
        return self


class _Answering(Reading):
    """Gives answers that are known already."""

    def __init__(self, reading: Reading, options: Options, answers: Sequence[tuple[Rank, _Answer]]) -> None:
        super().__init__(reading.every_pass, options, wanted=reading.wanted)
        self._answers: Sequence[tuple[Rank, _Answer]] | None = answers

    def each(self, work: Callable[[RankReading], Answer]) -> Iterator[tuple[Rank, Answer]]:
        answers, self._answers = self._answers, None
        if answers is None:
            yield from super().each(work)
            return
        left_out: Counter[str] = Counter()
        for rank, answer in answers:
            if isinstance(answer, RocpdError):
                raise answer
            left_out += answer[1]
            yield rank, answer[0]
        self.note_left_out(left_out)


def together(
    reading: Reading, analyses: Mapping[str, Analysis], options: Mapping[str, Options] | None = None
) -> Iterator[tuple[str, Iterator[Summary]]]:
    """Yield the name and the tables of each analysis, in order; iterating the tables raises what the analysis raises.

    Args:
        reading: what to read; its progress is that of the one pass.
        analyses: by name.
        options: of analyses that are asked something else than `reading` says, by name.
    """
    asked = {name: (options or {}).get(name, reading.options) for name in analyses}
    works = {name: work for name, analysis in analyses.items() if (work := _work_of(reading, analysis, asked[name]))}
    answers: dict[str, list[tuple[Rank, _Answer]]] = {name: [] for name in works}
    windows = reading.windows()
    task = Works(
        tuple(partial(work_on_rank, work=work, options=asked[name], windows=windows) for name, work in works.items())
    )
    for done, (rank, answers_of_rank) in enumerate(reading.session.map_ranks(task) if works else (), 1):
        for name, answer in zip(works, answers_of_rank, strict=True):
            answers[name].append((rank, answer))
        reading.report(done)
    for name, analysis in analyses.items():
        given = _Answering(reading, asked[name], answers.pop(name)) if name in works else reading.asking(asked[name])
        yield name, iter(analysis(given))


def _work_of(reading: Reading, analysis: Analysis, options: Options) -> _Work | None:
    """Return what an analysis does on each rank; None where it does nothing, or raises an error before."""
    try:
        for _ in analysis(_Asking(reading.every_pass, options, wanted=reading.wanted)):
            return None
    except _Asked as asked:
        return asked.work
    except RocpdError:
        return None
    return None
