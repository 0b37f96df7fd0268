"""Credentials that are searched for in long responses, and opaque texts with a large decompressed content."""

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from tests.adversarial.case import Case, case, create_session, get, post
from tests.adversarial.peer import serves
from tests.servers.scripted_http import Received, Reply

LONGEST = 6_000_000
"""Maximum bytes of a tool's response."""

PEER = "http://peer"
ALIKE = {f"X-{n}": f"{'a' * 12}{n:03}" for n in range(500)}
MOST_HEADERS = 64
"""Maximum headers of one tool."""
LONG = {"X-Key": "a" * 9_000 + "b"}


@serves("/alike")
def answer_alike(received: Received) -> Reply:
    return Reply((b"a" * LONGEST,), 200, {"content-type": "text/plain"})


@serves("/nested")
def answer_nested(received: Received) -> Reply:
    return Reply((b'["a",' * 90 + b'"a"' + b"]" * 90,), 200, {"content-type": "application/json"})


@serves("/file")
def answer_file(received: Received) -> Reply:
    return Reply((b"a" * LONGEST,), 200, {"content-type": "application/octet-stream"})


def tools_with(path: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    """Return the tool `t`, and more tools of its toolgroup for headers that exceed the maximum of one tool."""
    names = list(headers)
    parts = [names[begin : begin + MOST_HEADERS] for begin in range(0, len(names), MOST_HEADERS)]
    return [
        {"name": f"t{n or ''}", "url": f"{PEER}{path}", "headers": {name: headers[name] for name in part}}
        for n, part in enumerate(parts)
    ]


def call_tool(path: str, headers: dict[str, str]) -> Case:
    """Register tools with credentials, read them, and call one directly and in a turn."""
    args = {"tools": tools_with(path, headers)}
    registered = yield post("/v1/toolgroups", {"toolgroup_id": "g", "provider_id": "remote-execution", "args": args})
    assert registered.status == 200, registered.body[:500]
    assert (yield get("/v1/toolgroups/g")).status == 200
    called = yield post("/v1/tool-runtime/invoke", {"tool_name": "t", "kwargs": {}})
    assert called.status == 200, called.body[:500]
    session = yield from create_session(toolgroups=["g"])
    said = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": "call: t {}"}], "stream": True})
    assert said.status == 200


@case
def credentials_of_one_beginning_in_a_long_answer() -> Case:
    yield from call_tool("/alike", ALIKE)


@case
def a_long_credential_that_an_answer_almost_holds() -> Case:
    yield from call_tool("/alike", LONG)


@case
def credentials_of_one_beginning_in_a_long_file() -> Case:
    yield from call_tool("/file", ALIKE)


@case
def credentials_in_a_nested_answer() -> Case:
    yield from call_tool("/nested", ALIKE)


@case
def a_model_that_almost_says_a_credential() -> Case:
    """Search a turn's text, which is done piece by piece."""
    args = {"tools": [{"name": "t", "url": f"{PEER}/nested", "headers": {"X-Key": "a" * 9_000 + "b"}}]}
    yield post("/v1/toolgroups", {"toolgroup_id": "g", "provider_id": "remote-execution", "args": args})
    session = yield from create_session(toolgroups=["g"])
    said = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": f"say: {'a' * 300_000}"}]})
    assert said.status == 200


def registration(value: Any) -> Case:
    """Register args of the maximum size, and read them."""
    room = 64_000 // len(json.dumps(value))
    args = {"tools": [{"name": "t", "url": "https://example.com", "body": [value] * room}]}
    answer = yield post("/v1/toolgroups", {"toolgroup_id": "g", "provider_id": "remote-execution", "args": args})
    assert answer.status in (200, 400), answer.body[:500]
    assert (yield get("/v1/toolgroups")).status == 200


@case
def registrations_that_are_looked_through_for_credentials() -> Case:
    for value in ({"body": "key=" * 1_000}, "https://a?" + "&a=1" * 1_000, "a://" * 1_000, {"data": '"key":"' * 1_000}):
        yield from registration(value)


def reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": text}


def ask(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "scripted/demo", "input": [*items, {"role": "user", "content": "go"}]}


@case
def opaque_texts_that_unpack_to_much() -> Case:
    packed = zlib.compress(b'Reasoning\n{"text": "' + b"a" * 20_000_000 + b'"}', 9)
    for prefix in ("st1.", "st2."):
        items = [reasoning(prefix + base64.urlsafe_b64encode(packed).decode())] * 200
        for path, body in (
            ("/v1/responses", ask(items)),
            ("/v1/responses/compact", ask(items)),
            ("/v1/responses/input_tokens", ask(items)),
            ("/v1/conversations", {"items": items[:20]}),
        ):
            answer = yield post(path, body)
            assert answer.status == 400, (path, answer.body[:500])


@case
def opaque_texts_of_this_server_sent_back_many_times() -> Case:
    body = ask([]) | {"include": ["reasoning.encrypted_content"], "max_output_tokens": 1_000_000}
    body["input"] = f"think: {'a' * 2_000_000} | Yes"  # the scripted model thinks 20,000 of them
    answer = yield post("/v1/responses", body)
    assert answer.status == 200, answer.body[:500]
    [thought] = [item for item in answer.json()["output"] if item["type"] == "reasoning"]
    items = [reasoning(thought["encrypted_content"])] * 500
    refused = yield post("/v1/responses", ask(items))
    assert refused.status == 400, refused.body[:500]
    assert b"in total" in refused.body
    counted = yield post("/v1/responses/input_tokens", ask(items))
    assert counted.status == 400, counted.body[:500]


@case
def provider_data_of_many_credentials() -> Case:
    for value in ("a" * 60_000, "a,b;" * 15_000):
        headers = {"https://example.com": {f"X-{n}": f"{value[:20]}{n}" for n in range(1_000)}}
        data = json.dumps({"http_headers": headers, "api_key": value})
        request = get("/v1/tools")
        yield type(request)(request.method, request.path, b"", {"x-llamastack-provider-data": data})


RUNS = {
    "percent": b"%41%42%43%44%45%46%47%48.",
    "escaped": b"\\u0041" * 8 + b".",
    "lines": b"aBcDeFgHiJkLmNoPqRsT" + b"\n",
    "short_lines": b"aBcDeFgHiJkLmNoPqRsT" + b"\na ",
}


def serve_runs(run: bytes) -> Callable[[Received], Reply]:
    return lambda received: Reply((run * (2_900_000 // len(run)),), 200, {"content-type": "text/plain"})


for run_name, run in RUNS.items():
    serves(f"/runs/{run_name}")(serve_runs(run))


@case
def credentials_in_a_long_answer_of_encoded_runs() -> Case:
    for name in RUNS:
        args = {"tools": tools_with(f"/runs/{name}", ALIKE)}
        group = {"toolgroup_id": name, "provider_id": "remote-execution", "args": args}
        assert (yield post("/v1/toolgroups", group)).status == 200
        called = yield post("/v1/tool-runtime/invoke", {"tool_name": f"{name}/t", "kwargs": {}})
        assert called.status == 200, called.body[:500]
