"""Owns a chart that somebody holds in hand: a notebook shows it, and it can be saved."""

from __future__ import annotations

from pathlib import Path

from rocpd.chart.draw import draw
from rocpd.chart.model import Chart
from rocpd.chart.svg import svg


class Plot:
    """A chart. A notebook shows it; `.svg` is its text, `.save(path)` writes a file.

    Attributes:
        chart: what it shows, as data.
    """

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    @property
    def svg(self) -> str:
        """The chart as SVG."""
        return svg(draw(self.chart), self.chart.title)

    def save(self, path: str | Path) -> Path:
        """Write the chart as SVG; return the path."""
        path = Path(path)
        path.write_text(self.svg, encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        """Say what it is."""
        return f"<chart: {self.chart.title}>"
