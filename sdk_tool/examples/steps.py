"""A program with ranges, to try recording on: `rocpd record -o job -- python sdk_tool/examples/steps.py`."""

from __future__ import annotations

import threading

from rocpd import record


@record.range("load")
def load(n: int) -> list[float]:
    """Make some data."""
    return [float(i % 97) for i in [*[0] * n, *[1] * n]]


def step(data: list[float]) -> float:
    """Work on it."""
    with record.range("step"):
        with record.range("forward"):
            total = sum(x * x for x in data)
        with record.range("backward"):
            total -= sum(x for x in data)
        record.mark("loss")
    return total


def main() -> None:
    """Run some steps in two threads."""
    data = load(2000)
    helper = threading.Thread(target=step, args=(data,))
    helper.start()
    for _ in [0] * 20:
        step(data)
    helper.join()


if __name__ == "__main__":
    main()
