"""Receivers of traces on loopback: OTLP with the headers of a setting, and X-Ray with a signature."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.aws.xray import XRayRefused
from stint.bootstrap.trace_receivers import make_otlp_receiver, make_trace_sender, make_xray_receiver
from stint.domain.known_secrets import begin_request, known_secrets
from stint.providers.otlp import TraceRefused
from stint.settings import Settings


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda _: Reply((b"{}",))) as server:
        keys = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "eu-west-1"}
        for name, value in keys.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL_XRAY", server.url)
        yield server


def otlp(server: ScriptedHTTPServer) -> Settings:
    return Settings(otlp_endpoint=server.url, otlp_headers=SecretStr("x-key=key-of-an-operator"))


async def test_a_connection_that_was_closed_meanwhile_loses_nothing(server: ScriptedHTTPServer) -> None:
    receiver = make_otlp_receiver(otlp(server))
    server.script(Reply((b"{}",)), Reply(status=0))

    await receiver.receive(b"1")
    await receiver.receive(b"2")

    assert [request.body for request in server.requests] == [b"1", b"2", b"2"]


@pytest.mark.parametrize("status", [301, 307, 400, 503])
async def test_a_refusal_is_told_by_its_status(server: ScriptedHTTPServer, status: int) -> None:
    server.script(Reply((b"key-of-an-operator",), status, {"Location": f"{server.url}/other"}))

    with pytest.raises(TraceRefused, match=f"^The receiver answered with status {status}.$"):
        await make_otlp_receiver(otlp(server)).receive(b"1")

    assert len(server.requests) == 1


async def test_the_values_of_headers_are_redacted_from_then_on(server: ScriptedHTTPServer) -> None:
    begin_request()

    await make_otlp_receiver(otlp(server)).receive(b"1")

    assert "key-of-an-operator" in known_secrets()


async def test_x_ray_gets_a_signed_request(server: ScriptedHTTPServer) -> None:
    await make_xray_receiver().receive(b"{}")

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/traces")
    assert request.headers["content-type"] == "application/json"
    assert "/eu-west-1/xray/aws4_request" in request.headers["authorization"]


async def test_x_ray_may_refuse_a_trace(server: ScriptedHTTPServer) -> None:
    server.script(Reply(status=403))

    with pytest.raises(XRayRefused, match="403"):
        await make_xray_receiver().receive(b"{}")


def test_a_stack_may_have_both_receivers(server: ScriptedHTTPServer) -> None:
    sender = make_trace_sender(Settings(otlp_endpoint=server.url, traces="xray"))

    assert [receiver.name for receiver in sender.receivers] == ["otlp", "xray"]
