"""Bodies of requests."""

import json
from collections.abc import Iterator
from typing import Any

from tests.adversarial.case import Answer, Case, Event, Request, case, create_session, get, post

MOST = 5_999_900
"""Bytes of hostile content in a body; the rest of the limit is for the surrounding JSON."""


def fill(piece: bytes, size: int = MOST) -> bytes:
    return piece * (size // len(piece))


def each_route(body: bytes) -> Iterator[Request]:
    """Send a body to every route that takes one."""
    session = "/v1/agents/a/session/b"
    for path in (
        "/v1/agents",
        "/v1/agents/a/session",
        f"{session}/turn",
        f"{session}/turn/c/resume",
        "/v1/responses",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
        "/v1/chat/completions",
        "/v1/conversations",
        "/v1/conversations/a/items",
        "/v1/toolgroups",
        "/v1/shields",
        "/v1/models",
        "/v1/safety/run-shield",
        "/v1/tool-runtime/invoke",
    ):
        yield post(path, body)


def refused(requests: Iterator[Request], statuses: tuple[int, ...] = (400,)) -> Case:
    for request in requests:
        answer = yield request
        assert answer.status in statuses, (request.path, answer.status, answer.body[:500])


@case
def ordinary_request() -> Case:
    """Measure a request that costs almost nothing."""
    answer = yield get("/v1/models")
    assert answer.status == 200


@case
def empty_objects() -> Case:
    yield from refused(each_route(b"[" + fill(b"{},") + b"{}]"))


@case
def empty_objects_in_a_field() -> Case:
    yield from refused(each_route(b'{"metadata": [' + fill(b"{},") + b"{}]}"))


@case
def values_beside_strings_that_hold_separators() -> Case:
    yield from refused(each_route(b"[" + fill(b'",{[",[],') + b"0]"))


@case
def quotes_that_never_end() -> Case:
    yield from refused(each_route(b'"' + fill(b'\\"') + b"\\"))


@case
def strings_without_separators() -> Case:
    yield from refused(each_route(fill(b'"a":"{"')))


@case
def long_numbers() -> Case:
    yield from refused(each_route(b"[" + fill(b"9" * 4_300 + b",") + b"0]"))
    yield from refused(each_route(b'{"n": ' + b"1" * 5_000 + b"}"))
    yield from refused(each_route(b'{"n": ' + fill(b"1") + b"}"))


@case
def deep_arrays() -> Case:
    yield from refused(each_route(fill(b"[")))
    yield from refused(each_route(fill(b'{"a":')))


@case
def lists_of_wrong_values() -> Case:
    """Send lists of wrong entries. Each entry causes several errors, because it has many possible types."""
    wrong = [0] * 199_000
    session = yield from create_session()
    message = {"role": "user", "content": wrong}
    yield from refused(
        iter(
            [
                post("/v1/agents", {"agent_config": {"model": "m", "instructions": "", "toolgroups": wrong}}),
                post("/v1/agents", {"agent_config": {"model": "m", "instructions": "", "client_tools": wrong}}),
                post(f"{session}/turn", {"messages": wrong}),
                post(f"{session}/turn", {"messages": [message]}),
                post(f"{session}/turn", {"messages": [], "documents": wrong}),
                post("/v1/responses", {"model": "scripted/demo", "input": wrong}),
                post("/v1/responses", {"model": "scripted/demo", "input": [message]}),
                post("/v1/responses", {"model": "scripted/demo", "input": "x", "tools": wrong}),
                post("/v1/chat/completions", {"model": "scripted/demo", "messages": wrong}),
                post("/v1/chat/completions", {"model": "scripted/demo", "messages": [message]}),
                post("/v1/conversations", {"items": wrong}),
            ]
        )
    )


@case
def lists_of_incomplete_objects() -> Case:
    wrong: list[Any] = [{}] * 199_000
    session = yield from create_session()
    yield from refused(
        iter(
            [
                post(f"{session}/turn", {"messages": wrong}),
                post(f"{session}/turn", {"messages": [{"role": "user", "content": wrong}]}),
                post("/v1/responses", {"model": "scripted/demo", "input": wrong}),
                post("/v1/chat/completions", {"model": "scripted/demo", "messages": wrong}),
                post("/v1/conversations", {"items": wrong}),
            ]
        )
    )


@case
def unknown_fields() -> Case:
    fields: dict[str, Any] = {f"f{place}": 0 for place in range(199_000)}
    yield from refused(each_route(post("/", fields).body), (200, 400, 404))


@case
def misspelled_fields() -> Case:
    """Send names that resemble known ones, in one object and in many."""
    fields = {"max_output_tok" + "e" * (place % 3) + f"{place:04}": 0 for place in range(900)}
    response = {"model": "scripted/demo", "input": "hi"}
    parameter = {"name": "", "parameter_type": "", "description": ""}
    yield post("/v1/responses", response | fields)
    yield post("/v1/responses", response | {f"previous_respons{'x' * place}_id": 0 for place in range(900)})
    for more in ({}, {"requird": False}):
        tool = {"name": "t", "parameters": [parameter | more] * 40_000}
        yield post("/v1/agents", {"agent_config": {"model": "m", "instructions": "", "client_tools": [tool]}})


@case
def many_messages() -> Case:
    session = yield from create_session()
    for count in (66_000, 10_000):
        messages = [{"role": "user", "content": ""}] * count
        yield post(f"{session}/turn", {"messages": messages})
        yield post("/v1/responses", {"model": "scripted/demo", "input": messages})
        yield post("/v1/chat/completions", {"model": "scripted/demo", "messages": messages})
        yield post("/v1/conversations", {"items": messages})


@case
def long_text() -> Case:
    yield from talk("x" * (MOST - 200))


@case
def long_text_of_short_words() -> Case:
    yield from talk("a " * (MOST // 2 - 200))


@case
def long_text_of_spaces() -> Case:
    yield from talk("say:" + " " * (MOST - 200) + "x")


@case
def long_text_in_four_bytes_a_character() -> Case:
    yield from talk("🙂" + "x" * (MOST - 2_000))


@case
def long_text_as_escapes() -> Case:
    yield from talk("\\u00e9" * (MOST // 6 - 200))


@case
def long_text_of_quotes() -> Case:
    yield from talk('\\"' * (MOST // 2 - 200))


def talk(text: str) -> Case:
    """Send a long text to each of the APIs, and read it back."""
    for model in ("scripted/demo", "openai/any"):
        session = yield from create_session(model=model)
        message = {"role": "user", "content": "TEXT"}
        for request in (
            post(f"{session}/turn", say({"messages": [message]}, text)),
            post(f"{session}/turn", say({"messages": [message], "stream": True}, text)),
            post("/v1/responses", say({"model": model, "input": "TEXT"}, text)),
            post("/v1/chat/completions", say({"model": model, "messages": [message]}, text)),
            get(session),
        ):
            answer = yield request
            assert answer.status in (200, 400, 413), answer.body[:500]


def say(body: dict[str, Any], text: str) -> bytes:
    """Return a body with a text that is already JSON."""
    return post("/", body).body.replace(b"TEXT", text.encode())


@case
def events_of_the_worker() -> Case:
    for value in (
        b"[" + fill(b"0,", 390_000) + b"0]",
        b"[" + fill(b"{},", 1_000_000) + b"{}]",
        b'"' + fill(b"x", 1_000_000) + b'"',
        b'"\\ud800"',
        b"NaN",
        b"1e999",
        b"[" * 500 + b"]" * 500,
    ):
        for kind in (b"Stint Turn Requested", b"Stint Response Requested", b"Other"):
            detail = b'{"model": "scripted/demo", "input": %b, "messages": %b}' % (value, value)
            answer: Answer = yield Event(b'{"detail-type": "%b", "detail": %b}' % (kind, detail))
            assert answer.status == 200, answer.body[:500]


@case
def messages_of_the_queue() -> Case:
    for body in (
        "[" * 100_000,
        "[" + "{}," * 80_000 + "{}]",
        '"\\ud800"',
        "1" * 5_000,
        '{"kind": "\\ud800"}',
        "\ud800",
    ):
        message = {"messageId": "m", "receiptHandle": "r", "body": body, "eventSource": "aws:sqs", "attributes": {}}
        answer: Answer = yield Event(json.dumps({"Records": [message]}).encode())
        assert answer.json() == {"batchItemFailures": []}


@case
def addresses() -> Case:
    """Send paths, queries and headers that are malformed or very long."""
    for path in (
        "/v1/agents/%ff",
        "/v1/agents/%ed%a0%80",
        "/v1/agents/%00",
        "/v1/agents/" + "%41" * 20_000,
        "/v1/agents/" + "a/" * 30_000,
        "/" * 60_000,
        "/v1/responses/" + "a" * 60_000,
        "/v1/agents?" + "a=1&" * 15_000,
        "/v1/agents?limit=" + "9" * 5_000,
        "/v1/agents?start_index=" + "9" * 400,
        "/v1/agents?limit=%ed%a0%80",
        "/v1/responses?after=%ed%a0%80&model=%ff%00",
        "/v1/responses?after=" + "%f0%9f%99%82" * 5_000,
        "/v1/toolgroups/" + "%25" * 20_000,
    ):
        for method in ("GET", "DELETE", "POST"):
            answer = yield Request(method, path)
            assert answer.status < 500, (method, path[:80], answer.body[:300])


@case
def headers() -> Case:
    for text in ("[" * 60_000, "{" + '"a":{},' * 8_000 + '"b":1}', "\xff\xfe", '{"a": "\\ud800"}', "9" * 60_000, "é"):
        for name in ("X-LlamaStack-Provider-Data", "content-type", "x-amzn-trace-id", "x-llamastack-client-version"):
            body = b'{"model": "scripted/demo", "input": "say: ok"}'
            answer = yield Request("POST", "/v1/responses", body, {"content-type": "application/json", name: text})
            assert answer.status < 500, (name, text[:40], answer.body[:300])
