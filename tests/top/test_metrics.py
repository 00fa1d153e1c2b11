"""OpenMetrics of a running job."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from rocpd.base import OutputError, UsageError
from rocpd.top.glance import Glance, JobState
from rocpd.top.metrics import MetricsServer, address_of, open_metrics
from tests.top.made import GLANCE


def _samples(glance: Glance) -> dict[str, float]:
    lines = "".join(open_metrics(glance)).splitlines()
    assert lines[-1] == "# EOF"
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_what_is_known_is_a_sample() -> None:
    samples = _samples(GLANCE)
    assert samples["rocpd_step_seconds"] == 0.02
    assert samples["rocpd_usual_step_seconds"] == 0.01
    assert samples['rocpd_part_ratio{part="compute"}'] == 0.7
    assert samples['rocpd_busy_ratio{rank="4",host="node17"}'] == 0.9
    assert samples['rocpd_blame_seconds{rank="4",host="node17",cause="compute"}'] == 0.002
    assert samples['rocpd_blame_seconds{rank="0",host="node3",cause=""}'] == 0
    assert samples['rocpd_memory_bytes{rank="0",host="node3"}'] == 2**30
    assert samples['rocpd_silent_seconds{rank="0",host="node3"}'] == 42


def test_what_is_not_known_is_none() -> None:
    assert _samples(Glance(0.0, JobState.WAITING)) == {"rocpd_running": 0}


def test_a_server_answers_scrapes_with_the_last_glance() -> None:
    with MetricsServer("127.0.0.1", 0) as server:
        server.show(GLANCE)
        with urllib.request.urlopen(server.address) as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
            assert answer.read().decode() == "".join(open_metrics(GLANCE))
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.address.replace("/metrics", "/other"))
        with pytest.raises(OutputError, match="--metrics"):
            MetricsServer(*address_of(server.address.split("/")[2]))


@pytest.mark.parametrize("text", ["", "here", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not an address"):
        address_of(text)
