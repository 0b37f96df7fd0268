"""GET /v1/openapi.json: the document that `make openapi` built, for the server that returns it."""

import json
import shlex
from copy import deepcopy
from typing import Any

import httpx
import pytest
from infra.openapi.document import describe_api
from starlette.requests import Request

from stint.http.routes.inspection import BUILT_MODELS, BUILT_URL, describe_server, read_document
from stint.http.routes.pages import base_url_of


def list_texts(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [text for value in node.values() for text in list_texts(value)]
    if isinstance(node, list):
        return [text for value in node for text in list_texts(value)]
    return [node] if isinstance(node, str) else []


def test_it_is_the_document_of_the_routes_with_the_url_and_the_models_of_the_server(http: httpx.Client) -> None:
    answer = http.get("/v1/openapi.json")

    text = json.dumps(describe_api(), ensure_ascii=False)
    text = text.replace(BUILT_MODELS["llm"], "scripted/demo").replace(BUILT_MODELS["embedding"], "hashed/words-384")
    assert answer.json() == json.loads(text.replace(BUILT_URL, str(http.base_url).rstrip("/")))
    assert answer.headers["content-type"] == "application/json"
    assert (answer.headers["cache-control"], answer.headers["vary"]) == ("max-age=300", "authorization")
    assert len(answer.content) < 700_000


def test_only_servers_commands_and_examples_have_what_a_server_replaces() -> None:
    described = deepcopy(describe_api())
    operations = [operation for item in described["paths"].values() for operation in item.values()]
    for operation in operations:
        del operation["x-codeSamples"]
        operation.pop("servers", None)
        for content in operation.get("requestBody", {"content": {}})["content"].values():
            content.pop("examples", None)
    del described["servers"]

    texts = list_texts(described)
    assert len(texts) > 1000
    for replaced in (BUILT_URL, *BUILT_MODELS.values()):
        assert not [text for text in texts if replaced in text]


def test_commands_name_the_default_models_and_the_url_of_the_server() -> None:
    llm, embedding = "bedrock/eu.amazon.nova-lite-v1:0", "local/wordllama-256"

    served = describe_server(read_document(), "https://api.example/prod", {"llm": llm, "embedding": embedding}).decode()

    assert BUILT_URL not in served
    assert BUILT_MODELS["llm"] not in served
    described = json.loads(served)
    commands = {
        operation["operationId"]: shlex.split(operation["x-codeSamples"][0]["source"])
        for item in described["paths"].values()
        for operation in item.values()
    }
    assert commands["create_response"][4] == "https://api.example/prod/v1/responses"
    assert json.loads(commands["create_response"][-1])["model"] == llm
    assert json.loads(commands["create_embeddings"][-1])["model"] == embedding


@pytest.mark.parametrize("model", ["openai/it's", 'openai/"', "openai/$(date)", "openai/\\", "openai/a\nb", "openai/`"])
def test_the_examples_keep_their_model_if_a_shell_would_read_the_default_one_in_another_way(model: str) -> None:
    assert describe_server(read_document(), BUILT_URL, {"llm": model, "embedding": model}) == read_document()


def test_the_examples_keep_their_models_if_the_server_has_none() -> None:
    assert describe_server(read_document(), BUILT_URL, {}) == read_document()


@pytest.mark.parametrize("base", ["/it's", '/"x"', "/$(date)", "/a`date`", "/\\", "/a b;c", "/<b>", "/ö", "/{x}"])
@pytest.mark.parametrize("host", ["api.example", "[::1]:8321", 'x"; date', "a" * 10_000])
def test_a_base_path_cannot_leave_the_quotes_of_a_command(base: str, host: str) -> None:
    context = {"requestContext": {"path": f"{base}/v1/openapi.json"}}
    scope = {"type": "http", "path": "/v1/openapi.json", "scheme": "https", "server": None, "aws.event": context}
    url = base_url_of(Request(scope | {"headers": [(b"host", host.encode())]}), "/v1/openapi.json")

    served = describe_server(read_document(), url, {}).decode()
    [command] = json.loads(served)["paths"]["/v1/health"]["get"]["x-codeSamples"]
    assert json.loads(served)["servers"][0]["url"] == url
    assert len(url) < 100
    assert not set(url) & set("'\"$`\\ ;<>{}!")
    assert shlex.split(command["source"]) == ["curl", "-sS", f"{url}/v1/health"]
