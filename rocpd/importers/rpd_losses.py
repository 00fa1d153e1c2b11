"""Counts what of an RPD file has no place in a rocpd file."""

from __future__ import annotations

from collections.abc import Callable

from rocpd.importers.rpd_operations import WITHOUT_CALL
from rocpd.importers.rpd_tables import RpdTables

_NO_CALL = "api_ptr_id NOT IN (SELECT id FROM rocpd_api)"
_FENCES = " OR ".join(f"{name} NOT IN ('', '0x0', 0)" for name in ("aquireFence", "releaseFence"))


def count_losses(tables: RpdTables, processes: int, lose: Callable[[str, int], None]) -> None:
    """Report to `lose` what is lost, and how often, of a file with so many processes."""
    kinds = [
        ("second calls of operations", "rocpd_api_ops", None),
        ("links to operations that are not there", "rocpd_api_ops", "op_id NOT IN (SELECT id FROM rocpd_op)"),
        ("stack frames without a call", "rocpd_stackframe", _NO_CALL),
        ("launches without a call", "rocpd_kernelapi", _NO_CALL),
        ("copies without a call", "rocpd_copyapi", _NO_CALL),
        ("operators without a call", "ext_autogradapi", _NO_CALL),
        ("facts of barriers", "rocpd_barrierop", "TRUE"),
        ("input signals of operations", "rocpd_op_inputSignals", "TRUE"),
        ("register counts of code objects", "rocpd_kernelcodeobject", "TRUE"),
    ]
    if "completionSignal" in tables.columns.get("rocpd_op", ()):
        kinds.append(("completion signals of operations", "rocpd_op", "completionSignal NOT IN ('', '0x0')"))
    for table in ("rocpd_kernelapi", "rocpd_kernelop"):
        if "aquireFence" in tables.columns.get(table, ()):
            kinds.append(("fences of launches", table, _FENCES))
    if processes > 1:
        kinds.append(("operations without a call, so without a process", "rocpd_op", WITHOUT_CALL))
    for what, table, condition in kinds:
        if condition is None:
            lose(what, tables.second_calls)
        else:
            lose(what, tables.count(table, condition))
