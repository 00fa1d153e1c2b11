"""Runs the command line of this checkout in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def cli_command(*arguments: str) -> list[str]:
    """Return the command that runs `rocpd` with `arguments`."""
    return [sys.executable, "-m", "rocpd", *arguments]


def cli(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `rocpd` in `folder`, to its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROCPD_")}
    return subprocess.run(
        cli_command(*arguments),
        cwd=folder,
        env=environment | more,
        capture_output=True,
        text=True,
        check=False,
    )
