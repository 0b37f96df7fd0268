import gc
import io
import os
import ssl
import subprocess
import sys
from collections.abc import Generator, Iterator
from functools import cache
from typing import Any, cast

import botocore.session
import hypothesis
import pytest
from botocore.hooks import EventAliaser
from infra.local.engine import Engine
from tests.adversarial.summary import pytest_terminal_summary  # noqa: F401 - a hook
from tests.clock import CLOCK
from tests.openresponses.watch import take_complaints
from tests.servers.kms import KmsServer
from tests.shares import (  # noqa: F401 - hooks
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_ignore_collect,
    pytest_xdist_make_scheduler,
)

from stint.caller import set_end_user, set_principal, set_tenant
from stint.domain.known_secrets import begin_request
from stint.metering import set_meter
from stint.observability import make_logger

CLOCK.install()
SLOW = [hypothesis.HealthCheck.too_slow]
EXAMPLES = int(os.environ.get("EXAMPLES", "50"))
hypothesis.settings.register_profile("untimed", max_examples=EXAMPLES, deadline=None, suppress_health_check=SLOW)
hypothesis.settings.load_profile("untimed")
# The tests create thousands of clients. Without the caches, each would read megabytes of JSON and the certificates, and
# derive the names of hundreds of events.
botocore.session.create_loader = cache(botocore.session.create_loader)
aliaser = cast("Any", EventAliaser)
aliaser._alias_event_name = staticmethod(cache(aliaser(None)._alias_event_name))
ssl.create_default_context = cast("Any", cache(ssl.create_default_context))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import the tests without garbage collections. Later ones exclude all objects of then, and are less frequent."""
    gc.disable()
    collected = yield
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
    return collected


@pytest.fixture(autouse=True)
def forget_request() -> Iterator[None]:
    """End each test without its caller and its secrets, which the next one would act for, and redact from texts."""
    yield
    begin_request()
    set_principal(None)
    set_end_user(None)
    set_tenant("")
    set_meter(None)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """Run the local AWS engine with the data resources. It is empty at first and shared; each test has its own tenant.

    `engine.outputs` has TableName and BucketName, `engine.environment()` the variables that point clients to it.
    """
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def empty_engine() -> Iterator[Engine]:
    """Run an engine for a module whose tests use the default tenant: others may have left registrations in it."""
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="session")
def mcp_server() -> Iterator[str]:
    """Yield the base URL of a real MCP server in a separate process."""
    process = subprocess.Popen([sys.executable, "-m", "tests.servers.mcp_server"], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.communicate()


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[KmsServer]:
    """Yield a KMS that the clients of this test use."""
    with KmsServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield server


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Yield the stream to which the product's logger writes."""
    handler: Any = make_logger().registered_handler
    stream = io.StringIO()
    before = handler.setStream(stream)
    yield stream
    handler.setStream(before)


@pytest.fixture(autouse=True)
def _answers_keep_their_contract() -> Iterator[None]:
    """Check every exchange with the Responses API against Open Responses and OpenAI's types."""
    yield
    complaints = take_complaints()
    assert not complaints, "\n".join(complaints)
