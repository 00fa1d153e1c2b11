"""Reads what a run was, as far as it matters for whether two compare: GPUs, what was recorded, settings.

Of the environment only settings of libraries are read, and none whose name or value looks like a secret.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rocpd.compare.run_profile import RunFacts
from rocpd.federate.open.identify import Rank
from rocpd.read.names import as_text
from rocpd.summary.reading import RankReading
from rocpd.summary.regions import read_regions
from rocpd.summary.statements import statement
from rocpd.trace.categories import domain_of

_SETTINGS = re.compile(
    r"(NCCL|RCCL|HSA|HIP|ROCR|ROCM|ROCP|GPU|OMP|KMP|PYTORCH|TORCH|MIOPEN|TENSILE|HIPBLASLT|ROCBLAS|TRITON|XLA|UCX|OMPI_MCA|FI|AMD|DEBUG)_\w+"
)
_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie")
_NUMBERED = re.compile(r"(?i)(gpu[ -]?\d*)?")
_LONGEST = 200  # characters of a value
_GPUS = "SELECT product_name, name, extdata FROM rocpd_info_agent WHERE type = 'GPU'"
_ENVIRONMENT = "SELECT environment FROM rocpd_info_process"
_TABLES = {"kernels": "rocpd_kernel_dispatch", "copies": "rocpd_memory_copy", "allocations": "rocpd_memory_allocate"}
_CALLS = dict.fromkeys(("HIP", "CUDA"), "calls of HIP or CUDA")
"""Domain -> what it is called: those that are the same on another vendor's GPU."""
_ALWAYS = (1, 1 << 62)  # [ns]


class RankFacts(NamedTuple):
    """What a rank was; as `RunFacts`, with the number and the mean of its clock samples."""

    gpus: tuple[str, ...]
    recorded: frozenset[str]
    clock: tuple[int, float]
    environment: Mapping[str, str]


def read_facts(reading: RankReading) -> RankFacts:
    """Read what a rank was."""
    reader = reading.reader
    recorded = {name for name, base in _TABLES.items() if reader.rows(f"SELECT 1 FROM {base} LIMIT 1")}  # noqa: S608
    regions, names = read_regions(reading)
    categories = {names.texts[code] for code in set(regions.category.tolist())}
    recorded |= {_CALLS.get(domain, domain) for domain in map(domain_of, filter(None, categories))}
    ((count, mean),) = reader.rows(statement("clock_samples"), _ALWAYS)
    clock = (int(count or 0), float(mean or 0.0)) if isinstance(mean, (int, float)) else (0, 0.0)
    gpus = {known for row in reader.rows(_GPUS) if (known := _gpu(*row))}
    settings = dict(pair for (text,) in reader.rows(_ENVIRONMENT) for pair in _settings(text))
    return RankFacts(tuple(sorted(gpus)), frozenset(recorded), clock, settings)


def _gpu(product: object, name: object, extdata: object) -> str | None:
    """Return what a GPU is, with its compute units; None where the files know its number alone."""
    units = None
    if isinstance(extdata, str):
        try:
            known = json.loads(extdata)
            units = known.get("cu_count") if isinstance(known, dict) else None
        except ValueError:
            units = None
    what = as_text(product) or as_text(name) or ""
    if _NUMBERED.fullmatch(what):
        return None
    return f"{what} ({units} compute units)" if units else what


def _settings(text: object) -> Iterator[tuple[str, str]]:
    """Yield the settings of libraries in an environment."""
    try:
        known = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        known = {}
    for name, value in known.items() if isinstance(known, dict) else ():
        is_shown = _SETTINGS.fullmatch(name) and not _SECRET.search(f"{name}={value}")
        if is_shown and "/" not in str(value):  # paths differ wherever something is installed
            yield name, str(value)[:_LONGEST]


def combined(ranks: Sequence[tuple[Rank, RankFacts]]) -> RunFacts:
    """Put together the facts of the ranks of a run; of the environment what is the same in all."""
    settings = Counter(pair for _, facts in ranks for pair in facts.environment.items())
    count = sum(facts.clock[0] for _, facts in ranks)
    clock = sum(facts.clock[0] * facts.clock[1] for _, facts in ranks) / count if count else None
    commands = {re.sub(r"\d+", "#", rank.command) for rank, _ in ranks if rank.command}
    return RunFacts(
        len(ranks),
        len({rank.hostname for rank, _ in ranks}),
        tuple(sorted({gpu for _, facts in ranks for gpu in facts.gpus})),
        tuple(sorted({rank.version for rank, _ in ranks})),
        tuple(sorted(frozenset[str].intersection(*(facts.recorded for _, facts in ranks)))),
        clock,
        {name: value for (name, value), times in sorted(settings.items()) if times == len(ranks)},
        tuple(sorted(commands)),
    )
