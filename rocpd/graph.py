"""`python -m rocpd.graph`, as RPD's documents print it: `rocpd.rpd.graph`."""

from __future__ import annotations

if __name__ == "__main__":
    import runpy

    runpy.run_module("rocpd.rpd.graph", run_name="__main__")
