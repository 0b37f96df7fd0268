"""The start page, the API reference, and the OpenAPI document that it shows."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from mangum import Mangum
from tests.api.app_fixture import AppFixture
from tests.api.conftest import Invocation

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def described(http: httpx.Client) -> dict[str, Any]:
    document: dict[str, Any] = http.get("/v1/openapi.json").json()
    return document


@pytest.mark.parametrize(
    "accept",
    [
        *(BROWSER["accept"], "*/*", "", "text/html", "text/html, application/json", "text/*, application/*"),
        *("application/json;q=0.5, text/html;q=0.9", "application/json;q=0, */*", "application/json;q=0", "image/png"),
        *("application/json;q=0.1, */*", "application/*, text/html", "application/json;q=much", ",;,=;q", "q=1"),
    ],
)
def test_the_start_page_says_where_clients_connect_and_links_the_rest(http: httpx.Client, accept: str) -> None:
    answer = http.get("/", headers={"accept": accept})

    url = str(http.base_url).rstrip("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    for words in (f'base_url="{url}"', f'base_url="{url}/v1"', f'base_url="{url}/v1/openai/v1"', "scripted/demo"):
        assert words in unescape(answer.text)
    links = re.findall(r'href="(/[^"]*)"', answer.text)
    assert {"/docs", "/v1/openapi.json"} <= set(links)
    assert {http.get(link).status_code for link in links} == {200}


@pytest.mark.parametrize(
    "accept",
    [
        *("application/json", "application/json; charset=utf-8", "Application/JSON ; Q=0.2", "application/*"),
        *("application/json, text/plain, */*", "text/html;q=0.4, application/json;q=0.5", "text/html;q=0, */*"),
        *("application/json, text/html;q=0.9", "application/*;q=0.9, text/*;q=0.8", "text/*;q=0.1, */*;q=0.2"),
        *("application/json;q=0.1", "text/html;q=0.8,application/json;q=1.000"),
    ],
)
def test_the_start_page_is_json_for_clients_that_prefer_it(http: httpx.Client, accept: str) -> None:
    url = str(http.base_url).rstrip("/")

    assert http.get("/", headers={"accept": accept}).json() == {
        "name": "Stint",
        "base_urls": {"llama_stack": url, "openai": [f"{url}/v1", f"{url}/v1/openai/v1"]},
        "models": ["scripted/demo", "demo"],
        "docs": f"{url}/docs",
        "openapi": f"{url}/v1/openapi.json",
    }


def test_accept_may_come_in_several_headers(http: httpx.Client) -> None:
    answer = http.get("/", headers=[("accept", "text/html;q=0.1"), ("accept", "application/json")])

    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
@pytest.mark.parametrize("path", ["/", "/docs", "/docs/reference.css", "/docs/reference.js"])
def test_head_is_answered_as_get_without_the_body(http: httpx.Client, path: str, accept: str) -> None:
    headers = {"accept": accept}
    head, got = http.head(path, headers=headers), http.get(path, headers=headers)

    own = {"x-request-id", "x-trace-id", "date"}
    assert (head.status_code, head.content) == (200, b"")
    assert {k: v for k, v in head.headers.items() if k not in own} == {
        k: v for k, v in got.headers.items() if k not in own
    }


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/reference.js"])
def test_the_function_sends_no_body_for_head(whole_app: Callable[[dict[str, Any]], dict[str, Any]], path: str) -> None:
    answer = whole_app(page_event("HEAD", "/" if path == "/" else "/{proxy+}", path, path))

    assert (answer["statusCode"], answer["body"]) == (200, "")


def page_event(method: str, resource: str, path: str, context_path: str, base: str = "") -> dict[str, Any]:
    """An event of API Gateway."""
    headers = {"host": "api.example", "x-forwarded-proto": "https", "accept": "text/html"}
    return {
        "resource": resource,
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": path.removeprefix(base).lstrip("/")} if "proxy" in resource else None,
        "requestContext": {
            "httpMethod": method,
            "path": context_path,
            "stage": "prod",
            "identity": {"sourceIp": "::1"},
        },
        "body": None,
        "isBase64Encoded": False,
    }


def test_what_is_shown_is_text(http: httpx.Client) -> None:
    model = {"model_id": "<script>alert(1)</script>", "provider_id": "scripted", "provider_model_id": "demo"}
    http.post("/v1/models", json=model)

    pages = [http.get("/", headers=headers).text for headers in (BROWSER, BROWSER | {"host": 'x"><script>alert(2)'})]

    assert "&lt;script&gt;alert(1)" in pages[0]
    assert not any("<script" in page for page in pages)


def test_the_reference_loads_nothing_from_elsewhere(http: httpx.Client) -> None:
    page = http.get("/docs")
    sources = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assets = [source for source in sources if source.startswith("docs/")]

    assert page.status_code == 200
    assert sorted(assets) == ["docs/reference.css", "docs/reference.js"]
    for answer in (page, http.get("/"), *(http.get(f"/{asset}") for asset in assets)):
        text = answer.text.replace(str(http.base_url).rstrip("/"), "")
        assert not re.search(r"https?://|<script>|<style|\son\w+=|innerHTML|eval\(", text)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    kinds = {asset: http.get(f"/{asset}").headers["content-type"] for asset in assets}
    assert kinds["docs/reference.js"] == "text/javascript; charset=utf-8"
    assert kinds["docs/reference.css"] == "text/css; charset=utf-8"


OPENAI = (
    *("/v1/responses", "/v1/conversations", "/v1/chat/", "/v1/completions", "/v1/embeddings", "/v1/models"),
    *("/v1/files", "/v1/uploads", "/v1/containers", "/v1/vector_stores"),
)


def test_the_openapi_document_names_both_apis_and_both_addresses(http: httpx.Client, described: dict[str, Any]) -> None:
    url = str(http.base_url).rstrip("/")

    assert [server["url"] for server in described["servers"]] == [url]
    assert "Agents API" in described["info"]["summary"]
    assert "Responses API" in described["info"]["summary"]
    assert "/v1/openai/v1" in described["info"]["description"]
    tags = {tag["name"]: tag["description"] for tag in described["tags"]}
    for path, item in described["paths"].items():
        for operation in item.values():
            openai = path.startswith(OPENAI)
            servers = [server["url"] for server in operation.get("servers", described["servers"])]
            assert servers == ([url, f"{url}/v1/openai"] if openai else [url])
            assert set(operation["tags"]) <= set(tags)
    for server in described["paths"]["/v1/models"]["get"]["servers"]:
        assert http.get(f"{server['url']}/v1/models").status_code == 200
    assert "OpenAI" in tags["Responses"]
    assert "Llama Stack" in tags["Turns"]


def test_every_body_has_examples_that_fit(described: dict[str, Any]) -> None:
    operations = [operation for item in described["paths"].values() for operation in item.values()]
    for operation in operations:
        for media_type, content in operation.get("requestBody", {"content": {}})["content"].items():
            if media_type == "multipart/form-data":  # files have no example as JSON
                assert set(content["schema"]["required"]) <= set(content["schema"]["properties"])
                continue
            assert content["examples"], operation["operationId"]
            for example in content["examples"].values():
                assert example["summary"]
                Draft202012Validator(described | content["schema"]).validate(example["value"])


@pytest.mark.parametrize("name", ["create_agent", "create_response", "create_conversation", "create_chat_completion"])
def test_examples_are_served(http: httpx.Client, described: dict[str, Any], name: str) -> None:
    [(path, operation)] = [
        (path, item["post"])
        for path, item in described["paths"].items()
        if item.get("post", {}).get("operationId") == name
    ]

    for example in operation["requestBody"]["content"]["application/json"]["examples"].values():
        if "mcp.example.com" not in json.dumps(example):
            assert http.post(path, json=example["value"]).status_code == 200


@pytest.fixture
def whole_app(app_fixture: AppFixture) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """The app as Lambda calls it, with an event of API Gateway."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    handler: Any = Mangum(app_fixture.app(everything=True), lifespan="off")
    yield lambda event: handler(event, Invocation())
    asyncio.set_event_loop(None)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.mark.parametrize(
    ("resource", "path", "context_path", "base"),
    [
        ("/", "/", "/prod/", "/prod"),
        ("/", "/", "/prod", "/prod"),
        ("/", "/stint", "/stint", "/stint"),
        ("/{proxy+}", "/docs", "/prod/docs", "/prod"),
        ("/{proxy+}", "/stint/docs", "/stint/docs", "/stint"),
        ("/{proxy+}", "/stint/docs/reference.js", "/stint/docs/reference.js", "/stint"),
        ("/v1/openapi.json", "/stint/v1/openapi.json", "/stint/v1/openapi.json", "/stint"),
        ("/v1/openapi.json", "/v1/openapi.json", "/prod/v1/openapi.json", "/prod"),
    ],
)
def test_pages_work_below_a_stage_and_the_base_path_of_a_custom_domain(
    whole_app: Callable[[dict[str, Any]], dict[str, Any]], resource: str, path: str, context_path: str, base: str
) -> None:
    answer = whole_app(page_event("GET", resource, path, context_path, base))

    body = answer["body"]
    assert answer["statusCode"] == 200
    if resource == "/":
        assert f'base_url="https://api.example{base}"' in unescape(body)
        assert f'href="{base}/docs"' in body
    if resource == "/v1/openapi.json":
        assert json.loads(body)["servers"][0]["url"] == f"https://api.example{base}"
