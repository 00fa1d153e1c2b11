"""`from rocpd.importer import RocpdImportData`, as in AMD's package. See `rocpd.amd`."""

from __future__ import annotations

from rocpd.amd import RocpdImportData

__all__ = ["RocpdImportData"]
