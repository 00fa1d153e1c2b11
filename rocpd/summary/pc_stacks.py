"""Owns flame graphs of samples of program counters: kernel, source line, instruction, and what the wave waits for."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.summary.flame import FlameProfile, folded_lines, speedscope_json
from rocpd.summary.pc_samples import by_samples
from rocpd.summary.reading import DIVISIONS, Reading, order_of
from rocpd.summary.sampled_kernels import KernelSpots, sampled_kernels


def folded(reading: Reading) -> Iterator[str]:
    """Yield one line per instruction of a kernel and reason to wait: frames, then samples.

    Raises:
        RocpdError: no program counters were sampled.
    """
    for profile in _profiles(reading):
        yield from folded_lines(profile)


def speedscope(reading: Reading) -> Iterator[str]:
    """Yield the same as speedscope's JSON; errors as for `folded`."""
    yield from speedscope_json("rocpd pc-samples", _profiles(reading))


def _profiles(reading: Reading) -> Iterator[FlameProfile]:
    divisions = sampled_kernels(reading)
    for key in sorted(divisions, key=order_of):
        labels = [f"{field.name} {value}" for field, value in zip(DIVISIONS[reading.by], key, strict=True)]
        stacks = [
            ([name or "unknown kernel", *path], samples)
            for name, kernel in by_samples(divisions[key])
            for path, samples in _paths(kernel)
        ]
        yield FlameProfile(labels, "samples", stacks)


def _paths(kernel: KernelSpots) -> Iterator[tuple[list[str], int]]:
    """Yield the frames below the kernel, and how many samples have them."""
    for spot in sorted(kernel.spots, key=order_of):
        samples = kernel.spots[spot]
        frames = [spot.source or "unknown line", spot.shown or "unknown instruction"]
        by_reason: dict[str, int] = {}
        for (_, reason), count in samples.reasons.items():
            by_reason[str(reason)] = by_reason.get(str(reason), 0) + count
        yield from (([*frames, reason], count) for reason, count in sorted(by_reason.items()))
        if samples.issued:
            yield [*frames, "issued"], samples.issued
        yield frames, samples.samples - samples.issued - sum(by_reason.values())
