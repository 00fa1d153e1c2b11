"""Values as bytes: a single object until they are needed, or until another process gets them."""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
from typing import Any, BinaryIO

_PROTOCOL = 5  # arrays are not copied to be written
_SHORT = 1 << 12  # size of a short column [bytes]


def packed(value: object) -> bytes:
    """Return a value as bytes, from which `unpacked` makes an equal value."""
    content = io.BytesIO()
    pack(value, content)
    return content.getvalue()


def pack(value: object, file: BinaryIO) -> None:
    """Pickle a value, with short columns as bytes: a rank may have hundreds, and numpy pickles them half as fast."""
    pickler = pickle.Pickler(file, _PROTOCOL)
    if numpy := sys.modules.get("numpy"):  # else there are no columns
        pickler.dispatch_table = {**copyreg.dispatch_table, numpy.ndarray: _reduced}
    pickler.dump(value)


unpacked = pickle.loads


def _reduced(column: Any) -> Any:
    if column.ndim != 1 or column.dtype.hasobject or column.nbytes > _SHORT:
        return column.__reduce_ex__(_PROTOCOL)
    return _column, (column.dtype, column.tobytes())


def _column(kind: Any, content: bytes) -> Any:
    import numpy as np

    return np.frombuffer(content, kind).copy()  # a view of a few numbers would keep three times their memory alive
