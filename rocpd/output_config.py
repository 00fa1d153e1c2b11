"""`rocpd.output_config.output_config`, as in AMD's package. See `rocpd.amd`."""

from __future__ import annotations

from rocpd.amd import OutputConfig as output_config  # noqa: N813 (AMD's name)

__all__ = ["output_config"]
