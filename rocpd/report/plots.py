"""Owns writing the charts of a report as pictures: one SVG and one PNG each, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

from rocpd.chart.draw import draw
from rocpd.chart.svg import svg
from rocpd.output import folder_complete_or_nothing
from rocpd.report.model import Report

NEEDS = ("resvg_py", "font_roboto")
"""What PNG needs: resvg, 4 MB, draws a chart in 10 ms; the font makes it the same on every machine."""

_ZOOM = 2.0  # pixels of a PNG by those of the chart


def write_plots(report: Report, folder: Path, force: bool = False) -> int:
    """Write all charts of a report to a folder; return how many.

    Args:
        report: the report.
        folder: new, or written by an earlier run.
        force: replace that.

    Raises:
        OutputError: the folder exists (without `force`), holds what we did not write, or cannot be written.
    """
    import font_roboto
    import resvg_py

    figures = list(report.figures())
    with folder_complete_or_nothing(folder, force) as temporary:
        for figure in figures:
            text = svg(draw(figure.chart), figure.chart.title, figure.description)
            (temporary / f"{figure.name}.svg").write_text(text, encoding="utf-8")
            png = resvg_py.svg_to_bytes(
                svg_string=text,
                zoom=_ZOOM,
                skip_system_fonts=True,
                font_files=[font_roboto.Roboto],
                font_family="Roboto",
                sans_serif_family="Roboto",
            )
            (temporary / f"{figure.name}.png").write_bytes(bytes(png))
    return len(figures)
