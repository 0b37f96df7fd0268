import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import Engine
from tests.adversarial.api import MeasuredApi
from tests.adversarial.case import CASES
from tests.adversarial.pace import measure_pace
from tests.adversarial.selection import SAMPLE, SHARES, VARIABLE, Selection, choose
from tests.adversarial.sizes import MEGABYTES
from tests.commit import commit_number

SIZES = ("STINT_MAX_REQUEST_BYTES", "STINT_MAX_FETCHED_BYTES")
"""Settings of a small function, which `make test-adversarial MEMORY=128` sets."""

FOLDER = Path(__file__).parent
if os.environ.get(VARIABLE) == SAMPLE:  # workers inherit it, also if somebody commits while the tests run
    os.environ[VARIABLE] = str(commit_number() % SHARES)
SELECTION = pytest.StashKey[Selection]()


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Deselect the cases that are not in the sample."""
    selection = config.stash.setdefault(SELECTION, choose())
    others = [item for item in items if item.path.parent == FOLDER and not selection.has(file_of(item), item.nodeid)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


def file_of(item: pytest.Item) -> str:
    """Return the name of the file with the case of a test, without its suffix."""
    callspec: Any = getattr(item, "callspec", None)
    made: Callable[..., object] | None = CASES.get(callspec.params.get("name", "")) if callspec else None
    while isinstance(made, partial):
        made = made.func
    return made.__module__.rpartition(".")[2] if made else item.path.stem


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print what the run included, and how to repeat it."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not hasattr(config, "workerinput") and VARIABLE in os.environ:
        reporter.line(f"hostile cases: {config.stash.get(SELECTION, None) or choose()}")


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
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(MEGABYTES),
    }
    environment |= {name: value for name, value in os.environ.items() if name in SIZES}
    with MeasuredApi(environment, engine.outputs) as api:
        yield api
