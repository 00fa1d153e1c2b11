"""Makes agent_info.csv: one line per agent and rank, its columns taken from the hardware description of the agent.

Numbers are bare, texts quoted, bit fields packed into the number that AMD's tool of 2025 writes; that of 2026 has a
column for each capability instead, and the type of the agent as a word.
"""

from __future__ import annotations

import json
from typing import Any

from rocpd.base.documents import json_object
from rocpd.base.types import AmdVersion
from rocpd.convert.formats.bit_fields import FIELDS, packed_number
from rocpd.convert.formats.csv_files import RANK
from rocpd.convert.options import ConvertOptions
from rocpd.federate.result import decoded
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.quote import quote_name

_COLUMNS = (
    "Node_Id", "Logical_Node_Id", "Agent_Type", "Cpu_Cores_Count", "Simd_Count", "Cpu_Core_Id_Base", "Simd_Id_Base",
    "Max_Waves_Per_Simd", "Lds_Size_In_Kb", "Gds_Size_In_Kb", "Num_Gws", "Wave_Front_Size", "Num_Xcc", "Cu_Count",
    "Array_Count", "Num_Shader_Banks", "Simd_Arrays_Per_Engine", "Cu_Per_Simd_Array", "Simd_Per_Cu",
    "Max_Slots_Scratch_Cu", "Gfx_Target_Version", "Vendor_Id", "Device_Id", "Location_Id", "Domain",
    "Drm_Render_Minor", "Num_Sdma_Engines", "Num_Sdma_Xgmi_Engines", "Num_Sdma_Queues_Per_Engine", "Num_Cp_Queues",
    "Max_Engine_Clk_Ccompute", "Max_Engine_Clk_Fcompute", "Sdma_Fw_Version", "Fw_Version", "Capability",
    "Cu_Per_Engine", "Max_Waves_Per_Cu", "Family_Id", "Workgroup_Max_Size", "Grid_Max_Size", "Local_Mem_Size",
    "Hive_Id", "Gpu_Id", "Workgroup_Max_Dim_X", "Workgroup_Max_Dim_Y", "Workgroup_Max_Dim_Z", "Grid_Max_Dim_X",
    "Grid_Max_Dim_Y", "Grid_Max_Dim_Z", "Name", "Vendor_Name", "Product_Name", "Model_Name",
)  # fmt: skip
_CAPABILITY = "Capability"
_CAPABILITIES = tuple(f"Cap_{name}" for name in FIELDS["capability"])
_OF_ROW = {
    "node_id": "absolute_index",
    "logical_node_id": "logical_index",
    "agent_type": "type",
    "name": "name",
    "vendor_name": "vendor_name",
    "product_name": "product_name",
    "model_name": "model_name",
}
"""Columns that the agent's row has as well, for descriptions without them; the row's type is a word, not a number."""

_EXTDATA = "CASE WHEN json_valid(extdata) THEN json_remove(extdata, '$.caches', '$.io_links') ELSE extdata END"
"""The description without what no column shows: 120 kB of each GPU, which take Python 2 ms to read."""


def agent_lines(reader: RankReader, options: ConvertOptions) -> list[str]:
    """Return the header and a line per agent of a rank, in order of id."""
    names = _columns(options.amd_version)
    rank: tuple[object, ...] = (reader.rank.number, reader.rank.hostname or "") if options.with_rank else ()
    lines = [_line(("Guid", *names, *(RANK if options.with_rank else ())))]
    columns = tuple(dict.fromkeys(_OF_ROW.values()))
    listed = ", ".join(map(quote_name, columns))
    for extdata, *values in reader.rows(f"SELECT {_EXTDATA}, {listed} FROM rocpd_info_agent ORDER BY id"):
        row = dict(zip(columns, values, strict=True))
        described = _described(extdata)
        if options.amd_version is AmdVersion.V2026:
            described["agent_type"] = row["type"]
        lines.append(_line((reader.rank.guid, *(_value(described, row, name) for name in names), *rank)))
    return lines


def _columns(version: AmdVersion) -> tuple[str, ...]:
    if version is AmdVersion.V2025:
        return _COLUMNS
    at = _COLUMNS.index(_CAPABILITY)
    return (*_COLUMNS[:at], *_CAPABILITIES, *_COLUMNS[at + 1 :])


def _described(extdata: object) -> dict[str, Any]:
    return (json_object(extdata) if isinstance(extdata, (str, bytes)) else None) or {}


def _value(described: dict[str, Any], row: dict[str, Any], column: str) -> object:
    if column in _CAPABILITIES:
        of = described.get("capability")
        return of.get(column.removeprefix("Cap_")) if isinstance(of, dict) else None
    name = column.lower()
    if "_max_dim_" in name:
        of = described.get(name[:-2])
        return of.get(name[-1]) if isinstance(of, dict) else None
    value = described.get(name)
    number = packed_number(name, value)
    if number is not None:
        return number
    return row[_OF_ROW[name]] if value is None and name in _OF_ROW else value


def _line(values: tuple[object, ...]) -> str:
    return ",".join(map(_cell, values)) + "\n"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (int, float)):
        return repr(value)
    text = decoded(value) if isinstance(value, (str, bytes)) else _dumped(value)
    return '"' + (text or "").replace('"', '""') + '"'


def _dumped(value: object) -> str:
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:  # what was read at its depth may not be written at ours
        return ""
