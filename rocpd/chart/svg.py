"""Drawings as SVG: with a name and a description for those who cannot see them, and a tip for those who point."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from rocpd.base.visible import visible
from rocpd.chart.draw import SIZE, Dot, Drawing, Pixels, Rect, Shape, Stroke, Word
from rocpd.table.palette import GREY

_FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"


def svg(drawing: Drawing, title: str, description: str = "", *, is_alone: bool = True) -> str:
    """Return a drawing as an SVG element.

    Args:
        drawing: the chart.
        title: its name.
        description: what it says.
        is_alone: whether it is a file of its own: on white, with a font of its own; else it has the font and the colour
            of the text around it.
    """
    width, height = _n(drawing.width), _n(drawing.height)
    alone = (
        f' xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" color="#222"'
        f' font-family="{_FONT}" font-size="{_n(SIZE)}"'
        if is_alone
        else ""
    )
    parts = [f'<svg role="img" viewBox="0 0 {width} {height}" fill="currentColor"{alone} aria-label="{_text(title)}">']
    parts.append(f"<title>{_text(title)}</title>")
    parts += [f"<desc>{_text(description)}</desc>"] if description else []
    parts += ['<rect width="100%" height="100%" fill="#fff"/>'] if is_alone else []
    parts += map(_shape, drawing.shapes)
    return "\n".join([*parts, "</svg>\n"])


def _shape(shape: Shape) -> str:
    match shape:
        case Rect():
            opacity = f' opacity="{shape.opacity}"' if shape.opacity < 1 else ""
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            return _with_tip(f'<rect {place} fill="{shape.colour.hex}"{opacity}', "rect", shape.tip)
        case Stroke():
            points = " ".join(f"{_n(x)},{_n(y)}" for x, y in shape.points)
            look = f'fill="none" stroke="{shape.colour.hex}" stroke-width="{_n(shape.width)}"'
            look += ' opacity="0.4"' if shape.colour == GREY else ""  # lines of a grid
            return _with_tip(f'<polyline points="{points}" {look}', "polyline", shape.tip)
        case Dot():
            place = f'cx="{_n(shape.x)}" cy="{_n(shape.y)}" r="{_n(shape.radius)}"'
            return _with_tip(f'<circle {place} fill="{shape.colour.hex}"', "circle", shape.tip)
        case Word():
            anchor = f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
            faint = ' opacity="0.8"' if shape.is_faint else ""
            tick = ' data-tick=""' if shape.is_tick else ""
            return f'<text x="{_n(shape.x)}" y="{_n(shape.y)}"{anchor}{faint}{tick}>{_text(shape.text)}</text>'
        case Pixels():
            place = f'x="{_n(shape.x)}" y="{_n(shape.y)}" width="{_n(shape.width)}" height="{_n(shape.height)}"'
            size = f'width="{shape.columns}" height="{shape.rows}" preserveAspectRatio="none"'
            data = b64encode(shape.png).decode()
            image = f'<image {size} image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
            box = f'viewBox="0 0 {shape.columns} {shape.rows}" preserveAspectRatio="none"'
            return f"<svg {place} {box}>{image}</svg>"


def _with_tip(start: str, element: str, tip: str) -> str:
    return f"{start}><title>{_text(tip)}</title></{element}>" if tip else f"{start}/>"


def _text(text: str) -> str:
    return escape(visible(text))


def _n(value: float) -> str:
    """Return a number with one digit after the point, none where it is 0."""
    return f"{value:.1f}".removesuffix(".0")


_BAR, _TALL = 4, 16  # px


def spark_svg(counts: Sequence[int], title: str) -> str:
    """Return counts as a small SVG element; `title` has no markup in it."""
    most = max(counts, default=0) or 1
    heights = [max(1, round(count * _TALL / most)) if count else 0 for count in counts]
    data = "".join(f"M{x * _BAR} {_TALL - h}h3v{h}h-3z" for x, h in enumerate(heights) if h)
    size = f'width="{len(counts) * _BAR}" height="{_TALL}"'
    return f'<svg role="img" class="spark" aria-label="{title}" {size}><title>{title}</title><path d="{data}"/></svg>'
