"""Colours are told apart by people who see red and green alike, and every category of kernels has one of its own."""

import json
from importlib.resources import files
from itertools import combinations

from rocpd.table.palette import COLOURS, Colour, colour_of, on_scale

_LEAST = 50  # distance of two colours in the space of Machado's matrix, of 441

# Machado, Oliveira, Fernandes 2009, severity 1.0.
_SEEN_BY = {
    "protanope": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranope": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def _seen(colour: Colour, matrix: tuple[tuple[float, ...], ...]) -> list[float]:
    return [sum(part * value for part, value in zip(row, colour, strict=True)) for row in matrix]


def _categories() -> list[str]:
    built_in = files("rocpd.schema.rules") / "data" / "categories.json"
    return [*json.loads(built_in.read_text(encoding="utf-8")), "other"]


def test_every_category_has_a_colour_of_its_own() -> None:
    colours = [COLOURS[name] for name in _categories()]
    assert len(set(colours)) == len(colours)


def test_colours_of_categories_differ_to_the_colour_blind() -> None:
    for matrix in _SEEN_BY.values():
        seen = {name: _seen(COLOURS[name], matrix) for name in _categories()}
        for (one, a), (other, b) in combinations(seen.items(), 2):
            assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 > _LEAST, (one, other)


def test_a_name_that_is_none_of_ours_keeps_its_colour() -> None:
    assert colour_of("my category") == colour_of("my category") != colour_of("other")
    assert colour_of("\ud800")


def test_brightness_grows_along_the_scale() -> None:
    brightness = [0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue for c in (on_scale(i / 50) for i in range(51))]
    assert brightness == sorted(brightness)
