"""The causes that cost a job time, with the cost of each, and what replays say of the job besides."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from rocpd.base import frozen
from rocpd.replay.chance import LIKELY
from rocpd.replay.denied import Denied

MATCHED_AT_LEAST, WELL_MATCHED = 0.5, 0.9
"""Of the communication: below it nothing is known of what others wait for; or what a cause costs may be more."""

STALLS = 0.5  # of what a rank takes longer: where more of it is in some steps, these are what to look at
_PERHAPS = 0.1  # chance above which nothing is said to last
_CLEARLY = 1.1  # times as long
_HIDDEN = 0.5  # of what it costs, that a cause costs alone
_ALIKE = 0.7  # of what one rank takes longer, that others do which have the same cause


class CauseKind(enum.StrEnum):
    """The kinds of causes."""

    RANK = "rank"
    HOST = "host"
    LINK = "link"
    STEP = "step"


OF_HOST, OF_COMPUTE, OF_COPIES, OF_LINKS = "host", "compute", "copies", "links"
"""Parts that a rank takes longer for."""

PARTS = OF_COMPUTE, OF_HOST, OF_COPIES, OF_LINKS
"""The same in the order of their numbers."""


@frozen
class Cause:
    """Something whose removal regains time.

    Args:
        kind: what it is.
        ranks: whom it concerns: of a link those that it connects; several that take as much longer for the same.
        name: of the host, or of the step; empty otherwise.
        cost: what the replay without it regains of a step, the mean of all [ns]; of a step, of this step.
        takes: what for -> how much longer a step takes there [ns].
        largest: name of the operation, call or marker that takes most of it, and how much [ns]; no name where all
            kernels take longer by much the same share.
        waiting: share of what ranks wait for each other in collectives that goes with it.
        chance: probability that it does not last; None of a step.
        stalls: numbers of the steps in which it takes far longer than in others; of a step, that one.
        stalled: share of what it takes longer that it takes in these.
        in_stalls: how much longer each of these takes for what it mainly takes longer, kernels at once once [ns].
        longest: in how many steps it takes longest of those that compare, of those from `since` on where that is known.
        since: number of the step from which on a rank takes longer, and before it hardly does; None: no such step.
        longer: by which share it computes longer than others.
        grows: the same in the first and in the last quarter of steps, of what takes longer and longer; else nothing.
        alone: what the replay without it alone regains of a step, the mean of all [ns]; of a step, nothing.
        behind: numbers of the causes that are removed where it costs `cost`: those before it; of several that hide each
            other, the others, too.
    """

    kind: CauseKind
    ranks: tuple[int, ...]
    name: str
    cost: int
    takes: Mapping[str, int]
    largest: tuple[str, int]
    waiting: float
    chance: float | None = None
    stalls: tuple[int, ...] = ()
    stalled: float = 0.0
    in_stalls: int = 0
    longest: int = 0
    since: int | None = None
    longer: float = 0.0
    grows: tuple[float, ...] = ()
    alone: int = 0
    behind: tuple[int, ...] = ()

    @property
    def costs(self) -> int:
        """The time that a step would take less without it, and without those it is behind where these hide it [ns].

        This is said of it everywhere: `rocpd whatif` regains so much.
        """
        return self.cost if self.is_hidden else self.alone

    @property
    def is_hidden(self) -> bool:
        """Whether most of what it costs shows only once those that it is behind are removed."""
        return self.alone < _HIDDEN * self.cost

    @property
    def is_clear(self) -> bool:
        """Whether it is more than chance explains, or a fact of the steps where it was: stalls, or from one on."""
        is_fact = self.stalled > STALLS or self.since is not None
        return is_fact or (self.chance is not None and self.chance <= LIKELY)

    def is_like(self, other: Cause) -> bool:
        """Whether ranks take about as much longer as those of another cause, for the same and in the same steps."""
        least, most = sorted((self.takes[self.mainly], other.takes[other.mainly]))
        return self.kind is CauseKind.RANK and self._what == other._what and least >= _ALIKE * most

    @property
    def _what(self) -> tuple[object, ...]:
        stalls = self.stalls if self.stalled > STALLS else ()
        return self.kind, self.mainly, self.largest[0], stalls, self.since, bool(self.grows)

    @property
    def matters(self) -> bool:
        """Whether it is clear, or perhaps so; of links few compare."""
        is_perhaps = self.kind is not CauseKind.LINK and self.chance is not None and self.chance <= _PERHAPS
        return self.is_clear or is_perhaps

    @property
    def mainly(self) -> str:
        """The part that takes longest; the host where that is clear: it takes longer, too, where waits are lost."""
        devices = {what: time for what, time in self.takes.items() if what != OF_HOST}
        most = max(devices, key=devices.__getitem__)
        return OF_HOST if self.takes[OF_HOST] > _CLEARLY * devices[most] else most


def together(causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes, ranks with the same one as one cause."""
    groups: list[list[int]] = []
    for number, cause in enumerate(causes):
        alike = next((group for group in groups if causes[group[0]].is_like(cause)), None)
        if alike is None:
            groups.append([number])
        else:
            alike.append(number)
    at = {number: group for group, some in enumerate(groups) for number in some}
    behind = ({at[each] for number in some for each in causes[number].behind} - {at[some[0]]} for some in groups)
    return [
        replace(_joined([causes[number] for number in some]), behind=tuple(sorted(others)))
        for some, others in zip(groups, behind, strict=True)
    ]


def _joined(causes: Sequence[Cause]) -> Cause:
    """Return several ranks as one cause, which costs what they cost one after the other; its waiting is not known."""
    if len(causes) == 1:
        return causes[0]
    return replace(
        causes[0],
        ranks=tuple(sorted(rank for cause in causes for rank in cause.ranks)),
        cost=sum(cause.cost for cause in causes),
        takes={what: sum(cause.takes[what] for cause in causes) // len(causes) for what in PARTS},
        waiting=0.0,
        chance=max((cause.chance for cause in causes if cause.chance is not None), default=None),
        longest=sum(cause.longest for cause in causes),
        longer=sum(cause.longer for cause in causes) / len(causes),
    )


@frozen
class Blame:
    """The time that a job loses, and to what.

    Args:
        steps: numbers of the steps that count.
        step_ns: how long a step takes: from the first to the last point of all, by the number of steps [ns].
        lost_ns: what a step would take less, were everything as usual [ns].
        causes: ranks, hosts and links that are more than chance may explain, those first that cost most; each with
            those removed that it is behind.
        slow: number of a slow step -> its cause: the rank that makes it so, or all of a host; no rank: all are alike.
        longest: number of a step -> the ranks that take clearly longest for themselves, where some do.
        compared: rank -> share of its time of computing that compares with that of others.
        computes: rank -> its time of computing by what others usually take for the same.
        matched: share of the time in communication kernels whose partners are known.
        suspect: the rank that takes longest for itself, and lastingly so; its cost is not asked. None: none does.
        together: ranks that take about as much longer as the suspect, itself among them: without one alone the others
            would be waited for.
        unmet: ranks that communicate and never with a known partner, where others do.
        denied: the rank that ought to be a cause and is none; None: there is no such rank.
        links_compare: whether some links compare with others.
        inferred_links: how many links between ranks are inferred, not recorded.
    """

    steps: tuple[int, ...]
    step_ns: float
    lost_ns: float
    causes: tuple[Cause, ...] = ()
    slow: Mapping[int, Cause] = field(default_factory=dict)
    longest: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    compared: Mapping[int, float] = field(default_factory=dict)
    computes: Mapping[int, float] = field(default_factory=dict)
    matched: float = 1.0
    suspect: Cause | None = None
    together: tuple[int, ...] = ()
    unmet: tuple[int, ...] = ()
    denied: Denied | None = None
    links_compare: bool = False
    inferred_links: int = 0

    @property
    def is_matched(self) -> bool:
        """Whether enough of the communication is matched to say what others wait for."""
        return self.matched >= MATCHED_AT_LEAST

    @property
    def judged(self) -> tuple[str, ...]:
        """The kinds of causes that are looked for: links where some compare, and calls tell them apart."""
        return ("rank", "host", "link") if self.links_compare and not self.inferred_links else ("rank", "host")

    @property
    def not_judged(self) -> str:
        """Why links are not looked for; empty where they are, or where there is but one."""
        text = "; links are not compared: it takes calls of RCCL to tell them apart"
        return text if self.inferred_links > 1 else ""
