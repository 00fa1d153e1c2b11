"""Owns what AMD's interface opens files with, and which version it says that it has."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from types import MappingProxyType

from rocpd.federate.connect import Inputs
from rocpd.federate.result import Rows
from rocpd.session import Session, connect
from rocpd.version import __version__

_NUMBERS = tuple(int(number) for number in __version__.split(".")[:3])

version_info: Mapping[str, str | int] = MappingProxyType(
    {
        "version": __version__,
        **dict(zip(("major", "minor", "patch"), _NUMBERS, strict=True)),
        "git_revision": "",
        "library_arch": platform.machine(),
        "system_name": platform.system(),
        "system_processor": platform.machine(),
        "system_version": platform.release(),
        "compiler_id": "",
        "compiler_version": "",
        "rocm_version": "",
    }
)
"""The keys of AMD's; what only a build against ROCm has is empty."""


class RocpdImportData(Session):
    """A session under AMD's name: `execute` and `cursor` answer SQL over all files.

    Args:
        input: files, folders, packages, or a session, whose files are then shared and closed by it.

    Raises:
        InputError: no file matches, or one cannot be used.
    """

    def __init__(self, input: Inputs | Session, **_without_effect: object) -> None:
        is_session = isinstance(input, Session)
        opened = input if isinstance(input, Session) else connect(input)
        super().__init__(opened.job, opened.selection, opened.notes, owns_files=not is_session)


def execute(data: Session, *statement: str) -> Rows:
    """Run SQL, as `data.execute`."""
    return data.execute(*statement)
