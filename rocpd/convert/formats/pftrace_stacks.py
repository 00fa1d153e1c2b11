"""Sampled call stacks in a Perfetto trace: packets of perf_sample, of which its UI draws flame graphs.

Field numbers are those of perfetto's protos/perfetto/trace/profiling/{profile_packet,profile_common}.proto and
interned_data.proto.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocpd.base import Ints
from rocpd.convert.formats import protobuf as pb
from rocpd.convert.model import Instants, RankEvents
from rocpd.facts.columns import TextCodes, distinct
from rocpd.facts.frames import frames_of

SAMPLE = 66
"""TracePacket.perf_sample"""
FUNCTIONS, FRAMES, CALLSTACKS, MAPPINGS = 5, 6, 7, 19
"""Fields of InternedData."""
_MAPPING = 1
"""The one mapping: which library a function is of is part of its name, where it is known at all."""


class SampledStacks:
    """The call stacks that samples of a rank have.

    Args:
        events: the rank.
        pid: the process that the samples are shown at.
    """

    def __init__(self, events: RankEvents, pid: int) -> None:
        self._pid = pb.number(2, pid)
        of_track = [-1 if track.sampled is None else track.sampled for track in events.tracks.all]
        self._threads = np.array(of_track, np.int64)
        self._frames = TextCodes[str]()
        self._stacks: dict[int, tuple[int, ...]] = {}  # number of its text -> its frames, the outermost first
        for batch in events.instants:
            for code in distinct(self._codes(batch)[self.rows(batch)]).tolist():
                self._stacks[code] = tuple(map(self._frames.code, frames_of(events.strings.texts[code])))

    def __bool__(self) -> bool:
        return bool(self._stacks)

    def interned(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield fields of InternedData, and the entries of each."""
        numbers = range(1, len(self._frames.texts) + 1)
        yield MAPPINGS, [pb.number(1, _MAPPING)]
        yield FUNCTIONS, [pb.number(1, i) + pb.text(2, self._frames.texts[i - 1]) for i in numbers]
        yield FRAMES, [pb.number(1, i) + pb.number(2, i) + pb.number(3, _MAPPING) + pb.number(4, i) for i in numbers]
        stacks = (
            pb.number(1, code + 1) + b"".join(pb.number(2, frame + 1) for frame in frames)
            for code, frames in self._stacks.items()
        )
        yield CALLSTACKS, list(stacks)

    def rows(self, batch: Instants) -> Ints:
        """Return which samples of a batch have a stack and a thread."""
        return np.flatnonzero((self._codes(batch) >= 0) & (self._threads[batch.track] >= 0))

    def sample(self, batch: Instants, rows: Ints) -> list[pb.Part]:
        """Return the packet's fields of some samples."""
        threads, stacks = self._threads[batch.track[rows]], self._codes(batch)[rows]
        return pb.message(SAMPLE, [self._pid, *pb.numbers(3, threads), *pb.numbers(4, stacks + 1)])

    def _codes(self, batch: Instants) -> Ints:
        """Return the number of the text of each stack, -1 where there is none."""
        found = next((each for each in batch.annotations if each.name == "call_stack"), None)
        if found is None:
            return np.full(len(batch), -1)
        codes = found.values.astype(np.int64, copy=False)
        return codes if found.present is None else np.where(found.present, codes, -1)
