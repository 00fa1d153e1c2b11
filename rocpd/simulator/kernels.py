"""Owns the kernels that simulated jobs run, which stand in `data/kernels.toml`. Never decides when one runs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    Args:
        key: short name within the simulator.
        mangled: symbol name without `.kd`.
        display: demangled name; in the table only where it differs from `mangled`.
        micros: typical duration [us].
        grid: work-items in x, y and z.
        block: work-items per work-group in x, y and z.
        lds: static LDS per work-group [bytes].
        scratch: static scratch per work-item [bytes].
        registers: scalar, vector and accumulation registers.
        module: loaded as a module by a library, launched without a call configuration.
    """

    key: str
    mangled: str
    display: str
    micros: float
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (256, 1, 1)
    lds: int = 0
    scratch: int = 0
    registers: tuple[int, int, int] = (32, 16, 0)
    module: bool = False

    @property
    def truncated(self) -> str:
        """Name without return type, namespaces, template arguments and parameters."""
        head = self.display.split("<", 1)[0].split("(", 1)[0]
        return head.split()[-1].split("::")[-1]


def _of(facts: dict[str, Any]) -> Kernel:
    fields: dict[str, Any] = {"display": facts["mangled"]}
    fields |= {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    return Kernel(**fields)


_TABLE = tomllib.loads((files(__package__) / "data" / "kernels.toml").read_text("utf-8"))

KERNELS: tuple[Kernel, ...] = tuple(map(_of, _TABLE["kernel"]))
"""All kernels; a kernel's id in a file is its position here, from 1."""

KERNEL_IDS: dict[str, int] = {kernel.key: i for i, kernel in enumerate(KERNELS, 1)}
