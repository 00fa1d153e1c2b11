"""Owns what of a rank's life is recorded: how much of RCCL's calls, and which rows a planted fact loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rocpd.frozen import frozen
from rocpd.simulator.options import Rccl
from rocpd.simulator.plants import Plant, Planting
from rocpd.simulator.script import COMPILER, HIP, RCCL
from rocpd.simulator.template import Dispatch, HostRegion, Template

Launched = TypeVar("Launched", bound=Any)

_LAUNCHES = frozenset({"hipExtModuleLaunchKernel", "hipLaunchKernel"})
_SIZE = "nranks"


@frozen
class Recording:
    """What is asked to be recorded, and what is lost."""

    rccl: str
    planting: Planting

    def recorded(self, template: Template) -> Template:
        """Return the template without the rows that are not recorded; ops and lanes stay."""
        every = range(len(template.regions))
        lost = self._lost_launches(template.regions)
        there = [n for n in every if n not in lost and self._has_call(template.regions[n])]
        if len(there) < len(every):
            template = _keep_regions(template, there)
        if self.rccl == Rccl.CALLS:
            template = replace(template, regions=[_without_size(region) for region in template.regions])
        dispatches = template.dispatches
        if Plant.LOST_DISPATCHES in self.planting:
            dispatches = self._every_nth_lost(dispatches)
        if Plant.LOST_GRAPH_KERNELS in self.planting:
            dispatches = [dispatch for dispatch in dispatches if dispatch.graph is None]
            template = replace(template, graphs=[])
        return replace(template, dispatches=dispatches)

    def _has_call(self, region: HostRegion) -> bool:
        if region.category in (HIP, COMPILER):
            return Plant.NO_HIP_TRACE not in self.planting
        return region.category != RCCL or self.rccl != Rccl.NONE

    def _lost_launches(self, regions: Sequence[HostRegion]) -> frozenset[int]:
        if Plant.LOST_LAUNCHES not in self.planting:
            return frozenset()
        every = int(self.planting.size(Plant.LOST_LAUNCHES, 1))
        launches = [n for n, region in enumerate(regions) if region.name in _LAUNCHES]
        return frozenset(launches[every // 2 :: every])

    def _every_nth_lost(self, dispatches: Sequence[Dispatch]) -> list[Dispatch]:
        """Return the dispatches without every so manyth; communication is never lost."""
        every = int(self.planting.size(Plant.LOST_DISPATCHES, 1))
        computing = [n for n, dispatch in enumerate(dispatches) if dispatch.kernel.key != "nccl"]
        lost = set(computing[every // 2 :: every])
        return [dispatch for n, dispatch in enumerate(dispatches) if n not in lost]


def _keep_regions(template: Template, there: Sequence[int]) -> Template:
    """Return the template with some regions alone; what lay in others lies in what is around those."""
    numbers = {old: new for new, old in enumerate(there)}

    def around(region: int) -> int:
        while region >= 0 and region not in numbers:
            region = template.regions[region].parent
        return numbers.get(region, -1)

    def launched(rows: Sequence[Launched]) -> list[Launched]:
        return [replace(row, launcher=numbers.get(row.launcher, -1)) for row in rows]

    regions = [template.regions[n] for n in there]
    return replace(
        template,
        regions=[replace(region, parent=around(region.parent)) for region in regions],
        dispatches=launched(template.dispatches),
        copies=launched(template.copies),
        allocations=launched(template.allocations),
        graphs=launched(template.graphs),
    )


def _without_size(region: HostRegion) -> HostRegion:
    args = tuple(arg for arg in region.args if arg.name != _SIZE)
    return region if len(args) == len(region.args) else replace(region, args=args)
