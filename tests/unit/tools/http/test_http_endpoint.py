import asyncio
import base64
import json
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.content import ImageContentItem, text_of
from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.http_calls import LONGEST_MESSAGE
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome
from stint.tools.redaction import RedactedProvider

PNG = b"\x89PNG\r\n\x1a\n a dot"
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "title": {"type": "string"}, "labels": {"type": "array"}, "notify": {}},
    "required": ["id"],
}


@pytest.fixture
def tools(guard: Guard) -> HttpEndpoints:
    return HttpEndpoints(guard)


def group(server: ScriptedHTTPServer | str, **definition: Any) -> Toolgroup:
    base = server if isinstance(server, str) else server.url
    definition["url"] = f"{base}{definition.get('url', '/')}"
    tool = {"name": "ticket", "description": "Tickets.", "parameters": SCHEMA, **definition}
    return Toolgroup("http::tickets", "remote-execution", config={"tools": [tool]})


async def call(tools: HttpEndpoints, toolgroup: Toolgroup, **arguments: Any) -> ToolOutcome:
    return await tools.invoke(toolgroup, Invocation("ticket", arguments, "call_1"))


async def test_the_registration_defines_the_tools(tools: HttpEndpoints) -> None:
    (tool,) = await tools.list_tools(group("https://x.example"), {})

    assert (tool.name, tool.description, tool.parameters) == ("ticket", "Tickets.", SCHEMA)


async def test_templates_place_the_arguments(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    toolgroup = group(
        server,
        url="/tickets/{id}?v=1",
        method="post",
        params={"notify": "{notify}", "fixed": True},
        headers={"X-Title": "about {title}", "X-Fixed": "yes"},
        body={"ticket": {"title": "{title}", "labels": "{labels}", "from": "agent {id}"}, "missing": "{notify}"},
    )

    outcome = await call(tools, toolgroup, id="a/b c", title="tea", labels=["x", {"y": 1}])

    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/tickets/a%2Fb%20c?v=1&fixed=true")
    assert (request.headers["x-title"], request.headers["x-fixed"]) == ("about tea", "yes")
    assert request.headers["content-type"] == "application/json"
    body = {"ticket": {"title": "tea", "labels": ["x", {"y": 1}], "from": "agent a/b c"}}
    assert request.json() == body
    assert (json.loads(text_of(outcome.content)), outcome.error) == (body, False)


@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD"])
async def test_other_arguments_go_into_the_query_of_a_request_without_a_body(
    tools: HttpEndpoints, server: ScriptedHTTPServer, method: str
) -> None:
    server.script(Reply())

    await call(tools, group(server, method=method), id="1&2", labels=["x", "y"], extra={"z": True})

    assert server.requests[0].path == "/?id=1%262&labels=x&labels=y&extra=%7B%22z%22%3A+true%7D"
    assert server.requests[0].body == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_other_arguments_are_the_fields_of_a_body(
    tools: HttpEndpoints, server: ScriptedHTTPServer, method: str
) -> None:
    await call(tools, group(server, method=method, body={"fixed": 1}), id="1", labels=[])
    await call(tools, group(server, method=method), id="1")

    assert [request.json() for request in server.requests] == [{"id": "1", "labels": [], "fixed": 1}, {"id": "1"}]


async def test_a_body_may_be_a_text_or_an_argument(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    await call(tools, group(server, method="POST", body='["{title}"]'), id="1", title="tea")
    await call(tools, group(server, method="POST", body="{labels}"), labels=["x"])

    text, value = server.requests
    assert (text.path, text.body, text.headers["content-type"]) == (
        "/?id=1",
        b'["tea"]',
        "text/plain; charset=utf-8",
    )
    assert (value.path, value.json()) == ("/", ["x"])


async def test_a_call_without_a_key_has_its_id_as_the_idempotency_key(
    tools: HttpEndpoints, server: ScriptedHTTPServer
) -> None:
    await call(tools, group(server), id="1")
    await tools.invoke(group(server), Invocation("ticket", {}, "ü\r\nX: y"))

    assert [request.headers["idempotency-key"] for request in server.requests] == ["call_1", "%C3%BC%0D%0AX: y"]


@pytest.mark.parametrize("value", ["..", ".", "", None])
async def test_an_argument_cannot_leave_its_segment(
    tools: HttpEndpoints, server: ScriptedHTTPServer, value: str | None
) -> None:
    arguments = {} if value is None else {"id": value}

    outcome = await call(tools, group(server, url="/tickets/{id}/notes"), **arguments)

    assert outcome.error
    assert "'id' is part of the URL" in text_of(outcome.content)
    assert server.requests == []


async def test_a_large_argument_cannot_stand_in_many_places(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    toolgroup = group(server, method="POST", body={"all": ["{text}"] * 10, "text": "{text}{text}"})

    outcome = await call(tools, toolgroup, text="x" * 500_001)

    assert outcome.error
    assert "fill 6000012 characters" in text_of(outcome.content)
    assert server.requests == []


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "ä", "\x00"])
async def test_an_argument_cannot_break_a_header(tools: HttpEndpoints, server: ScriptedHTTPServer, value: str) -> None:
    outcome = await call(tools, group(server, headers={"X-Title": "{title}"}), title=value)

    assert outcome.error
    assert "X-Title" in text_of(outcome.content)
    assert server.requests == []


async def test_a_secret_in_the_words_of_a_failure_is_not_cut_in_two(
    tools: HttpEndpoints, server: ScriptedHTTPServer
) -> None:
    toolgroup = group(server, headers={"Authorization": "Bearer abcdefgh"})
    server.script(Reply((b"x" * (LONGEST_MESSAGE - 4) + b"abcdefgh",), 403))

    outcome = await RedactedProvider(tools).invoke(toolgroup, Invocation("ticket", {"id": "1"}, "call_1"))

    assert "abcd" not in text_of(outcome.content)


async def test_a_callers_credentials_go_to_their_origin_only(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    other = {"https://x.example": {"X": "y"}}
    data = {"http_headers": {f"{server.url}/": {"Authorization": "Bearer mine-alone"}, **other}}
    toolgroup = group(server, headers={"X-Fixed": "theirs"})

    await tools.invoke(toolgroup, Invocation("ticket", {}, "c", data))
    await tools.invoke(group(server), Invocation("ticket", {}, "c", {"http_headers": other}))

    first, second = (request.headers for request in server.requests)
    assert first["authorization"] == "Bearer mine-alone"
    assert "authorization" not in second
    assert "x" not in first | second


@pytest.mark.parametrize("headers", [["x"], "x", {"https://x.example": 7}])
async def test_malformed_credentials_are_the_callers_fault(tools: HttpEndpoints, headers: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^The .*http_headers"):
        await tools.invoke(group("https://x.example"), Invocation("ticket", {}, "c", {"http_headers": headers}))


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("text/html; charset=latin-1", "é"),
        ("application/problem+json", "\ufffd"),
        ("application/xml", "\ufffd"),
        ("", "\ufffd"),
    ],
)
async def test_text_is_content_in_its_own_encoding(
    tools: HttpEndpoints, server: ScriptedHTTPServer, media_type: str, text: str
) -> None:
    server.script(Reply((b"\xe9",), headers={"Content-Type": media_type}))

    outcome = await call(tools, group(server), id="1")

    assert (text_of(outcome.content), outcome.metadata) == (text, {"status": 200})


async def test_images_are_content_other_files_attached(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    server.script(
        Reply((PNG,), headers={"Content-Type": "image/png"}),
        Reply((b"%PDF-",), headers={"Content-Type": "application/pdf"}),
        Reply((b"no image",), headers={"Content-Type": "image/png"}),
    )

    image, file, broken = [await call(tools, group(server), id="1") for _ in range(3)]

    assert isinstance(image.content, list)
    assert isinstance(image.content[0], ImageContentItem)
    assert image.content[0].image.data == base64.b64encode(PNG).decode()
    assert text_of(file.content) == "[The user received the response as an attachment: application/pdf, 5 bytes]"
    assert file.metadata[ATTACHMENTS] == [
        {"content": {"uri": "data:application/pdf;base64,JVBERi0="}, "mime_type": "application/pdf"}
    ]
    assert broken.metadata[ATTACHMENTS][0]["mime_type"] == "image/png"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply((b'{"error": "no such ticket"}',), 404), '404: {"error": "no such ticket"}'),
        (Reply((b"x" * 5000,), 500), "x" * 2000 + "..."),
        (Reply((b"\x89PNG",), 502, {"Content-Type": "image/png"}), "502: image/png"),
        (Reply(status=302, headers={"Location": "http://169.254.169.254/"}), "redirects are not followed"),
        (Reply(status=0), "could not be called (RemoteProtocolError)"),
        (Reply((b"x" * 6_000_000,) * 2), "more than 3,000,000 bytes"),
    ],
)
async def test_failures_are_outcomes(
    tools: HttpEndpoints, server: ScriptedHTTPServer, reply: Reply, words: str
) -> None:
    server.script(reply)

    outcome = await call(tools, group(server, timeout=10), id="1")

    assert outcome.error
    assert words in text_of(outcome.content)
    assert len(server.requests) == 1


async def test_a_silent_server_is_timed_out(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    server.script(Reply(ending="hang"))
    calling = asyncio.create_task(call(tools, group(server, timeout=10), id="1"))
    async with asyncio.timeout(30):
        while not server.requests:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.005)
    CLOCK.move(10)

    outcome = await calling

    assert outcome.error
    assert "within 10 s" in text_of(outcome.content)
    assert len(server.requests) == 1


async def test_an_answer_without_content_says_so(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    server.script(Reply())

    assert text_of((await call(tools, group(server), id="1")).content) == "(200, no content)"


async def test_an_unknown_tool_is_an_outcome(tools: HttpEndpoints) -> None:
    outcome = await tools.invoke(group("https://x.example"), Invocation("nosuch", {}, "c"))

    assert outcome.error
    assert "'nosuch'. The tools are: ticket." in text_of(outcome.content)


async def test_an_endpoint_that_is_not_there_is_unavailable(tools: HttpEndpoints) -> None:
    with pytest.raises(ToolUnavailable, match="cannot be reached"):
        await call(tools, group("http://127.0.0.1:1"), id="1")


async def test_the_guard_holds_for_endpoints(server: ScriptedHTTPServer) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await call(HttpEndpoints(Guard()), group(server), id="1")

    assert caught.value.code == "url_not_allowed"
    assert server.requests == []


GOOD = {"name": "t", "url": "https://x.example"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, '{"tools": [...]}'),
        ({"tools": {"name": "t"}}, '{"tools": [...]}'),
        ({"tools": ["t"]}, "tools.0"),
        ({"tools": [GOOD, {"name": "u"}]}, "tools.1: url: Field required"),
        ({"tools": [GOOD, GOOD]}, "define 't' twice"),
        ({"tools": [{**GOOD, "name": "a.b"}]}, "'a.b' is not a name that models accept"),
        ({"tools": [{**GOOD, "name": "a b"}]}, "'a b' is not a name that models accept"),
        ({"tools": [{**GOOD, "name": "a" * 65}]}, "is not a name that models accept"),
        ({"tools": [{**GOOD, "name": ""}]}, "'' is not a name that models accept"),
        ({"tools": [{**GOOD, "url": "ftp://x.example"}]}, "http://"),
        ({"tools": [{**GOOD, "url": "https://{host}/x"}]}, "cannot come from an argument"),
        ({"tools": [{**GOOD, "url": "https://x{a}@y/"}]}, "cannot come from an argument"),
        ({"tools": [{**GOOD, "method": "TRACE"}]}, "method"),
        ({"tools": [{**GOOD, "timeout": 0}]}, "timeout"),
        ({"tools": [{**GOOD, "timeout": 10_000}]}, "timeout"),
        ({"tools": [{**GOOD, "parameters": {"type": "string"}}]}, "JSON schema of an object"),
        ({"tools": [{**GOOD, "timout": 5}]}, "tools.0: timout: Extra inputs are not permitted"),
        ({"tools": [{**GOOD, "function": "f"}]}, "tools.0: function: Extra inputs are not permitted"),
        ({"tools": [{**GOOD, "headers": {"Host": "y"}}]}, "'Host' is set by the connection"),
        ({"tools": [{**GOOD, "headers": {"A": "s3cret\n"}}]}, "'A' has an invalid name or value"),
    ],
)
async def test_a_malformed_registration_is_told_where(tools: HttpEndpoints, config: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await tools.list_tools(Toolgroup("http::x", "remote-execution", config=config), {})

    assert "'http::x'" in caught.value.message
    assert words in caught.value.message
    assert "s3cret" not in caught.value.message


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/latest/{path}", "http://10.0.0.1:8080/x", "https://user:pw@127.0.0.1/", "http://[::]/{x}"],
)
async def test_a_host_that_may_not_be_called_is_refused_when_it_is_registered(tools: HttpEndpoints, url: str) -> None:
    fine = {"name": "fine", "url": "http://127.0.0.1/"}
    toolgroup = Toolgroup("http::x", "remote-execution", config={"tools": [fine, {"name": "bad", "url": url}]})

    with pytest.raises(InvalidRequest, match=r"tool 'bad' of the toolgroup 'http::x'") as refused:
        await tools.check(toolgroup)

    assert (refused.value.code, refused.value.param) == ("url_not_allowed", "args")


async def test_a_registration_is_checked_without_calling_anybody(
    tools: HttpEndpoints, server: ScriptedHTTPServer
) -> None:
    await tools.check(group(server, url="/{id}"))

    with pytest.raises(InvalidRequest, match="tools"):
        await tools.check(Toolgroup("http::x", "remote-execution", config={}))
    assert server.requests == []


async def test_the_idempotency_key_distinguishes_calls_to_which_a_model_gives_the_same_id(
    tools: HttpEndpoints, server: ScriptedHTTPServer
) -> None:
    for key in ("turn:1:call_1", "turn:2:call_1"):
        await tools.invoke(group(server), Invocation("ticket", {}, "call_1", key=key))

    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert keys == ["turn:1:call_1", "turn:2:call_1"]
    assert {request.headers["stint-tool-call-id"] for request in server.requests} == {"call_1"}


async def test_a_registration_has_at_most_64_headers_in_a_tool(tools: HttpEndpoints) -> None:
    headers = {f"X-{number}": "a" for number in range(65)}
    config = {"tools": [{"name": "t", "url": "https://93.184.215.14/", "headers": headers}]}

    with pytest.raises(InvalidRequest, match="65 headers; at most 64"):
        await tools.check(Toolgroup("g", "remote-execution", config=config))
