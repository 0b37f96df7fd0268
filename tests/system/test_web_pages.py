"""No web page may call the servers of the local cloud, but those of this machine and of the configured origin."""

import json
from collections.abc import Iterator

import httpx
import pytest
from infra.local.web_pages import reason_to_refuse
from tests.system.conftest import Api
from tests.system.run_process import Run

HERE = "127.0.0.1:8321"
ALLOWED = "https://app.example"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": HERE},
        {"host": "localhost:8321"},
        {"host": "LocalHost"},
        {"host": "[::1]:9"},
        {"host": HERE, "origin": "http://localhost:3000"},
        {"host": HERE, "origin": "https://127.0.0.1"},
        {"host": HERE, "origin": "http://[::1]:5173", "sec-fetch-site": "cross-site"},
        {"host": HERE, "origin": ALLOWED, "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"host": HERE, "sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"host": HERE, "sec-fetch-site": "same-origin"},
    ],
)
def test_requests_of_this_machine_and_of_the_allowed_origin_pass(headers: dict[str, str]) -> None:
    assert reason_to_refuse(list(headers.items()), "/v1/agents", ALLOWED) is None


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "Host header is missing"),
        ({"host": ""}, "Host"),
        ({"host": "evil.example"}, "'evil.example'"),
        ({"host": "evil.example:8321"}, "Host"),
        ({"host": "127.0.0.1.evil.example"}, "Host"),
        ({"host": "localhost.evil.example"}, "Host"),
        ({"host": "localhost:8321@evil.example"}, "Host"),
        ({"host": "0.0.0.0:8321"}, "Host"),
        ({"host": "127.0.0.1:8321\nx"}, "Host"),
        ({"host": "[evil.example]:8321"}, "Host"),
        ({"host": "[2001:db8::1]"}, "Host"),
        ({"host": "[::ffff:8.8.8.8]:8321"}, "Host"),
        ({"host": HERE, "origin": "https://evil.example"}, "'https://evil.example'"),
        ({"host": HERE, "origin": "null"}, "'null'"),
        ({"host": HERE, "origin": ""}, "origin"),
        ({"host": HERE, "origin": "http://localhost.evil.example"}, "origin"),
        ({"host": HERE, "origin": "http://evil.example#localhost"}, "origin"),
        ({"host": HERE, "origin": "http://localhost@evil.example"}, "origin"),
        ({"host": HERE, "origin": "https://app.example.evil.example"}, "origin"),
        ({"host": HERE, "origin": "http://app.example"}, "origin"),
        ({"host": HERE, "origin": "file://"}, "origin"),
        ({"host": HERE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, "other sites"),
        ({"host": HERE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, "other sites"),
        ({"host": HERE, "sec-fetch-site": "Cross-Site", "sec-fetch-mode": "no-cors"}, "other sites"),
    ],
)
def test_requests_of_other_pages_are_refused(headers: dict[str, str], words: str) -> None:
    reason = reason_to_refuse(list(headers.items()), "/v1/agents", ALLOWED)

    assert reason is not None
    assert words in reason


def test_a_link_on_any_page_may_open_the_start_page_and_nothing_else() -> None:
    headers = [("host", HERE), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]

    assert reason_to_refuse(headers, "/") is None
    assert reason_to_refuse(headers, "/docs") is None
    assert reason_to_refuse(headers, "/console") is None
    assert reason_to_refuse(headers, "/console/agents/a") is None
    assert reason_to_refuse(headers, "/consoles")
    assert reason_to_refuse(headers, "/v1/tool-runtime/list-tools")
    assert reason_to_refuse([*headers[:2], ("sec-fetch-mode", "no-cors")], "/")


@pytest.mark.parametrize("host", ["[evil.example]:9201", "[2001:db8::1]", "[::ffff:8.8.8.8]", "[x]:80", "[::1].x"])
def test_the_api_refuses_a_host_in_brackets_that_is_not_this_machine(api: Api, host: str) -> None:
    refused = api.client.get("/echo/fixed", headers={"host": host})

    assert (refused.status_code, "Host header" in refused.text) == (403, True)


def test_every_origin_passes_where_that_was_chosen() -> None:
    assert reason_to_refuse([("host", HERE), ("origin", "null")], "/v1/agents", "*") is None
    assert reason_to_refuse([("host", "evil.example"), ("origin", "null")], "/v1/agents", "*")


def test_the_api_refuses_before_it_looks_at_the_path_or_the_body(api: Api) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        for method, path in (("GET", "/echo/a"), ("POST", "/echo/a"), ("OPTIONS", "/echo/a"), ("GET", "/nowhere")):
            response = api.client.request(method, path, headers=headers)

            assert response.status_code == 403
            assert "access-control-allow-methods" not in response.headers
    allowed = api.client.get("/echo/a", headers={"origin": "https://example.org"})
    assert allowed.status_code == 200


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("pages"), 0)
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


def test_make_run_answers_foreign_pages_in_the_error_body_and_does_nothing(run: Run) -> None:
    agent = {"agent_config": {"model": "scripted/demo", "instructions": ""}}
    url = f"http://127.0.0.1:{run.port}"

    for headers in ({"origin": "https://evil.example"}, {"host": f"evil.example:{run.port}"}):
        answer = httpx.post(f"{url}/v1/agents", json=agent, headers=headers, trust_env=False, timeout=120)

        assert answer.status_code == 403
        assert "evil.example" in answer.json()["error"]["message"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    forms = httpx.post(f"{url}/v1/agents", content=json.dumps(agent), trust_env=False, timeout=120)
    assert forms.status_code == 415
    assert httpx.get(f"{url}/v1/agents", trust_env=False, timeout=120).json()["data"] == []


@pytest.mark.parametrize("stage", ["", "/prod"])
def test_the_pages_for_people_are_there_with_the_stage_and_without(run: Run, stage: str) -> None:
    url = f"http://127.0.0.1:{run.port}{stage}"
    client = httpx.Client(trust_env=False, headers={"accept": "text/html"}, timeout=120)

    with client:
        home, docs = client.get(f"{url}/"), client.get(f"{url}/docs")
        console = client.get(f"{url}/", follow_redirects=True)
        script, described = client.get(f"{url}/docs/reference.js"), client.get(f"{url}/v1/openapi.json").json()
        heads = [client.head(f"{url}{path}") for path in ("/", "/docs", "/docs/reference.js")]

    assert [answer.status_code for answer in (home, docs, script)] == [302, 200, 200]
    assert [(head.status_code, head.content) for head in heads] == [(302, b""), (200, b""), (200, b"")]
    assert [head.headers["content-type"] for head in heads] == [
        answer.headers["content-type"] for answer in (home, docs, script)
    ]
    assert (str(console.url), home.headers["location"]) == (f"{url}/console", "./console")
    assert 'src="console/assets/' in console.text or "make console" in console.text
    assert described["servers"][0]["url"] == url
