import gc
import io
import os
import ssl
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import botocore.session
import hypothesis
import pytest
from infra.local.engine import Engine
from tests.adversarial.summary import pytest_terminal_summary  # noqa: F401 - a hook
from tests.clock import CLOCK
from tests.openresponses.watch import take_complaints

from stint.observability import make_logger

CLOCK.install()
SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=SLOW)
hypothesis.settings.load_profile("untimed")
# Clients are made by the thousand here, each of which would read megabytes of JSON and the same certificates again.
botocore.session.create_loader = cache(botocore.session.create_loader)
ssl.create_default_context = cast("Any", cache(ssl.create_default_context))
os.environ["STINT_SCRIPTED_MODELS"] = "true"
"""As in the local cloud. Processes that tests start get none of this environment (see `clean_shell`)."""


def pytest_collection_finish() -> None:
    """Take what the tests hold from now on out of every garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The local AWS engine with the data resources, empty at first and shared: tests keep apart by tenant.

    `engine.outputs` holds TableName and BucketName, `engine.environment()` what points clients at it.
    """
    with Engine() as engine:
        yield engine


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the product's logger writes."""
    handler: Any = make_logger().registered_handler
    stream = io.StringIO()
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)


@pytest.fixture(autouse=True)
def _answers_keep_their_contract() -> Iterator[None]:
    """Whatever a test asks of the Responses API is held against Open Responses and OpenAI's types."""
    yield
    complaints = take_complaints()
    assert not complaints, "\n".join(complaints)
