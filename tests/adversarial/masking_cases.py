"""Registrations, agents and URLs with many places for credentials."""

import json
from typing import Any

from tests.adversarial.case import Case, case, get, post

FIELDS = "a://b?" + "k=v&" * 16_000
PLACES = {
    "fields": FIELDS,
    "pairs": "ab=c;" * 12_000,
    "urls": "a://b?c=d " * 6_000,
    "names": json.dumps({f"key{n}": n for n in range(3_000)}),
    "distinct": "a://b?" + "&".join(f"{n}key=1" for n in range(5_000)),
}


def refused(path: str, body: Any) -> Case:
    answer = yield post(path, body)
    assert answer.status == 400, answer.body[:300]


@case
def a_model_whose_metadata_has_many_fields() -> Case:
    for value in ({"body": FIELDS * 90}, {"x": FIELDS * 90}, {f"k{n}": "v" for n in range(150_000)}):
        yield from refused("/v1/models", {"model_id": "m", "provider_id": "scripted", "metadata": value})
    for name, text in PLACES.items():
        model = {"model_id": name, "provider_id": "scripted", "provider_model_id": "demo", "metadata": {"body": text}}
        answer = yield post("/v1/models", model)
        assert answer.status == 200, answer.body[:300]
    assert (yield get("/v1/models")).status == 200


@case
def an_agent_whose_args_have_many_fields() -> Case:
    def config(count: int, text: str) -> dict[str, Any]:
        groups = [{"name": f"g{n}", "args": {"body": text}} for n in range(count)]
        return {"agent_config": {"model": "scripted/demo", "instructions": "", "toolgroups": groups}}

    yield from refused("/v1/agents", config(58, FIELDS))
    for text in PLACES.values():
        created = yield post("/v1/agents", config(3, text))
        assert created.status == 200, created.body[:300]
        assert (yield get(f"/v1/agents/{created.json()['agent_id']}")).status == 200
    assert (yield get("/v1/agents")).status == 200


@case
def toolgroups_whose_args_have_many_fields() -> Case:
    for number in range(10):
        for name, text in PLACES.items():
            args = {"tools": [{"name": "t", "url": "http://127.0.0.1:9/", "body": text}]}
            group = {"toolgroup_id": f"{name}{number}", "provider_id": "remote-execution", "args": args}
            answer = yield post("/v1/toolgroups", group)
            assert answer.status == 200, answer.body[:300]
    assert (yield get("/v1/toolgroups")).status == 200
    assert (yield get("/v1/tools")).status == 200


def servers(query: str, **more: Any) -> dict[str, Any]:
    url = "http://127.0.0.1:9/"
    tools = [{"type": "mcp", "server_label": f"s{n}", "server_url": f"{url}{n}?{query}", **more} for n in range(120)]
    return {"model": "scripted/demo", "input": "hi", "tools": tools}


@case
def servers_of_long_urls() -> Case:
    yield from refused("/v1/responses", servers("k=v&" * 11_000))
    queries = ["k=v&" * 1_900, "".join(f"{n:04}abcd=1&" for n in range(600))]
    for query in [*queries, "".join(f"k={n:04}abcd&" for n in range(700))]:
        answer = yield post("/v1/responses", servers(query))
        assert answer.status in (200, 400, 502), answer.body[:300]


@case
def servers_of_many_headers() -> Case:
    body = servers("k=v")
    for n, tool in enumerate(body["tools"]):
        tool["headers"] = {f"X-{m}": f"{n:04}{m:03}{'abcd' * 30}" for m in range(100)}
    yield from refused("/v1/responses", body)
