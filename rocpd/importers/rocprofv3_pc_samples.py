"""Samples of program counters in rocprofv3's JSON and CSV files: rows of `rocpd_gpu_pc_sample` and `rocpd_pc_sampling`.

JSON says which instruction of which code object a sample is at, CSV only the instruction's text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocpd.importers.rocprofv3_files import Columns, numbers
from rocpd.importers.rocprofv3_records import Record
from rocpd.schema.trace.writer import TableRows, TraceWriter
from rocpd.trace.pc_sampling import instruction_type, signed, stall_reason

_UNKNOWN = -1  # index of an instruction that rocprofv3 could not decode
_INSTRUCTION_COLUMNS = ("code_object_id", "code_object_offset", "instruction", "comment")
_NUMBERS = ("exec_mask", "dispatch_id", "correlation_id", "wave_issued_instruction", "wave_count")
_TEXTS = ("instruction", "instruction_comment", "instruction_type", "stall_reason")


class PcSampleRows:
    """Writes the samples of one process of a JSON file.

    Args:
        trace: the file.
        strings: the process' texts: instructions and source lines, by index.
    """

    def __init__(self, trace: TraceWriter, strings: Record) -> None:
        self._trace = trace
        self._instructions = _texts(strings, "pc_sample_instructions")
        self._comments = _texts(strings, "pc_sample_comments")
        self._known: set[tuple[int | None, int | None]] = set()

    def write(self, records: Sequence[Any]) -> int:
        """Write samples and the instructions that are new; return how many are damaged and have no place."""
        columns = [_sample_columns(record) for record in records]
        whole = [(record, sample) for record, sample in zip(records, columns, strict=True) if sample]
        if whole:
            samples = [sample for _, sample in whole]
            self._trace.insert(
                TableRows("rocpd_gpu_pc_sample", {name: [sample[name] for sample in samples] for name in samples[0]})
            )
            self._write_instructions(whole)
        return len(records) - len(whole)

    def _write_instructions(self, samples: Sequence[tuple[Record, Record]]) -> None:
        rows: list[tuple[object, ...]] = []
        for record, sample in samples:
            address = sample["code_object_id"], sample["code_object_offset"]
            index = record.get("inst_index")
            if address in self._known or not isinstance(index, int) or not _UNKNOWN < index < len(self._instructions):
                continue
            self._known.add(address)
            comment = self._comments[index] if index < len(self._comments) else None
            rows.append((*address, self._instructions[index], comment))
        if rows:
            columns = dict(zip(_INSTRUCTION_COLUMNS, zip(*rows, strict=True), strict=True))
            self._trace.insert(TableRows("rocpd_disassembly_data", columns))


def write_texts(trace: TraceWriter, method: str, batch: Columns) -> int:
    """Write the samples of a CSV file, taken by `method`; return how many lines are damaged."""
    times = numbers(batch, "sample_timestamp", -1)  # where the file is of another kind
    rows = [row for row, time in enumerate(times) if 0 <= time < 1 << 63]
    if rows:
        whole = {name: [column[row] for row in rows] for name, column in batch.items()}
        columns: dict[str, Sequence[object]] = {
            "timestamp": [times[row] for row in rows],
            **{name: [None if value is None else signed(value) for value in numbers(whole, name)] for name in _NUMBERS},
            **{name: whole.get(name) or [None] * len(rows) for name in _TEXTS},
        }
        trace.insert(TableRows("rocpd_pc_sampling", {"method": [method] * len(rows), **columns}))
    return len(times) - len(rows)


def _sample_columns(entry: Any) -> dict[str, Any] | None:
    """Return the columns of a sample; None where it is none."""
    record = entry.get("record") if isinstance(entry, Mapping) else None
    if not isinstance(record, Mapping) or _whole(record, "timestamp") is None:
        return None
    address, snapshot, correlation = (_member(record, name) for name in ("pc", "snapshot", "corr_id"))
    return {
        "timestamp": _whole(record, "timestamp"),
        "dispatch_id": _whole(record, "dispatch_id"),
        "correlation_id": _whole(correlation, "internal"),
        "exec_mask": _whole(record, "exec_mask"),
        "code_object_id": _whole(address, "code_object_id"),
        "code_object_offset": _whole(address, "code_object_offset"),
        "wave_issued": _whole(record, "wave_issued"),
        "inst_type": instruction_type(record.get("inst_type")),
        "stall_reason": stall_reason(snapshot.get("stall_reason")),
        "wave_count": _whole(record, "wave_cnt"),
    }


def _member(record: Record, name: str) -> Record:
    member = record.get(name)
    return member if isinstance(member, Mapping) else {}


def _whole(record: Record, name: str) -> int | None:
    value = record.get(name)
    return signed(int(value)) if isinstance(value, int) else None


def _texts(strings: Record, name: str) -> list[str]:
    texts = strings.get(name)
    return [str(text) for text in texts] if isinstance(texts, list) else []
