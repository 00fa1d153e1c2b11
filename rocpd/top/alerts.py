"""Alerts for values of a running job that are out of bounds, and a program to run then. Derives nothing."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from rocpd.base import UsageError, frozen
from rocpd.facts.communication.collectives import listed
from rocpd.top.glance import Glance, JobState

AGAIN_S = 300.0
"""Shortest time before an alert of a kind about a rank is repeated [s]."""

_MOST = 10  # programs at the same time, since they may hang
_WORD = re.compile(r"(?P<what>straggler|silent|step|hang)=(?P<value>\d{1,9}(?:\.\d{1,9})?)(?P<unit>%|s)?", re.ASCII)
_UNITS = {"straggler": "%", "silent": "s", "step": "", "hang": "s"}
_FORM = "straggler=5%,silent=30s,step=1.5,hang=30s"


@frozen
class Bounds:
    """The bounds of alerts; None: no bound.

    Args:
        straggler: largest cost of a rank, by more than chance, as a share of a step [%].
        silent: longest time without rows of a rank [s].
        step: longest step, by the usual one.
        hang: longest time for which the job hangs [s].
    """

    straggler: float | None = None
    silent: float | None = None
    step: float | None = None
    hang: float | None = None


@frozen
class Alert:
    """A value out of bounds.

    Args:
        what: `straggler`, `silent`, `step` or `hang`.
        text: a sentence.
        value, bound: the value and its bound, in the unit of the bound.
        rank: the rank; None: the job.
        host: host of the rank.
        step: number of the newest step; None: there are no steps.
    """

    what: str
    text: str
    value: float
    bound: float
    rank: int | None = None
    host: str = ""
    step: int | None = None

    @property
    def key(self) -> tuple[str, int | None]:
        """Its kind and its rank."""
        return self.what, self.rank

    def environment(self) -> dict[str, str]:
        """Return the alert as variables for a program: `ROCPD_ALERT`, `ROCPD_VALUE` and so on; empty if unknown."""
        values = {
            "ALERT": self.what,
            "TEXT": self.text,
            "VALUE": f"{self.value:.6g}",
            "BOUND": f"{self.bound:.6g}",
            "RANK": "" if self.rank is None else str(self.rank),
            "HOST": self.host,
            "STEP": "" if self.step is None else str(self.step),
        }
        return {f"ROCPD_{name}": value.replace("\0", "") for name, value in values.items()}


def bounds_of(text: str) -> Bounds:
    """Return the bounds in a text.

    >>> bounds_of("straggler=5%,silent=30s,step=1.5")
    Bounds(straggler=5.0, silent=30.0, step=1.5, hang=None)

    Raises:
        UsageError: the text has another form.
    """
    values: dict[str, float] = {}
    for word in text.split(","):
        match = _WORD.fullmatch(word.strip())
        if not match or (match["unit"] or "") not in ("", _UNITS[match["what"]]) or match["what"] in values:
            raise UsageError(f"--alert {word}: not a bound", f"such as {_FORM}")
        values[match["what"]] = float(match["value"])
    return Bounds(**values)


def alerts(glance: Glance, bounds: Bounds) -> Iterator[Alert]:
    """Yield an alert for each value that is out of bounds."""
    last = glance.steps[-1] if glance.steps else None
    number = last.number if last else None
    for rank in glance.ranks if glance.state is JobState.RUNNING else ():
        name = f"rank {rank.rank}" if rank.rank is not None else rank.file
        cost = rank.cost_percent if rank.is_straggler else None
        if bounds.straggler is not None and cost is not None and cost >= bounds.straggler:
            text = f"{name} costs {cost:.1f} % of a step ({rank.mainly})"
            yield Alert("straggler", text, cost, bounds.straggler, rank.rank, rank.host, number)
        if bounds.silent is not None and rank.silent_s >= bounds.silent:
            text = f"{name} is silent for {rank.silent_s:.0f} s"
            yield Alert("silent", text, rank.silent_s, bounds.silent, rank.rank, rank.host, number)
    if bounds.step is not None and last and glance.usual_ns and last.mean_ns >= bounds.step * glance.usual_ns:
        times = last.mean_ns / glance.usual_ns
        yield Alert("step", f"step {last.number} takes {times:.2f} times the usual", times, bounds.step, step=number)
    if bounds.hang is not None and glance.hangs and glance.hang_s >= bounds.hang:
        missing = glance.missing[0] if len(glance.missing) == 1 else None
        host = next((rank.host for rank in glance.ranks if missing is not None and rank.rank == missing), "")
        yield Alert("hang", glance.hang[0], glance.hang_s, bounds.hang, missing, host, number)


def _together(due: list[Alert]) -> Iterator[Alert]:
    """Yield alerts, with those of silent ranks as one: in a job that hangs all ranks are silent."""
    silent = [alert for alert in due if alert.what == "silent"]
    yield from (alert for alert in due if alert.what != "silent")
    if len(silent) > 1:
        longest = max(silent, key=lambda alert: alert.value)
        names = listed(sorted(alert.rank for alert in silent if alert.rank is not None)) or "without a number"
        yield replace(longest, text=f"ranks {names} are silent for {longest.value:.0f} s", rank=None, host="")
    else:
        yield from silent


class Bell:
    """Rings for alerts, repeating an alert of a kind about a rank only now and then.

    Args:
        bounds: the bounds of alerts.
        program: run without a shell and without arguments; the alert is in its environment. Empty: none.
        clock: returns the time [s].

    Raises:
        UsageError: the program does not exist.
    """

    def __init__(
        self, bounds: Bounds, program: str, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        import shutil

        if program and not shutil.which(program):
            raise UsageError(f"--exec {program}: no such program", "one program without arguments, such as ./alert.sh")
        self._bounds, self._program, self._say, self._clock = bounds, program, say, clock
        self._rung: dict[tuple[str, int | None], float] = {}
        self._runs: list[threading.Thread] = []

    def ring(self, glance: Glance) -> None:
        """Ring for alerts, except recent ones of the same kind and rank; once for all silent ranks."""
        now = self._clock()
        due = [each for each in alerts(glance, self._bounds) if now - self._rung.get(each.key, -AGAIN_S) >= AGAIN_S]
        self._rung |= dict.fromkeys((alert.key for alert in due), now)
        for alert in _together(due):
            self._say(f"alert: {alert.text}")
            self._run(alert)

    def _run(self, alert: Alert) -> None:
        self._runs = [run for run in self._runs if run.is_alive()]
        if not self._program:
            return
        if len(self._runs) >= _MOST:
            self._say(f"{self._program}: {_MOST} of them still run; not run again")
            return
        self._runs.append(threading.Thread(target=_run, args=(self._program, alert), daemon=True))
        self._runs[-1].start()


def _run(program: str, alert: Alert) -> None:
    """Run a program to its end, without waiting for it elsewhere."""
    with suppress(OSError):  # it existed when top began; the sentence has been written
        environment = {**os.environ, **alert.environment()}
        subprocess.run([program], env=environment, stdin=subprocess.DEVNULL, start_new_session=True, check=False)
