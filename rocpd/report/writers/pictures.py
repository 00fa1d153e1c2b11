"""Draws the charts of a report as pixels, the same on every machine. Knows no format of reports."""

from __future__ import annotations

import io

from rocpd.chart.draw import svg
from rocpd.report.model import Figure

NEEDS = ("resvg_py", "font_roboto")
"""The packages for pictures: resvg, 4 MB, draws a chart in 10 ms; the font makes it the same on every machine."""

ZOOM = 2.0
"""Pixels of a picture per pixel of the chart."""
_QUALITY = 90  # quality of a JPEG, up to 100


def svg_of(figure: Figure) -> str:
    """Return a chart as the text of an SVG file."""
    return svg(figure.drawing, figure.chart.title, figure.description)


def png_of(figure: Figure) -> bytes:
    """Return a chart as PNG, `ZOOM` times as large as its drawing."""
    import font_roboto
    import resvg_py

    drawn = resvg_py.svg_to_bytes(
        svg_string=svg_of(figure),
        zoom=ZOOM,
        skip_system_fonts=True,
        font_files=[font_roboto.Roboto, font_roboto.RobotoBold],
        font_family="Roboto",
        sans_serif_family="Roboto",
    )
    return bytes(drawn)


def jpeg_of(png: bytes) -> bytes:
    """Return a PNG as JPEG, for programs that take no other pictures."""
    from PIL import Image

    content = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(content, "JPEG", quality=_QUALITY)
    return content.getvalue()
