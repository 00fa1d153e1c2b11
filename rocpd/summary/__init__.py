"""Summaries and analyses: one file each, listed in `names.SUMMARIES`, exact over all ranks.

The package can be called, since `rocpd.summary(session, "kernels")` and the package share a name.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocpd.summary.result import Summary


class _Callable(types.ModuleType):
    def __call__(self, *args: object, **options: object) -> Summary:
        from rocpd.summary.run import summary

        return summary(*args, **options)  # type: ignore[arg-type]


sys.modules[__name__].__class__ = _Callable
