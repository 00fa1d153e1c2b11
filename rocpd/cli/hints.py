"""Hints for unknown commands and analyses: the command that the user meant. Imports registries on demand."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping

from rocpd.base import entries

_LINES = {
    "rocpd --help": "help",
    "rocpd --version": "version",
    "rocpd advise JOB": "why bottleneck fix",
    "rocpd summary JOB": "slow stat",
    "rocpd summary --list": "analyze",
    "rocpd summary stragglers waits JOB": "slow-rank straggler wait sync barrier",
    "rocpd summary steps JOB": "slow-step",
    "rocpd summary communication overlap JOB": "nccl rccl",
    "rocpd summary gpu-time JOB": "gpu utilization",
    "rocpd summary launch JOB": "latency",
    "rocpd summary idle largest-gaps JOB": "gap",
    "rocpd summary idle JOB": "dataloader",
    "rocpd summary allocation-sites memory-steps JOB": "leak",
    "rocpd summary memory allocation-sites JOB": "oom",
    "rocpd summary copies copy-pairs JOB": "copy memcpy bandwidth",
    "rocpd summary speed-of-light JOB": "topdown metric",
    "rocpd summary kernel-samples JOB": "power",
    "rocpd summary operators JOB": "torch pytorch",
    "rocpd summary calls JOB -o flame.speedscope.json": "flame flamegraph",
    "rocpd diff BASE NEW": "compare regression",
    "rocpd summary kernels JOB": "top",
    'rocpd query "select * from top_kernels" JOB': "sql",
    "rocpd view JOB": "timeline gui open",
    "rocpd report JOB -o report.html": "html",
    "rocpd report JOB -o report.pdf": "pdf",
    "rocpd report JOB -o report.xlsx": "excel",
    "rocpd convert JOB --format csv": "export csv",
    "rocpd convert JOB --format pftrace": "trace perfetto",
    "rocpd convert JOB --format json": "chrome",
    "rocpd redact JOB -d DIR": "anonymize",
    "rocpd record -o JOB -- COMMAND": "profile run",
}
MEANT: Mapping[str, str] = {word: line for line, words in _LINES.items() for word in words.split()}
"""Word of users and other tools, without the s of a plural -> the matching command line here."""


_JOB = re.compile(r"(?<!-o )JOB")


def filled(hint: str, words: Iterable[str]) -> str:
    """Return a hint whose job is replaced by the inputs among the words of a command line."""
    inputs = shlex.join(word for word in words if os.path.lexists(word))
    return _JOB.sub(lambda _: inputs, hint) if inputs else hint


def meant_by(word: str, known: Iterable[str], otherwise: str, commands: Iterable[str] = ()) -> str:
    """Return the hint for an unknown word.

    Args:
        word: as the user wrote it.
        known: words that are allowed in its place.
        otherwise: the hint where no known word is similar, and no question contains it.
        commands: names of commands, in a place where they are not allowed.
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
