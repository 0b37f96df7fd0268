"""A model of Bedrock whose endpoint is a fake runtime on loopback."""

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.servers.converse_stream import ConverseStreamServer

from stint.models.bedrock.model import Bedrock
from stint.providers.bedrock.client import connect

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ConverseStreamServer]:
    with ConverseStreamServer() as server:
        yield server


@pytest.fixture
def aws(endpoint: ConverseStreamServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", endpoint.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.fixture(scope="module")
def shared() -> dict[str, "BedrockRuntimeClient"]:
    return {}


@pytest.fixture
def client(aws: None, shared: dict[str, "BedrockRuntimeClient"]) -> "BedrockRuntimeClient":
    if "client" not in shared:
        shared["client"] = connect("eu-central-1")
    return shared["client"]


@pytest.fixture
def model(client: "BedrockRuntimeClient") -> Bedrock:
    return Bedrock(lambda: client)


@pytest.fixture
def server(endpoint: ConverseStreamServer) -> Iterator[ConverseStreamServer]:
    endpoint.forget()
    yield endpoint
    assert_no_threads()


def assert_no_threads() -> None:
    deadline = time.monotonic() + 30
    while names := [thread.name for thread in threading.enumerate() if thread.name.startswith("bedrock")]:
        assert time.monotonic() < deadline, f"threads are left: {names}"
        time.sleep(0.005)
