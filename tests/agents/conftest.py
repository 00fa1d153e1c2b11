"""A small simulated job, and calls of a client that is scripted.

Tests import mcp, and the server that stands on it, where they need them: it takes a second, and each worker reads all
tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from rocpd.simulator.job import simulate
from rocpd.simulator.options import JobOptions
from rocpd.view.desk import ViewedJob
from tests.waiting import in_own_loop

if TYPE_CHECKING:
    from rocpd.agents.server import Answering

Call: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four ranks, ten steps, the planted straggler and slow step of the tour."""
    folder = tmp_path_factory.mktemp("agents") / "job"
    simulate(JobOptions(folder, ranks=4))
    return folder


@pytest.fixture(scope="session")
def answering(job: Path) -> Iterator[Answering]:
    """Who answers questions about the job."""
    from rocpd.agents.server import Answering

    made = Answering(ViewedJob((str(job),), jobs=1), limit_s=60, seats=2)
    yield made
    made.close()


@pytest.fixture
def call(answering: Answering) -> Call:
    """Call a tool as a client does; returns the document."""
    import anyio
    from mcp import Client
    from mcp.types import TextContent

    from rocpd.agents.server import server_of

    async def called(tool: str, arguments: dict[str, Any]) -> Any:
        async with Client(server_of(answering)) as client:
            said = await client.call_tool(tool, arguments)
        (content,) = said.content
        assert isinstance(content, TextContent)
        assert json.loads(content.text) == said.structured_content
        assert said.is_error is ("error" in said.structured_content)
        return said.structured_content

    return lambda tool, **arguments: in_own_loop(anyio.run, called, tool, arguments)
