"""`python -m rocpd.autograd`, as RPD's documents print it: `rocpd.rpd.autograd`."""

from __future__ import annotations

if __name__ == "__main__":
    import runpy

    runpy.run_module("rocpd.rpd.autograd", run_name="__main__")
