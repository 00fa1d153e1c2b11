"""Owns which column is redacted how. All others, of tables of the contract or not, are texts or documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from rocpd.redact.options import Clue
from rocpd.redact.texts import Redactor
from rocpd.trace.tables import PC_SAMPLES, POINTS, SPANS

Rule: TypeAlias = Callable[[Redactor, str], str]


def _host(redactor: Redactor, text: str) -> str:
    return _whole(redactor, Clue.HOST, text)


def _machine(redactor: Redactor, text: str) -> str:
    return _whole(redactor, Clue.MACHINE, text)


def _whole(redactor: Redactor, kind: Clue, text: str) -> str:
    return text if kind in redactor.keep or not text else redactor.pseudonyms.of(kind, text)


def _domain(redactor: Redactor, text: str) -> str:
    return text if text in ("", "(none)") else _whole(redactor, Clue.HOST, text)


def _left_out(_redactor: Redactor, _text: str) -> str:
    return ""


def plain(redactor: Redactor, text: str) -> str:
    """Redact a text, or the strings of a JSON document."""
    return redactor.document(text) if text[:1] in ("{", "[") else redactor.text(text)


RULES: Mapping[tuple[str, str], Rule] = MappingProxyType(
    {
        ("rocpd_info_node", "hostname"): _host,
        ("rocpd_info_node", "machine_id"): _machine,
        ("rocpd_info_node", "domain_name"): _domain,
        ("rocpd_info_process", "command"): Redactor.command,
        ("rocpd_info_process", "environment"): Redactor.environment,
        ("rocpd_memory_access", "code"): _left_out,
    }
)
"""(table, column) -> how its texts are redacted."""

NUMBERS: Mapping[tuple[str, str], str] = MappingProxyType(
    {("rocpd_info_node", "hash"): "{column} * 0", ("rocpd_info_agent", "uuid"): "{column} * 0"}
)
"""Numbers that identify a machine or a device, and that no analysis reads -> what stands there."""


_ADDRESSES = {
    "rocpd_memory_copy": ("dst_address", "src_address"),
    "rocpd_memory_allocate": ("address",),
    "rocpd_info_code_object": ("load_base", "load_delta"),
    "rocpd_info_kernel_symbol": ("kernel_object",),
    "rocpd_memory_page": ("start_address", "end_address"),
}
_TIMES = {
    **dict.fromkeys(SPANS, ("start", "end")),
    **dict.fromkeys((*POINTS, *PC_SAMPLES), ("timestamp",)),
    "rocpd_info_process": ("start", "end", "init", "fini"),
    "rocpd_info_thread": ("start", "end"),
}
MOMENTS_AND_ADDRESSES: Mapping[str, Mapping[str, bool]] = MappingProxyType(
    {
        base: dict.fromkeys(_TIMES.get(base, ()), True) | dict.fromkeys(_ADDRESSES.get(base, ()), False)
        for base in {**_TIMES, **_ADDRESSES}
    }
)
"""Table -> columns of times (True) and addresses (False), which strict files count from the least of the job."""


def rule(base: str, column: str) -> Rule:
    """Return how the texts of a column are redacted."""
    return RULES.get((base, column), plain)
