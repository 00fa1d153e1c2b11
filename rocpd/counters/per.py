"""Owns what amounts are counted per; imports no numpy, so that help is quick."""

from __future__ import annotations

import enum


class Per(enum.StrEnum):
    """What amounts are counted per: a dispatch of the kernel, a wave of it, a cycle or a second of its time."""

    KERNEL = "kernel"
    WAVE = "wave"
    CYCLE = "cycle"
    SECOND = "second"
