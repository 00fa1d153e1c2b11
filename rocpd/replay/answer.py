"""The predicted time of a changed job, as values, as text for people and as JSON. Replays nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocpd.base import amount, by_key, frozen
from rocpd.facts.communication.collectives import listed
from rocpd.replay.causes import Blame, Cause
from rocpd.replay.changes import Change
from rocpd.replay.denied import HIDDEN_HOST
from rocpd.replay.job import WELL_MATCHED
from rocpd.table.human import readable

VERSION = 1
"""Version of the JSON that docs/whatif.md describes; it counts changes that break readers."""

_MOST = 8  # changes that the text names
_RANKS = 3  # ranks that the text names for a part of what binds
_LEAST = 0.01  # share of a step from which on a part is named
_FAR = 1.1  # times the length of the step's marker


@frozen
class Binding:
    """A part of the longest chain of work in a step, which the step then waits for.

    Args:
        part: `compute`, `copies`, `communication`, `host`, `launch`, or `unexplained`.
        rank: the rank whose work it is.
        time: its time per step [ns].
    """

    part: str
    rank: int
    time: float


@frozen
class Prediction:
    """The predicted length of a step.

    Args:
        changes: the changes to the job.
        step_ns: recorded length of a step, the mean of those that count [ns].
        predicted_step_ns: predicted length [ns].
        low_ns, high_ns: bounds of the prediction [ns].
        about: for each change, a detail that its name lacks, such as length and place of a gap; mostly empty.
        binds: the parts that the step then waits for, the longest first; empty unless asked for.
    """

    changes: tuple[Change, ...]
    step_ns: float
    predicted_step_ns: float
    low_ns: float
    high_ns: float
    about: tuple[str, ...] = ()
    binds: tuple[Binding, ...] = ()

    def __str__(self) -> str:
        """Return its changes as the command line writes them, with their details."""
        about = "; ".join(filter(None, self.about))
        return " ".join(map(str, self.changes)) + (f" ({about})" if about else "")

    @property
    def gain(self) -> float:
        """The share by which a step gets shorter."""
        return 1 - self.predicted_step_ns / self.step_ns if self.step_ns else 0.0

    @property
    def gains(self) -> tuple[float, float]:
        """The least and the largest share by which a step gets shorter."""
        if not self.step_ns:
            return 0.0, 0.0
        return 1 - self.high_ns / self.step_ns, 1 - self.low_ns / self.step_ns


@frozen
class WhatIf:
    """The gains of changes.

    Args:
        steps: number of steps that count; 0: fewer than two are marked, and the whole job counts as one.
        matched: share of the time in communication kernels whose partners are known.
        together: the prediction with all changes.
        blame: the time that the job loses, and the causes.
        each: predictions without each cause; then without each large part of what a step waits for, and without each
            call that waits, both of which `together` keeps; the largest gain first; empty where changes were given.
        marked_ns: length of a step from start to end of its marker, the mean [ns]; without steps, of the job.
    """

    steps: int
    matched: float
    together: Prediction
    blame: Blame
    each: tuple[Prediction, ...] = ()
    marked_ns: float = 0.0

    def document(self) -> dict[str, Any]:
        """Return it as dictionaries, lists and values for JSON, as `--format json` writes it."""
        causes = [_fields(one) for one in self.each]
        return {
            "version": VERSION,
            "steps": self.steps,
            "matched_percent": self.matched * 100,
            **_fields(self.together),
            "causes": causes,
            "not_known": str(self.blame.denied) if self.blame.denied else None,
        }

    def __str__(self) -> str:
        """Return it as the console shows it."""
        return "\n".join(_lines(self))


def _fields(prediction: Prediction) -> dict[str, Any]:
    return {
        "changes": [str(change) for change in prediction.changes],
        "about": list(prediction.about),
        "step_ns": prediction.step_ns,
        "predicted_step_ns": prediction.predicted_step_ns,
        "low_ns": prediction.low_ns,
        "high_ns": prediction.high_ns,
        "binds": [{"part": each.part, "rank": each.rank, "ns": each.time} for each in prediction.binds],
    }


def _lines(answer: WhatIf) -> Iterator[str]:
    """Yield at most ten lines."""
    together, blame, unit = answer.together, answer.blame, "a mean step" if answer.steps else "the whole job"
    takes = readable(together.step_ns, "ns")
    if together.changes:
        would = readable(together.predicted_step_ns, "ns")
        yield f"{unit} of {takes} would take {would}: {_less(together.gain)} ({_between(together)})"
        yield f"  {together}"
    else:
        kinds, rest = (blame.judged, blame.not_judged) if blame.is_matched else ((), "")
        judged = "".join(f"{kind}, " for kind in kinds)
        yield f"{unit} takes {takes}: no {judged}step, gap or work of a call was found that costs 1 % of it{rest}"
    if blame.denied:
        yield f"not known: {blame.denied}"
    elif blame.unseen and not blame.causes:
        yield f"not known: {blame.unseen}{_computes(blame.suspect) if blame.unseen != HIDDEN_HOST else ''}"
    if binds := list(_bound(together)):
        yield f"{'then it' if together.changes else 'it'} waits for {', '.join(binds)}"
    others = [each for each in answer.each if each.changes != together.changes]
    yield from ["one by one:" if together.changes else "other changes, one by one:"] if others else []
    for prediction in others[:_MOST]:
        # Another chain of work may be nearly as long, and leaves no more to gain.
        then = f" (at most), then {next(_bound(prediction), 'nothing')}"
        most = then if any(change.is_bound for change in prediction.changes) else ""
        yield f"  {_less(prediction.gain):>11}  {_between(prediction):<16}  {prediction}{most}"
    if len(others) > _MOST:
        yield f"  and {len(others) - _MOST} more: --format json"
    counted = (
        f"{amount(answer.steps, 'step')} count" if answer.steps else "no two steps are marked: the whole job counts"
    )
    known = f"; only {_percent(answer.matched)} of the time of communication is matched: waits for others are missing"
    if answer.steps and together.step_ns > _FAR * answer.marked_ns:
        counted += f"; from start to end of its marker a step takes {readable(answer.marked_ns, 'ns')}: the rest lies "
        counted += "between steps, or is GPU work that ends after the last one"
    yield counted + (known if answer.matched < WELL_MATCHED else "")


def _computes(suspect: Cause | None) -> str:
    """Return how much longer a suspect computes, in words."""
    if suspect is None:
        return ""
    who = f"ranks {listed(suspect.ranks)} compute" if len(suspect.ranks) > 1 else f"rank {suspect.ranks[0]} computes"
    return f"; {who} {_percent(suspect.longer)} longer"


def _bound(prediction: Prediction) -> Iterator[str]:
    """Yield the parts that matter with the ranks where they are, the longest first."""
    parts = by_key((each.part, each) for each in (prediction.binds if prediction.predicted_step_ns else ()))
    shares = {part: sum(each.time for each in some) / prediction.predicted_step_ns for part, some in parts.items()}
    for part, share in sorted(shares.items(), key=lambda item: -item[1]):
        if share >= _LEAST:
            yield f"{part} {_percent(share)}{_where(parts[part]) if share == max(shares.values()) else ''}"


def _where(some: list[Binding]) -> str:
    ranks = ", ".join(str(each.rank) for each in some[:_RANKS])
    return f" (rank{'s' if len(some) > 1 else ''} {ranks}{' …' if len(some) > _RANKS else ''})"


def _less(gain: float) -> str:
    return f"{_percent(abs(gain))} {'more' if _is_loss(gain) else 'less'}"


def _is_loss(gain: float) -> bool:
    """Whether a step takes longer by the figure shown: one that rounds to 0.0 % counts as a gain."""
    return round(gain * 100, 1) < 0


def _between(prediction: Prediction) -> str:
    """Return the bounds of a gain, or of the loss if the change costs time."""
    least, most = prediction.gains
    least, most = (-most, -least) if _is_loss(prediction.gain) else (least, most)
    return f"{_tenths(least)} to {_tenths(most)} %"


def _tenths(share: float) -> str:
    return f"{round(share * 100, 1) + 0.0:.1f}"  # no -0.0


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
