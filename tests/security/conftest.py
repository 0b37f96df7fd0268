from collections.abc import Iterator

import pytest
from infra.local.engine import Engine
from tests.security.stack import Stack
from tests.security.summary import pytest_unconfigure  # noqa: F401 - a hook

PUBLIC = "public.example"
"""A host that callers' URLs may name although it is on loopback. The servers of attackers have it."""


@pytest.fixture(scope="session")
def stack(engine: Engine) -> Iterator[Stack]:
    """Yield the API behind its authorizer."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine.environment().items():
            patch.setenv(name, value)
        with Stack(engine, {"STINT_ALLOWED_HOSTS": PUBLIC}) as stack:
            with stack.client(stack.create_key("warm").key) as http:
                http.get("/v1/openapi.json")
            yield stack
