"""Series of runs whose truth is known: noise of Gauss and Markov, half of it with heavy tails, and what is planted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Planted:
    """A series: logarithms, the machine of each run, and the truth.

    `deviations` says how large the jump is, in standard deviations of the noise; `jump` is its first run, None: none.
    """

    kind: str
    values: Floats
    machines: npt.NDArray[np.int64]
    rho: float
    deviations: float = 0.0
    jump: int | None = None


def noise(random: np.random.Generator, count: int, rho: float, *, is_heavy: bool) -> Floats:
    """Return noise of deviation 1; heavy tails are Student's, of 4 degrees of freedom."""
    drawn = random.standard_t(4, count) / math.sqrt(2) if is_heavy else random.standard_normal(count)
    for at in range(1, count):
        drawn[at] = rho * drawn[at - 1] + math.sqrt(1 - rho * rho) * drawn[at]
    return drawn


KINDS = ("none", "jump", "drift", "outliers", "machines", "machines and jump")


def planted(number: int, seed: int, kinds: tuple[str, ...] = KINDS, most_rho: float = 0.8) -> Iterator[Planted]:
    """Yield series of 20 to 200 runs, whose noise is 0.5 to 5 %; a jump has 17 before it and 3 from it on at least."""
    random = np.random.default_rng(seed)
    for n in range(number):
        kind = kinds[n % len(kinds)]
        count, rho = int(random.integers(20, 201)), float(random.uniform(0, most_rho))
        deviation = float(random.uniform(0.005, 0.05))
        values = noise(random, count, rho, is_heavy=n // len(kinds) % 2 == 1)
        machines = np.zeros(count, np.int64)
        size, jump = 0.0, None
        if kind == "drift":
            values += np.arange(count) / count * random.uniform(4, 12)
        if kind == "outliers":
            values[random.random(count) < 0.04] += random.uniform(5, 12)
        if kind.startswith("machines"):
            machines = random.integers(0, 3, count)
            values += np.array([0.0, 1.5, -2.0])[machines]
        if kind.endswith("jump"):
            size, jump = float(random.uniform(3, 8) * random.choice([-1, 1])), int(random.integers(17, count - 2))
            values[jump:] += size
        yield Planted(kind, values * deviation, machines, rho, abs(size), jump)
