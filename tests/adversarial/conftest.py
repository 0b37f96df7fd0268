import os
from collections.abc import Iterator

import pytest
from infra.local.engine import Engine
from tests.adversarial.api import MeasuredApi
from tests.adversarial.pace import measure_pace

SIZES = ("STINT_MAX_REQUEST_BYTES", "STINT_MAX_FETCHED_BYTES")
"""Settings of a small function, which `make test-adversarial MEMORY=128` sets."""


@pytest.fixture(scope="session")
def pace() -> float:
    return measure_pace()


@pytest.fixture(scope="session")
def measured_api(engine: Engine) -> Iterator[MeasuredApi]:
    bus = "adversarial"
    engine.running.client("events").create_event_bus(Name=bus)
    environment = engine.environment() | {
        "STINT_EVENT_BUS": bus,
        "STINT_QUEUE_URL": engine.outputs["WorkQueueUrl"],
        "STINT_TABLE": engine.outputs["TableName"],
        "STINT_BUCKET": engine.outputs["BucketName"],
        "STINT_ALLOWED_HOSTS": "127.0.0.1",
        "STINT_AUTH": "none",
        "STINT_SCRIPTED_MODELS": "true",
        "STINT_SCRIPTED_WORD_SECONDS": "0",
        "STINT_MCP_SECONDS": "5",
        "POWERTOOLS_SERVICE_NAME": "adversarial",
    }
    environment |= {name: value for name, value in os.environ.items() if name in SIZES}
    with MeasuredApi(environment, engine.outputs) as api:
        yield api
