"""`python -m rocpd.callstack`, as RPD's documents print it: `rocpd.rpd.callstack`."""

from __future__ import annotations

if __name__ == "__main__":
    import runpy

    runpy.run_module("rocpd.rpd.callstack", run_name="__main__")
