"""A running job as OpenMetrics text, times in seconds and shares from 0 to 1, and a server for scrapes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rocpd.base import OutputError, UsageError
from rocpd.table.openmetrics import END, KIND, MetricSample, family
from rocpd.top.glance import Glance, JobState

_LOOPBACK = "127.0.0.1"


def open_metrics(glance: Glance) -> Iterator[str]:
    """Yield the lines of OpenMetrics text."""
    last = glance.steps[-1] if glance.steps else None
    usual = glance.usual_ns
    yield from family("rocpd_running", "", "1 while the job runs.", _one(float(glance.state is JobState.RUNNING)))
    number, length = (float(last.number), last.mean_ns / 1e9) if last else (None, None)
    yield from family("rocpd_step", "", "Number of the newest step.", _one(number))
    yield from family("rocpd_step_seconds", "seconds", "How long it took.", _one(length))
    usually = "How long a step took, the median of the last minutes."
    yield from family("rocpd_usual_step_seconds", "seconds", usually, _one(usual and usual / 1e9))
    parts = [MetricSample({"part": part}, share / 100) for part, share in glance.parts.items()]
    yield from family("rocpd_part_ratio", "ratio", "Share of the time of GPUs.", parts)
    ranks = [(rank, {"rank": str(rank.rank), "host": rank.host}) for rank in glance.ranks if rank.rank is not None]
    busy = (MetricSample(about, 1 - rank.parts.get("idle", 0.0) / 100) for rank, about in ranks if rank.parts)
    yield from family("rocpd_busy_ratio", "ratio", "Share of its time in which a GPU works.", busy)
    costs = (
        MetricSample({**about, "cause": rank.mainly}, (rank.cost_ns or 0.0) / 1e9 if rank.is_straggler else 0.0)
        for rank, about in ranks
    )
    yield from family("rocpd_blame_seconds", "seconds", "What a rank costs of a step.", costs)
    held = (MetricSample(about, rank.memory_bytes) for rank, about in ranks)
    yield from family("rocpd_memory_bytes", "bytes", "Most memory that a rank held.", held)
    silent = (MetricSample(about, rank.silent_s) for rank, about in ranks)
    yield from family("rocpd_silent_seconds", "seconds", "Since when nothing has come of a rank.", silent)
    yield END


def _one(value: float | None) -> list[MetricSample]:
    return [MetricSample({}, value)]


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of an address; without a host only this machine can connect.

    >>> address_of("127.0.0.1:9400"), address_of(":9400"), address_of("9400"), address_of("[::1]:9400")
    (('127.0.0.1', 9400), ('127.0.0.1', 9400), ('127.0.0.1', 9400), ('::1', 9400))

    Raises:
        UsageError: it is not an address.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise UsageError(f"--metrics {text}: not an address", "such as 127.0.0.1:9400")
    return host.strip("[]") or _LOOPBACK, int(port)


class MetricsServer:
    """Answers scrapes with the last glance, in a separate thread. To be used in a `with` block.

    Args:
        host, port: address; 0: any free port.

    Raises:
        OutputError: the address cannot be bound.
    """

    def __init__(self, host: str, port: int) -> None:
        self._text = END
        server = self

        class Handler(BaseHTTPRequestHandler):
            """Answers with the text."""

            def do_GET(self) -> None:
                """Answer a scrape."""
                is_known = self.path.partition("?")[0] in ("/metrics", "/")
                content = server._text.encode() if is_known else b"/metrics\n"
                self.send_response(HTTPStatus.OK if is_known else HTTPStatus.NOT_FOUND)
                self.send_header("Content-Type", KIND if is_known else "text/plain")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                """Stay quiet."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise OutputError(f"--metrics {host}:{port}: {error}", "choose another port") from error
        self.address = f"http://{host}:{self._server.server_address[1]}/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def show(self, glance: Glance) -> None:
        """Answer with this glance from now on."""
        self._text = "".join(open_metrics(glance))
