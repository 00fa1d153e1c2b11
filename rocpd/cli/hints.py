"""Where a word leads that is no command and no analysis: to what its user meant. Imports the registries when asked."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping

from rocpd.base import entries

MEANT: Mapping[str, str] = {
    "help": "rocpd --help",
    "version": "rocpd --version",
    "why": "rocpd advise JOB",
    "bottleneck": "rocpd advise JOB",
    "fix": "rocpd advise JOB",
    "slow": "rocpd summary JOB",
    "stat": "rocpd summary JOB",
    "analyze": "rocpd summary --list",
    "slow-rank": "rocpd summary stragglers waits JOB",
    "straggler": "rocpd summary stragglers waits JOB",
    "wait": "rocpd summary stragglers waits JOB",
    "sync": "rocpd summary stragglers waits JOB",
    "barrier": "rocpd summary stragglers waits JOB",
    "slow-step": "rocpd summary steps JOB",
    "nccl": "rocpd summary communication overlap JOB",
    "rccl": "rocpd summary communication overlap JOB",
    "gpu": "rocpd summary gpu-time JOB",
    "utilization": "rocpd summary gpu-time JOB",
    "latency": "rocpd summary launch JOB",
    "gap": "rocpd summary idle largest-gaps JOB",
    "dataloader": "rocpd summary idle JOB",
    "leak": "rocpd summary allocation-sites memory-steps JOB",
    "oom": "rocpd summary memory allocation-sites JOB",
    "copy": "rocpd summary copies copy-pairs JOB",
    "memcpy": "rocpd summary copies copy-pairs JOB",
    "bandwidth": "rocpd summary copies copy-pairs JOB",
    "topdown": "rocpd summary speed-of-light JOB",
    "metric": "rocpd summary speed-of-light JOB",
    "power": "rocpd summary kernel-samples JOB",
    "torch": "rocpd summary operators JOB",
    "pytorch": "rocpd summary operators JOB",
    "flame": "rocpd summary calls JOB -o flame.speedscope.json",
    "flamegraph": "rocpd summary calls JOB -o flame.speedscope.json",
    "compare": "rocpd diff BASE NEW",
    "regression": "rocpd diff BASE NEW",
    "top": "rocpd summary kernels JOB",
    "sql": 'rocpd query "select * from top_kernels" JOB',
    "timeline": "rocpd view JOB",
    "gui": "rocpd view JOB",
    "open": "rocpd view JOB",
    "html": "rocpd report JOB -o report.html",
    "pdf": "rocpd report JOB -o report.pdf",
    "excel": "rocpd report JOB -o report.xlsx",
    "export": "rocpd convert JOB --format csv",
    "csv": "rocpd convert JOB --format csv",
    "trace": "rocpd convert JOB --format pftrace",
    "perfetto": "rocpd convert JOB --format pftrace",
    "chrome": "rocpd convert JOB --format json",
    "anonymize": "rocpd redact JOB -d DIR",
    "profile": "rocpd record -o JOB -- COMMAND",
    "run": "rocpd record -o JOB -- COMMAND",
}
"""Word of users and other tools, without the s of a plural -> the command line here."""


_JOB = re.compile(r"(?<!-o )JOB")


def filled(hint: str, words: Iterable[str]) -> str:
    """Return a hint with the inputs among the words of a command line as its job."""
    inputs = shlex.join(word for word in words if os.path.lexists(word))
    return _JOB.sub(lambda _: inputs, hint) if inputs else hint


def meant_by(word: str, known: Iterable[str], otherwise: str, commands: Iterable[str] = ()) -> str:
    """Return the hint for a word that is not known where it stands.

    Args:
        word: as the user has it.
        known: what could stand there.
        otherwise: the hint where nothing is like the word, and no question has it.
        commands: names of commands, where none of them could stand.
    """
    word = word.lower().replace("_", "-")
    if line := MEANT.get(word) or MEANT.get(word.removesuffix("s")):
        return line
    if word in commands:
        return f"rocpd {word} --help"
    if hint := entries.near(word, known, ""):
        return hint
    from rocpd.agents.pages import rows_of_questions
    from rocpd.summary.registry import known_analyses, tables_of

    tables = tables_of(known_analyses())
    if word in tables:
        return f"rocpd summary {word} JOB"
    if near := entries.closest(word, tables):
        return f"rocpd summary {near[0]} JOB"
    return f"rocpd questions {word}" if any(word in " ".join(row).lower() for row in rows_of_questions()) else otherwise
