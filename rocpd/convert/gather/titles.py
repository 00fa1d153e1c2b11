"""What viewers call kernels and copies: short names, those of kernels shortened together over all ranks."""

from __future__ import annotations

from rocpd.facts.columns import as_text
from rocpd.facts.short_names import short_names
from rocpd.federate.federation import Federation
from rocpd.federate.run.rank_reader import RankReader
from rocpd.schema.rules.kernel_names import shown_name

_COPIES = {
    f"MEMORY_COPY_{source}_TO_{to}": f"{source[0]}2{to[0]}"
    for source in ("HOST", "DEVICE")
    for to in ("HOST", "DEVICE")
}
_DISPATCHED = """SELECT id, display_name, kernel_name FROM rocpd_info_kernel_symbol
WHERE id IN (SELECT kernel_id FROM rocpd_kernel_dispatch)"""


def titles_of_job(session: Federation) -> dict[str, str]:
    """Return full name -> title of copies and of the kernels that ran on any rank, where the title is another."""
    names = {name for _, of_rank in session.map_ranks(_names) for name in of_rank}
    return _COPIES | {name: short for name, short in short_names(sorted(names)).items() if short != name}


def _names(reader: RankReader) -> list[str]:
    return [shown_name(number, *map(as_text, names)) for number, *names in reader.rows(_DISPATCHED)]
