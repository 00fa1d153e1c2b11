"""The causes that cost a job time, each with its cost, and the other results of the replays."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from rocpd.base import frozen
from rocpd.facts.communication.collectives import listed
from rocpd.replay.chance import LIKELY
from rocpd.replay.denied import HIDDEN_HOST, Denied
from rocpd.replay.job import MATCHED_AT_LEAST

STALLS = 0.5  # share of a cause's excess: with more of it in stalls, these steps are the ones to look at
_PERHAPS = 0.1  # chance above which a cause is not said to last
_CLEARLY = 1.1  # times as long
_WAITS = 2.5  # times its computing that a host takes longer by no more than waiting, within ranges and between them
_HIDDEN = 0.5  # share of its cost that a cause costs alone
_ALIKE = 0.7  # share of one rank's excess that another rank with the same cause has at least


class CauseKind(enum.StrEnum):
    """The kinds of causes."""

    RANK = "rank"
    HOST = "host"
    LINK = "link"
    STEP = "step"


OF_HOST, OF_COMPUTE, OF_COPIES, OF_LINKS = "host", "compute", "copies", "links"
"""The parts of the excess of a rank."""

PARTS = OF_COMPUTE, OF_HOST, OF_COPIES, OF_LINKS
"""The parts in the order of their numbers."""


class Candidate(NamedTuple):
    """A possible cause: its kind, ranks and name as in `Cause`, and the most it can cost in all steps [ns]."""

    kind: CauseKind
    ranks: tuple[int, ...]
    name: str
    most: int = 0


def are_ranks(cause: Cause | Candidate) -> bool:
    """Whether a cause is several ranks, neither a host nor a link: they have their numbers for a name, or none."""
    return len(cause.ranks) > 1 and cause.kind is not CauseKind.LINK and cause.name in ("", listed(cause.ranks))


@frozen
class Cause:
    """Something whose removal regains time.

    Args:
        kind: its kind.
        ranks: of a link, the ranks that it connects; else the ranks that take longer, several for the same reason.
        name: of the host, or of the step; empty otherwise.
        cost: time per step that the replay without it saves, the mean of all [ns]; of a step, in this step.
        takes: part -> how much longer a step takes there for it [ns].
        largest: name of the operation, call or marker with the most excess, and how much [ns]; no name where all
            kernels take longer by much the same share.
        waiting: share of the ranks' waiting for each other in collectives that vanishes with it.
        chance: probability that it does not last; None of a step.
        stalls: numbers of the steps in which it takes far longer than in others; of a step, its own.
        stalled: share of its excess that lies in these steps.
        in_stalls: how much longer each stalling step takes for its main part; kernels at once count once [ns].
        longest: number of steps in which it takes longest of those that compare, from `since` on where that is known.
        since: number of the step since which a rank takes longer, and before which it hardly does; None: no such step.
        longer: share by which it usually computes longer than others, from `since` on where that is known.
        grows: this share in the first and in the last quarter of steps, if it drifts; else empty.
        alone: time per step that the replay without it alone saves, the mean of all [ns]; of a step, 0.
        most: time per step that it may cost alone, if communication with unknown partners, or hosts whose waits are
            not recorded, wait for it [ns]; 0: all waits are known.
        behind: numbers of the causes that are removed, too, when it saves `cost`: the earlier ones; of several that
            hide each other, also the others.
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
    most: int = 0
    behind: tuple[int, ...] = ()

    @property
    def costs(self) -> int:
        """The time that a step would save without it [ns], and without the causes in `behind` if these hide it.

        All reports name this cost: `rocpd whatif` regains as much.
        """
        return self.cost if self.is_hidden else self.alone

    @property
    def is_hidden(self) -> bool:
        """Whether most of its cost shows only once the causes in `behind` are removed."""
        return self.alone < _HIDDEN * self.cost

    @property
    def is_clear(self) -> bool:
        """Whether it is more than chance explains, or plain from the steps: stalls, or a step since which it lasts."""
        is_fact = self.stalled > STALLS or self.since is not None
        return is_fact or (self.chance is not None and self.chance <= LIKELY)

    def is_like(self, other: Cause) -> bool:
        """Whether ranks take about as much longer as those of another cause, for the same part in the same steps."""
        least, most = sorted((self.takes[self.mainly], other.takes[other.mainly]))
        return self.kind is CauseKind.RANK and self._what == other._what and least >= _ALIKE * most

    @property
    def _what(self) -> tuple[object, ...]:
        stalls = self.stalls if self.stalled > STALLS else ()
        return self.kind, self.mainly, self.largest[0], stalls, self.since, bool(self.grows)

    @property
    def matters(self) -> bool:
        """Whether it is clear, or perhaps so; a link has to be clear, for few links compare."""
        is_perhaps = self.kind is not CauseKind.LINK and self.chance is not None and self.chance <= _PERHAPS
        return self.is_clear or is_perhaps

    @property
    def by_gpu(self) -> Cause:
        """It by what its GPU takes longer, as calls of its host are not recorded: waits for the GPU look like work.

        Where its host takes far longer still, it stays as it is.
        """
        is_waiting = self.takes[OF_HOST] <= _WAITS * self.takes[OF_COMPUTE]
        return replace(self, takes={**self.takes, OF_HOST: 0}) if is_waiting else self

    @property
    def mainly(self) -> str:
        """The part with the most excess; the host only where that is clear, for lost waits lengthen its part, too."""
        devices = {what: time for what, time in self.takes.items() if what != OF_HOST}
        most = max(devices, key=devices.__getitem__)
        return OF_HOST if self.takes[OF_HOST] > _CLEARLY * devices[most] else most


def together(causes: Sequence[Cause]) -> list[Cause]:
    """Return the causes, with ranks that have the same cause joined into one."""
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
    """Return several ranks as one cause, whose cost is the sum of theirs; its waiting is not known."""
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
    """The time that a job loses, and the causes of the loss.

    Args:
        steps: numbers of the steps that count.
        step_ns: length of a step: from the first to the last point of all, divided by the number of steps [ns].
        lost_ns: time that a step would save if everything took as long as usual [ns].
        causes: ranks, hosts and links that are more than chance may explain, the most costly first; each is costed with
            the causes in its `behind` removed.
        slow: number of a slow step -> its cause: one rank, or the ranks of a host; no ranks: all are alike.
        longest: number of a step -> the ranks whose own work takes clearly longest, if there are any.
        compared: rank -> share of its time of computing that compares with that of others.
        computes: rank -> its time of computing divided by the usual time of others for the same work.
        matched: share of the time in communication kernels whose partners are known.
        suspect: the rank or host with the largest lasting excess, whatever it costs; None: there is none.
        together: ranks with about as much excess as the suspect, itself among them: without one of them alone, the job
            would wait for the others.
        unmet: ranks that communicate but never with a known partner, although others have known partners.
        denied: the rank that ought to be a cause but is not; None: there is no such rank.
        links_compare: whether some links compare with others.
        inferred_links: number of links between ranks that are inferred, not recorded.
        hides_hosts: whether a host may be late unseen: ranks wait, and no calls of theirs are recorded.
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
    hides_hosts: bool = False

    @property
    def is_matched(self) -> bool:
        """Whether enough of the communication is matched to know the waits for others."""
        return self.matched >= MATCHED_AT_LEAST

    @property
    def unseen(self) -> str:
        """Why late hosts, or the cost of a rank that computes longer, are not known; empty where hosts are seen."""
        if not self.hides_hosts:
            return ""
        computes = self.suspect is not None and self.suspect.mainly == OF_COMPUTE
        return "no calls that launch work or wait for GPUs are known" if computes else HIDDEN_HOST

    @property
    def judged(self) -> tuple[str, ...]:
        """The kinds of causes that are looked for: links where some compare, and calls identify them."""
        return ("rank", "host", "link") if self.links_compare and not self.inferred_links else ("rank", "host")

    @property
    def not_judged(self) -> str:
        """Why links are not looked for; empty where they are, or where there is only one."""
        text = "; links are not compared: it takes calls of RCCL to tell them apart"
        return text if self.inferred_links > 1 else ""
