"""Bedrock's endpoints of OpenAI's APIs: signatures, paths by model, and APIs by model. Not tried on AWS."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from tests.clock import CLOCK
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import EVENT_STREAM
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.bootstrap.adapters import Adapters
from stint.domain.errors import InvalidRequest, ModelUnauthorized
from stint.domain.inference import InferenceRequest, TextChunk, UserInput
from stint.models.bedrock_openai.endpoints import BedrockEndpoint
from stint.models.openai_compatible import OpenAICompatible
from stint.settings import read_settings

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI", "session-token"


def is_signed(received: Received, service: str, region: str = "us-east-2") -> bool:
    """Return whether botocore signs the request in the same way."""
    names = received.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    request = AWSRequest("POST", f"http://{received.headers['host']}{received.path}", data=received.body)
    request.context["timestamp"] = received.headers["x-amz-date"]
    for name in names:
        request.headers[name] = received.headers[name]
    signer = SigV4Auth(BotoCredentials(KEY, SECRET, TOKEN), service, region)
    scope = signer.string_to_sign(request, signer.canonical_request(request))
    return signer.signature(scope, request) in received.headers["authorization"]


class Bedrock(ScriptedHTTPServer):
    """A server that has each model at one operation, and refuses it at others in Bedrock's words."""

    def __init__(self, service: str, **places: str) -> None:
        super().__init__(self.answer)
        self.service, self.places = service, {name.replace("_", "."): path for name, path in places.items()}
        self.paths: list[str] = []

    def answer(self, received: Received) -> Reply:
        self.paths.append(received.path)
        if not is_signed(received, self.service):
            return chat.error(403, "The request signature we calculated does not match")
        model, body = received.json()["model"], received.json()
        if self.places.get(model.replace("-", ".")) != received.path:
            return chat.error(400, f"model `{model}` isn't supported on this route", code="validation_error")
        if received.path.endswith("/chat/completions"):
            return chat.stream({"content": "by chat"})
        assert body["store"] is False
        return response("by responses")


def response(text: str) -> Reply:
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    done = {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    return Reply((f"data: {json.dumps(done)}\n\n".encode(),), headers=EVENT_STREAM)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


@pytest.fixture
def runtime() -> Iterator[Bedrock]:
    places = {"openai_gpt_5_5": "/openai/v1/responses", "openai_gpt_oss_120b": "/openai/v1/chat/completions"}
    with Bedrock("bedrock", **places) as server:
        yield server


@pytest.fixture
def mantle() -> Iterator[Bedrock]:
    places = {
        "openai_gpt_5_5": "/openai/v1/responses",
        "openai_gpt_oss_120b": "/v1/chat/completions",
        "some_newcomer": "/openai/v1/responses",
    }
    with Bedrock("bedrock-mantle", **places) as server:
        yield server


def connect(server: ScriptedHTTPServer, **fields: Any) -> Adapters:
    configured = {"id": "aws", "kind": "bedrock-openai", "region": "us-east-2", "base_url": server.url, **fields}
    return Adapters(read_settings({"STINT_PROVIDERS": json.dumps([configured])}))


async def ask(adapters: Adapters, model: str) -> str:
    chat_model, name = adapters.router.resolve(f"aws/{model}")
    try:
        chunks = [chunk async for chunk in chat_model.stream(InferenceRequest(name, (UserInput("Hello"),)))]
    finally:
        part: Any = chat_model
        while not isinstance(part, OpenAICompatible):
            part = part.wrapped
        await part.aclose()
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


async def test_requests_to_the_runtime_are_signed_for_bedrock(runtime: Bedrock) -> None:
    adapters = connect(runtime)

    assert await ask(adapters, "openai.gpt-5.5") == "by responses"
    assert await ask(adapters, "openai.gpt-oss-120b") == "by chat"
    assert runtime.paths == ["/openai/v1/responses", "/openai/v1/chat/completions"]
    assert "AWS4-HMAC-SHA256" in runtime.requests[0].headers["authorization"]
    assert SECRET not in str(runtime.requests)


async def test_requests_to_mantle_are_signed_for_its_own_service(mantle: Bedrock) -> None:
    adapters = connect(mantle, endpoint="mantle")

    assert await ask(adapters, "openai.gpt-5.5") == "by responses"
    assert await ask(adapters, "openai.gpt-oss-120b") == "by chat"
    assert mantle.paths == ["/openai/v1/responses", "/v1/chat/completions"]


async def test_the_operation_that_has_an_unknown_model_is_found_and_remembered(mantle: Bedrock) -> None:
    adapters = connect(mantle, endpoint="mantle")

    assert [await ask(adapters, "some.newcomer") for _ in range(2)] == ["by responses"] * 2
    assert mantle.paths == [
        "/v1/chat/completions",
        "/v1/responses",
        "/openai/v1/chat/completions",
        "/openai/v1/responses",
        "/openai/v1/responses",
    ]


async def test_a_model_that_no_operation_has_is_an_error_of_the_first(mantle: Bedrock) -> None:
    with pytest.raises(InvalidRequest, match="isn't supported on this route"):
        await ask(connect(mantle, endpoint="mantle"), "no.such")

    assert len(mantle.paths) == 4


async def test_a_chosen_api_is_the_only_one(runtime: Bedrock) -> None:
    with pytest.raises(InvalidRequest, match="isn't supported"):
        await ask(connect(runtime, api="chat"), "openai.gpt-5.5")

    assert runtime.paths == ["/openai/v1/chat/completions"]


async def test_a_signature_has_the_time_of_its_request(runtime: Bedrock) -> None:
    adapters = connect(runtime)
    await ask(adapters, "openai.gpt-5.5")
    CLOCK.move(3600)
    await ask(adapters, "openai.gpt-5.5")

    first, second = (request.headers["x-amz-date"] for request in runtime.requests)
    assert first != second


async def test_a_refused_signature_names_the_role(runtime: Bedrock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")

    with pytest.raises(ModelUnauthorized, match="check the role of the function"):
        await ask(connect(runtime), "openai.gpt-5.5")


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        (BedrockEndpoint("eu-west-1"), "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        (BedrockEndpoint("us-east-2", "mantle"), "https://bedrock-mantle.us-east-2.api.aws"),
        (BedrockEndpoint("us-east-2", "mantle", "https://vpce-1.example/"), "https://vpce-1.example"),
    ],
)
def test_an_endpoint_has_the_hosts_that_aws_documents(endpoint: BedrockEndpoint, url: str) -> None:
    assert endpoint.base_url == url


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"key_variable": "STINT_KEY"}, "no key"),
        ({"secret_arn": "arn:aws:secretsmanager:eu-west-1:1:secret:x"}, "no key"),
        ({"base_url": "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1"}, "no path"),
        ({"kind": "bedrock", "api": "chat"}, "no api"),
        ({"kind": "openai", "endpoint": "mantle"}, "no endpoint"),
        ({"kind": "openai", "region": "us-east-1"}, "no region"),
        ({"kind": "bedrock", "prompt_cache_key": True}, "no prompt_cache_key"),
        ({"region": "evil.example/x?"}, "region"),
    ],
)
def test_fields_that_do_not_fit_are_refused_by_name(fields: dict[str, str], says: str) -> None:
    configured = {"id": "aws", "kind": "bedrock-openai", "base_url": "http://127.0.0.1:1", **fields}

    with pytest.raises(ValueError, match=says):
        _ = Adapters(read_settings({"STINT_PROVIDERS": json.dumps([configured])})).model_servers
