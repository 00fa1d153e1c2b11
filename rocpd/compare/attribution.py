"""Says where the difference of two sides comes from. Every level adds up to it, to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from rocpd.compare.kernel_changes import KernelDifference, kernel_difference
from rocpd.compare.kernel_pairs import KernelPair
from rocpd.compare.launches import KernelLaunch
from rocpd.compare.run_profile import PARTS
from rocpd.compare.sides import Difference, Side
from rocpd.frozen import frozen

_CANCEL = 3  # times the difference: parts that change by so much together cancel each other


@frozen
class Attribution:
    """Where a difference comes from.

    Args:
        unit: time of a unit.
        parts: its parts.
        kernels: kernels and copies, those that change most first; they add up to the parts that are no idle time.
        categories, paths, operators: the same by what kernels do, by marker ranges, and by operators of PyTorch.
    """

    unit: Difference
    parts: Mapping[str, Difference]
    kernels: Sequence[KernelDifference]
    categories: Mapping[str, Difference] = field(default_factory=dict)
    paths: Mapping[str, Difference] = field(default_factory=dict)
    operators: Mapping[str, Difference] = field(default_factory=dict)

    @property
    def cancels(self) -> bool:
        """Whether parts change by far more than the unit."""
        return sum(abs(part.change) for part in self.parts.values()) > _CANCEL * abs(self.unit.change)

    @property
    def like_for_like(self) -> float:
        """Share of the kernel time of the base whose kernels do the same work per call."""
        computing = [kernel for kernel in self.kernels if kernel.pair.base and kernel.pair.base[0].kind == "compute"]
        total = sum(kernel.base for kernel in computing)
        return sum(kernel.base for kernel in computing if not kernel.is_other_work) / total if total else 1.0


def attribute(base: Side, new: Side, pairs: Sequence[KernelPair]) -> Attribution:
    """Return where the difference of two sides comes from."""
    parts = base.parts(), new.parts()
    by_part = {part: Difference(parts[0].get(part, 0), parts[1].get(part, 0)) for part in PARTS}
    known = {part: times for part, times in by_part.items() if times.base or times.new}
    kernels = [kernel_difference(pair, base, new) for pair in pairs]
    ordered = sorted(kernels, key=lambda kernel: (-abs(kernel.change), -kernel.base, kernel.pair))
    return Attribution(
        Difference(base.total, new.total),
        known,
        ordered,
        _by(base, new, lambda launch: launch.category),
        _by(base, new, lambda launch: launch.path),
        _by(base, new, lambda launch: launch.operator),
    )


def _by(base: Side, new: Side, key: Callable[[KernelLaunch], str]) -> dict[str, Difference]:
    sums: list[dict[str, int]] = [{}, {}]
    for side, of_side in zip((base, new), sums, strict=True):
        for launch, share in side.shares.items():
            of_side[key(launch)] = of_side.get(key(launch), 0) + share.total
    every = sorted({*sums[0], *sums[1]})
    times = {name: Difference(sums[0].get(name, 0), sums[1].get(name, 0)) for name in every}
    return dict(sorted(times.items(), key=lambda item: (-abs(item[1].change), item[0])))


def explaining(rows: Sequence[Difference], share: float = 0.9) -> Iterator[int]:
    """Yield the numbers of rows, in their order, until these make up a share of all changes."""
    total, seen = sum(abs(row.change) for row in rows), 0
    for number, row in enumerate(rows):
        if not row.change or seen >= share * total:
            return
        seen += abs(row.change)
        yield number
