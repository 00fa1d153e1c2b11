"""Writes one store from many processes at once, kills most of them, and says what the store has then."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

from rocpd.history import store
from tests.history.runs import FIRST, run_of

_RUNS = 40  # of a writer


def write(folder: Path, writer: int, pipe: int) -> None:
    """Add runs, some of which others add too, and say of each that it is there."""
    for n in range(_RUNS):
        number = n if n % 4 == 0 else writer * 1000 + n
        store.add(folder, [run_of(number)], {"writer": f"{writer}.{n}"} if n % 4 else {}, FIRST + number)
        os.write(pipe, b"%d\n" % number)
    os._exit(0)


def main(folder: Path, count: int) -> None:
    """Start writers, kill two of three at random, read meanwhile, and print what is lost or wrong."""
    reading, writing = os.pipe()
    writers = []
    for writer in range(1, count + 1):
        if not (child := os.fork()):
            write(folder, writer, writing)
        writers.append(child)
    os.close(writing)
    chosen = random.Random(1)
    victims = chosen.sample(writers, len(writers) * 2 // 3)
    said, problems = b"", set()
    while block := os.read(reading, 1 << 12):
        said += block
        if victims and chosen.random() < 0.5:
            os.kill(victims.pop(), signal.SIGKILL)
        if chosen.random() < 0.2:
            problems |= set(store.read(folder).problems)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in writers]
    known = {int(entry.name.removeprefix("run")) for entry in store.read(folder).entries}
    problems |= set(store.read(folder).problems)
    added = {int(line) for line in said.split(b"\n")[:-1]}
    killed = sum(code == -signal.SIGKILL for code in codes)
    result = {"added": len(added), "killed": killed, "lost": sorted(added - known), "problems": sorted(problems)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
