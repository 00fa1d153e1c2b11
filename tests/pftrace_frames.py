"""A check of the framing of .pftrace files: repeated Trace.packet (field 1, length-delimited) up to the last byte.

trace_processor takes a file that is cut in mid-packet without a word, so this runs beside it.
"""

from __future__ import annotations

from pathlib import Path


def count_packets(path: Path) -> int:
    """Count the packets of a trace.

    Raises:
        ValueError: a byte that starts no packet, or a packet that the end of the file cuts; with its offset.
    """
    data = path.read_bytes()
    at = packets = 0
    while at < len(data):
        start = at
        if data[at] != 0x0A:
            raise ValueError(f"byte {start}: 0x{data[at]:02x} starts no packet")
        size, at = _varint(data, at + 1, start)
        at += size
        if at > len(data):
            raise ValueError(f"byte {start}: packet {packets} lacks its last {at - len(data)} bytes")
        packets += 1
    return packets


def _varint(data: bytes, at: int, start: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError(f"byte {start}: the file ends within a packet's length")
