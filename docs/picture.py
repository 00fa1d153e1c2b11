"""Draws the relations of the tables as SVG, from their foreign keys. Writes text only; no drawing library."""

from __future__ import annotations

import re

from rocpd.schema.load import table

ROWS: tuple[tuple[str, ...], ...] = (
    ("info_node", "info_process", "string", "metadata"),
    ("info_thread", "info_agent", "info_queue", "info_stream"),
    ("track", "info_code_object", "info_kernel_symbol", "info_pmc"),
    ("sample", "region", "kernel_dispatch", "memory_copy", "memory_allocate", "graph_launch"),
    ("arg", "event", "pmc_event"),
)
"""Where each table stands; names without `rocpd_`."""

EVERYWHERE = ("info_node", "info_process", "string")
"""Tables that nearly all others refer to: named in the box instead of drawn as lines."""

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 58, 40, 70, 24
_REFERENCE = re.compile(r'FOREIGN KEY \("(\w+)"\) REFERENCES "rocpd_(\w+)\{\{uuid\}\}"')


def relations_svg() -> str:
    """Return the picture: one box per table, a line from each foreign key to the table it names."""
    places = _places()
    width = max(x for x, _ in places.values()) + _WIDTH + _MARGIN
    height = max(y for _, y in places.values()) + _HEIGHT + _MARGIN + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>',
    ]
    boxes = []
    for name, (x, y) in places.items():
        references = _REFERENCE.findall(table(f"rocpd_{name}").text)
        lines += [_line(places[name], places[to]) for _, to in dict.fromkeys(references) if to not in EVERYWHERE]
        also = ", ".join(sorted({to.removeprefix("info_") for _, to in references if to in EVERYWHERE}))
        boxes.append(
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#f4f7fb" stroke="#456"/>'
            f'<text x="{x + 10}" y="{y + 24}" font-size="14" font-weight="600">{name}</text>'
            f'<text x="{x + 10}" y="{y + 44}" font-size="11" fill="#567">{f"→ {also}" if also else ""}</text>'
        )
    note = "Every table but metadata carries the guid of its rank; lines join by (guid, id)."
    boxes.append(f'<text x="{_MARGIN}" y="{height - 12}" font-size="12" fill="#567">{note}</text>')
    return "\n".join([*lines, *boxes, "</svg>"]) + "\n"


def _places() -> dict[str, tuple[int, int]]:
    longest = max(map(len, ROWS)) * (_WIDTH + _GAP_X)
    corners = {}
    for row, names in enumerate(ROWS):
        step = longest // len(names)
        for column, name in enumerate(names):
            corners[name] = (_MARGIN + column * step + (step - _WIDTH) // 2, _MARGIN + row * (_HEIGHT + _GAP_Y))
    return corners


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    down = end[1] > start[1]
    same = end[1] == start[1]
    x1, x2 = start[0] + _WIDTH // 2, end[0] + _WIDTH // 2
    y1 = start[1] + (_HEIGHT if down else 0)
    y2 = end[1] + (0 if down else _HEIGHT)
    if same:
        right = end[0] > start[0]
        x1, x2 = start[0] + (_WIDTH if right else 0), end[0] + (0 if right else _WIDTH)
        y1 = y2 = start[1] + _HEIGHT // 2
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#999" marker-end="url(#to)"/>'
