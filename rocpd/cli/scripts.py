"""AMD's other entries: `rocpd2csv` and `python -m rocpd.csv` are `rocpd convert -f csv`, and so on."""

from __future__ import annotations

from functools import partial


def _run(*words: str) -> None:
    from rocpd.cli import start

    start(*words)


rocpd2csv = partial(_run, "convert", "--output-format", "csv")
rocpd2pftrace = partial(_run, "convert", "--output-format", "pftrace")
rocpd2otf2 = partial(_run, "convert", "--output-format", "otf2")
rocpd2summary = partial(_run, "summary", "--amd")
query = partial(_run, "query")
merge = partial(_run, "merge")
package = partial(_run, "package")
