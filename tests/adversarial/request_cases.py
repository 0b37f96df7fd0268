"""Requests with long lists, each element of which could cause a read, a fetch or a conversion."""

import base64
from typing import Any

from tests.adversarial.case import Case, Request, case, create_session, post
from tests.adversarial.peer import json_reply, serves
from tests.servers.scripted_http import Received, Reply

from stint.domain.limits import MAX_APPROVED_CALLS, MAX_IMAGE_URLS, MAX_IMAGES

PEER = "http://peer"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(30)


@case
def references_to_items_of_many_responses() -> Case:
    answer = yield post("/v1/responses", {"model": "scripted/demo", "input": "say: ok"})
    suffix = answer.json()["output"][0]["id"].partition("_")[2][32:]
    for count in (500, 9_999):
        references = [{"type": "item_reference", "id": f"msg_{n:032x}{suffix}"} for n in range(count)]
        body = {"model": "scripted/demo", "input": [*references, {"role": "user", "content": "go"}]}
        for path in ("/v1/responses", "/v1/responses/input_tokens"):
            answer = yield post(path, body)
            assert answer.status == 400, answer.body[:500]


def serve_image(received: Received) -> Reply:
    return Reply((PNG,), 200, {"content-type": "image/png"})


for number in range(MAX_IMAGE_URLS):
    serves(f"/image/{number}")(serve_image)


def image_requests(model: str, urls: list[str]) -> list[Request]:
    """Return a response, a completion and a conversation with images."""
    parts = [{"type": "input_image", "image_url": url} for url in urls]
    chat = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [
        post("/v1/responses", {"model": model, "input": [{"role": "user", "content": parts}]}),
        post("/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": chat}]}),
        post("/v1/conversations", {"items": [{"role": "user", "content": parts}]}),
    ]


def send_images(model: str, urls: list[str], status: int) -> Case:
    """Send images by URL wherever they are accepted."""
    for request in image_requests(model, urls):
        answer = yield request
        assert answer.status == status, (str(request), answer.body[:500])
    session = yield from create_session(model=model)
    parts = [{"type": "image", "image": {"url": {"uri": url}}} for url in urls]
    answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": parts}]})
    assert answer.status == status, answer.body[:500]


@case
def many_images_behind_urls() -> Case:
    yield from send_images("fetched/any", [f"{PEER}/image/{n}" for n in range(MAX_IMAGE_URLS)], 200)
    yield from send_images("fetched/any", [f"{PEER}/image/{n}" for n in range(10_000)], 400)


@case
def one_image_behind_a_url_many_times() -> Case:
    yield from send_images("fetched/any", [f"{PEER}/image/1"] * MAX_IMAGES, 200)
    yield from send_images("fetched/any", [f"{PEER}/image/1"] * 35_000, 400)


@case
def many_images_in_data_urls() -> Case:
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    for model in ("scripted/demo", "openai/any"):
        yield from send_images(model, [url] * MAX_IMAGES, 200)
        yield from send_images(model, [url] * 35_000, 400)


@serves("/approved")
def answer_mcp(received: Received) -> Reply:
    asked = received.json()
    if "id" not in asked:
        return Reply(status=202)
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "peer", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "ran"}]},
    }
    return json_reply({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})})


def approvals(count: int) -> list[dict[str, Any]]:
    """Return calls that require an approval, and the approvals."""
    call = {"type": "mcp_approval_request", "server_label": "peer", "name": "t", "arguments": "{}"}
    consent = {"type": "mcp_approval_response", "approve": True}
    calls = [call | {"id": f"mcpr_{n:032x}02"} for n in range(count)]
    return [*calls, *(consent | {"approval_request_id": each["id"]} for each in calls)]


@case
def many_approved_calls() -> Case:
    server = {"type": "mcp", "server_label": "peer", "server_url": f"{PEER}/approved", "require_approval": "always"}
    for count, status in ((MAX_APPROVED_CALLS, 200), (4_990, 400)):
        body = {"model": "scripted/demo", "input": approvals(count), "tools": [server]}
        answer = yield post("/v1/responses", body)
        assert answer.status == status, answer.body[:500]
    answer = yield post("/v1/responses/input_tokens", {"model": "scripted/demo", "input": approvals(4_990)})
    assert answer.status == 200, answer.body[:500]
