import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS
from tests.clock import CLOCK
from tests.servers.mcp_replies import refuse_discovery
from tests.servers.mcp_server import PNG, TOKEN
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.caller import set_principal, set_tenant
from stint.domain.content import ImageContentItem, text_of
from stint.domain.errors import InvalidRequest, StintError, ToolUnauthorized, ToolUnavailable, UnresolvableURL
from stint.domain.known_secrets import begin_request, remember
from stint.domain.principals import ANONYMOUS
from stint.net.guard import Guard
from stint.tools.mcp.provider import SLOW_SECONDS, McpTools
from stint.tools.mcp.session import HANDSHAKE_REVISIONS, REVISION
from stint.tools.outcomes import data_url
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

PATHS = ["/mcp", "/json/mcp", "/sse", "/stateless/mcp", "/stateless/json/mcp"]
Count = Callable[[str], int]


def answer(number: int, result: dict[str, Any]) -> Reply:
    return Reply((json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode(),))


# What a server says in one listing: initialize, the notification that follows it, the list.
LISTING = (
    answer(0, {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}),
    Reply(status=202),
    answer(1, {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
)


def group(url: str) -> Toolgroup:
    return Toolgroup("mcp::test", "model-context-protocol", mcp_endpoint=url)


def call(name: str, /, provider_data: dict[str, Any] | None = None, **arguments: Any) -> Invocation:
    return Invocation(name, arguments, "call_1", provider_data or {})


def credentials(url: str, value: str = TOKEN) -> dict[str, Any]:
    return {"mcp_headers": {url: {"Authorization": value}}}


@pytest.fixture(params=PATHS)
def url(mcp_server: str, request: pytest.FixtureRequest) -> str:
    return f"{mcp_server}{request.param}"


@pytest.fixture
def server(server: ScriptedHTTPServer) -> ScriptedHTTPServer:
    """Return a server of an older revision, whose script begins with the first message of a session."""
    server.aside = refuse_discovery
    return server


@pytest.fixture
def tools(guard: Guard) -> McpTools:
    return McpTools(guard, timeout=60)


async def invoke(tools: McpTools, url: str, name: str, /, **arguments: Any) -> ToolOutcome:
    return await tools.invoke(group(url), call(name, **arguments))


async def test_tools_are_listed_with_their_whole_schemas(tools: McpTools, url: str) -> None:
    listed = {tool.name: tool for tool in await tools.list_tools(group(url), {})}

    assert listed["add"].description == "Add two integers."
    order = listed["order"].parameters
    assert order["required"] == ["items"]
    assert order["properties"]["items"]["items"] == {"$ref": "#/$defs/Item"}
    assert order["$defs"]["Item"]["properties"]["size"]["enum"] == ["small", "large"]
    assert order["$defs"]["Item"]["required"] == ["name"]


async def test_a_call_gives_the_tools_content(tools: McpTools, url: str) -> None:
    outcome = await invoke(tools, url, "order", items=[{"name": "tea", "size": "large"}], note=None)

    assert (text_of(outcome.content), outcome.error, outcome.metadata) == ("large tea (None)", False, {})


async def test_structured_content_is_metadata_beside_the_text(tools: McpTools, url: str) -> None:
    outcome = await invoke(tools, url, "total", numbers=[1, 2])

    assert json.loads(text_of(outcome.content)) == {"total": 3}
    assert outcome.metadata == {"structured_content": {"total": 3}}


async def test_structured_content_alone_is_the_text_too(tools: McpTools, url: str) -> None:
    assert text_of((await invoke(tools, url, "structured_only")).content) == '{"answer":42}'


async def test_a_tool_that_fails_is_an_outcome(tools: McpTools, url: str) -> None:
    outcome = await invoke(tools, url, "boom", why="rain")

    assert outcome.error
    assert "boom: rain" in text_of(outcome.content)


@pytest.mark.parametrize(("name", "arguments"), [("nosuch", {}), ("add", {"a": "x"})])
async def test_an_unknown_tool_or_wrong_arguments_are_outcomes(
    tools: McpTools, url: str, name: str, arguments: dict[str, Any]
) -> None:
    outcome = await tools.invoke(group(url), Invocation(name, arguments, "call_1"))

    assert outcome.error
    assert name in text_of(outcome.content)


@pytest.mark.parametrize("name", ["nothing", "nothing_structured"])
async def test_a_tool_that_says_nothing_gives_empty_content(tools: McpTools, url: str, name: str) -> None:
    outcome = await invoke(tools, url, name)

    assert (outcome.content, outcome.metadata) == ([], {})


async def test_messages_beside_the_answer_are_passed_over(tools: McpTools, url: str) -> None:
    assert text_of((await invoke(tools, url, "report", steps=3)).content) == "reported"


async def test_images_are_content_for_the_model(tools: McpTools, url: str) -> None:
    outcome = await invoke(tools, url, "picture")

    assert isinstance(outcome.content, list)
    text, image = outcome.content
    assert text_of([text]) == "a dot"
    assert isinstance(image, ImageContentItem)
    assert data_url(PNG, "image/png").endswith(f",{image.image.data}")
    assert outcome.metadata == {}


async def test_what_a_model_cannot_read_is_attached_for_the_user(tools: McpTools, url: str) -> None:
    outcome = await invoke(tools, url, "mixed")

    assert [(one["content"]["uri"][:27], one["mime_type"]) for one in outcome.metadata[ATTACHMENTS]] == [
        ("data:image/svg+xml;base64,P", "image/svg+xml"),
        ("data:audio/wav;base64,AAAA", "audio/wav"),
        ("data:image/png;base64,iVBOR", "image/png"),
        ("https://files.example/r.csv", "text/csv"),
        ("data:application/pdf;base64", "application/pdf"),
    ]
    assert text_of(outcome.content).splitlines() == [
        "for the model",
        "[The user received an attachment: image (image/svg+xml)]",
        "[The user received an attachment: audio (audio/wav)]",
        "[The user received an attachment: report (text/csv) https://files.example/r.csv]",
        "[The user received an attachment: file:///r.pdf (application/pdf)]",
        "plain text",
    ]


async def test_a_call_takes_one_session_and_one_request_for_the_tool(
    tools: McpTools, mcp_server: str, seen: Count
) -> None:
    await invoke(tools, f"{mcp_server}/mcp", "add", a=1, b=2)
    before = seen("POST /mcp"), seen("DELETE /mcp")

    await invoke(tools, f"{mcp_server}/mcp", "add", a=1, b=2)

    assert (seen("POST /mcp") - before[0], seen("DELETE /mcp") - before[1]) == (3, 1)


async def test_the_transport_of_an_endpoint_is_remembered(tools: McpTools, mcp_server: str, seen: Count) -> None:
    await invoke(tools, f"{mcp_server}/sse", "add", a=1, b=2)
    before = seen("POST /sse")

    await invoke(tools, f"{mcp_server}/sse", "add", a=1, b=2)

    assert before > 0
    assert seen("POST /sse") == before


@pytest.mark.parametrize("path", ["/mcp", "/stateless/mcp"])
async def test_a_list_is_kept_for_its_time(guard: Guard, mcp_server: str, seen: Count, path: str) -> None:
    tools = McpTools(guard, list_seconds=60)
    url, posts = f"{mcp_server}{path}", f"POST {path}"
    first = await tools.list_tools(group(url), {})
    before = seen(posts)

    assert await tools.list_tools(group(url), {}) == first
    assert seen(posts) == before

    CLOCK.move(60)
    await tools.list_tools(group(url), {})
    assert seen(posts) > before


async def test_a_list_is_read_again_after_a_call_of_a_tool_that_is_gone(tools: McpTools, guard: Guard) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.servers.mcp_server", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    url = f"http://127.0.0.1:{(await process.stdout.readline()).decode().strip()}/mcp"
    listed = await tools.list_tools(group(url), {})
    await invoke(tools, url, "retire")

    assert "add" in {tool.name for tool in await tools.list_tools(group(url), {})}
    assert (await invoke(tools, url, "add", a=1, b=2)).error
    assert {tool.name for tool in listed} - {tool.name for tool in await tools.list_tools(group(url), {})} == {"add"}
    process.kill()
    await process.wait()


@dataclass
class Doomed:
    """A real server of the test's own, which the test may kill."""

    process: asyncio.subprocess.Process
    url: str

    async def die(self) -> None:
        self.process.kill()
        await self.process.wait()


@pytest.fixture
async def doomed() -> AsyncIterator[Doomed]:
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    yield Doomed(process, f"http://127.0.0.1:{(await process.stdout.readline()).decode().strip()}/mcp")
    if process.returncode is None:
        process.kill()
        await process.wait()


async def test_the_old_list_holds_when_its_server_is_down(guard: Guard, doomed: Doomed) -> None:
    tools = McpTools(guard, list_seconds=0)
    listed = await tools.list_tools(group(doomed.url), {})
    await doomed.die()

    assert await tools.list_tools(group(doomed.url), {}) == listed
    with pytest.raises(ToolUnavailable, match="cannot be reached"):
        await invoke(tools, doomed.url, "add", a=1, b=2)
    with pytest.raises(ToolUnavailable, match="cannot be reached"):
        await tools.list_tools(group(doomed.url), credentials(doomed.url))


async def test_the_old_list_does_not_hold_for_credentials_that_are_refused(
    guard: Guard, server: ScriptedHTTPServer
) -> None:
    tools = McpTools(guard, list_seconds=0)
    server.script(*LISTING, Reply(status=401))
    assert len(await tools.list_tools(group(server.url), {})) == 1

    with pytest.raises(ToolUnauthorized):
        await tools.list_tools(group(server.url), {})


async def until_asked(server: ScriptedHTTPServer) -> None:
    """Wait until a request has reached a server, which is in another thread."""
    async with asyncio.timeout(30):
        while not server.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_silent_server_is_waited_for_once_in_a_while(guard: Guard, server: ScriptedHTTPServer) -> None:
    tools = McpTools(guard, timeout=20, retry_seconds=60)
    server.script(Reply(ending="hang"), *LISTING)
    waiting = asyncio.create_task(tools.list_tools(group(server.url), {}))
    await until_asked(server)
    CLOCK.move(20)

    with pytest.raises(ToolUnavailable, match=r"within 20 s"):
        await waiting
    for _ in range(2):
        with pytest.raises(ToolUnavailable, match=r"within 20 s"):
            await tools.list_tools(group(server.url), {})
    assert len(server.requests) == 1

    CLOCK.move(60)
    assert len(await tools.list_tools(group(server.url), {})) == 1


async def test_a_silent_server_that_somebody_else_gave_up_is_remembered_too(
    guard: Guard, server: ScriptedHTTPServer
) -> None:
    tools = McpTools(guard)
    server.script(Reply(ending="hang"))
    listing = asyncio.create_task(tools.list_tools(group(server.url), {}))
    await until_asked(server)
    CLOCK.move(SLOW_SECONDS + 1)
    listing.cancel()
    await asyncio.gather(listing, return_exceptions=True)

    with pytest.raises(ToolUnavailable, match="did not list its tools"):
        await asyncio.wait_for(tools.list_tools(group(server.url), {}), 30)

    assert len(server.requests) == 1


async def test_a_server_that_refuses_at_once_is_asked_again_at_once(guard: Guard, server: ScriptedHTTPServer) -> None:
    server.script(Reply(status=500), *LISTING)
    tools = McpTools(guard)

    with pytest.raises(ToolUnavailable):
        await tools.list_tools(group(server.url), {})

    assert len(await tools.list_tools(group(server.url), {})) == 1


async def test_a_silent_server_with_an_old_list_is_not_waited_for_long(
    guard: Guard, server: ScriptedHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stint.tools.mcp.provider.REFRESH_SECONDS", 0.1)
    tools = McpTools(guard, list_seconds=0)
    server.script(*LISTING, Reply(ending="hang"))
    listed = await tools.list_tools(group(server.url), {})

    assert await asyncio.wait_for(tools.list_tools(group(server.url), {}), 30) == listed


async def test_what_is_known_is_told_without_asking(tools: McpTools, mcp_server: str, seen: Count) -> None:
    url = f"{mcp_server}/mcp"
    assert tools.known_tools(group(url), {}) is None
    listed = await tools.list_tools(group(url), {})
    before = seen("POST /mcp")

    assert tools.known_tools(group(url), {}) == listed
    assert tools.known_tools(group(url), credentials(url)) is None
    assert seen("POST /mcp") == before


@pytest.mark.parametrize("config", [{"timeout": 0.5}, {"timeout": 9, "timeouts": {"sleep": 0.5}}])
async def test_a_registration_has_time_outs_of_its_own(
    tools: McpTools, mcp_server: str, config: dict[str, Any]
) -> None:
    toolgroup = Toolgroup("mcp::test", "model-context-protocol", f"{mcp_server}/mcp", config)

    outcome = await tools.invoke(toolgroup, call("sleep", seconds=5))

    assert "within 0.5 s" in text_of(outcome.content)
    assert not (await tools.invoke(toolgroup, call("add", a=1, b=2))).error


@pytest.mark.parametrize("config", [{"timeout": 0}, {"timeout": 841}, {"timeout": "long"}, {"timeouts": {"add": -1}}])
async def test_a_time_out_that_cannot_be_is_refused_when_it_is_registered(
    tools: McpTools, mcp_server: str, config: dict[str, Any]
) -> None:
    toolgroup = Toolgroup("mcp::test", "model-context-protocol", f"{mcp_server}/mcp", config)

    with pytest.raises(InvalidRequest, match=r"mcp::test.*timeout") as refused:
        await tools.check(toolgroup)

    assert refused.value.param == "args"


@pytest.mark.parametrize("url", ["http://169.254.169.254/mcp", "ftp://x.example", "http://user:pw@127.0.0.1/"])
async def test_an_endpoint_that_may_not_be_called_is_refused_when_it_is_registered(tools: McpTools, url: str) -> None:
    with pytest.raises(InvalidRequest, match="mcp::test") as refused:
        await tools.check(group(url))

    assert (refused.value.code, refused.value.param) == ("url_not_allowed", "mcp_endpoint")


async def test_a_registration_is_checked_without_asking_the_server(tools: McpTools) -> None:
    await tools.check(group("http://127.0.0.1:1/mcp"))


@pytest.mark.parametrize("path", ["/private/mcp", "/private/sse", "/private/stateless/mcp"])
async def test_missing_or_wrong_credentials_are_told_apart_from_failures(
    tools: McpTools, mcp_server: str, path: str
) -> None:
    url = f"{mcp_server}{path}"

    for data in ({}, credentials(url, "Bearer wrong-token")):
        with pytest.raises(
            ToolUnavailable,
            match=r"^The MCP server.*refuses the credentials \(401 Unauthorized\).*mcp_headers.*`authorization`",
        ) as caught:
            await tools.list_tools(group(url), data)
        assert "wrong-token" not in caught.value.message
        with pytest.raises(ToolUnavailable, match="refuses the credentials"):
            await tools.invoke(group(url), call("add", data, a=1, b=2))


@pytest.mark.parametrize("path", ["/private/mcp", "/private/sse", "/private/stateless/mcp"])
@pytest.mark.parametrize("form", ["object", "lines", "slash"])
async def test_credentials_come_with_each_request(tools: McpTools, mcp_server: str, path: str, form: str) -> None:
    url = f"{mcp_server}{path}"
    data = {
        "object": credentials(url),
        "lines": {"mcp_headers": {url: [f"Authorization: {TOKEN}"], "https://other.example": ["X: y"]}},
        "slash": credentials(f"{url}/"),
    }[form]

    outcome = await tools.invoke(group(url), call("header", data, name="authorization"))

    assert text_of(outcome.content) == TOKEN


@pytest.mark.parametrize("path", ["/private/mcp", "/private/stateless/mcp"])
async def test_a_list_is_not_shared_between_callers_with_other_credentials(
    tools: McpTools, mcp_server: str, path: str
) -> None:
    url = f"{mcp_server}{path}"

    assert await tools.list_tools(group(url), credentials(url))
    with pytest.raises(ToolUnavailable):
        await tools.list_tools(group(url), {})


@pytest.mark.parametrize("worker", [False, True])
async def test_a_list_is_not_shared_between_tenants(
    tools: McpTools, mcp_server: str, seen: Count, worker: bool
) -> None:
    url = f"{mcp_server}/mcp"
    for tenant in ("acme", "zoo"):
        set_principal(None if worker else replace(ANONYMOUS, tenant=tenant))
        set_tenant(tenant if worker else "")
        before = seen("POST /mcp")
        assert tools.known_tools(group(url), {}) is None

        await tools.list_tools(group(url), {})
        assert seen("POST /mcp") > before
        assert tools.known_tools(group(url), {}) is not None


async def test_credentials_for_one_endpoint_do_not_go_to_another(tools: McpTools, mcp_server: str) -> None:
    data = credentials("https://other.example/mcp")

    outcome = await tools.invoke(group(f"{mcp_server}/mcp"), call("header", data, name="authorization"))

    assert text_of(outcome.content) == "None"


@pytest.mark.parametrize(
    "headers", ["x", {"url": "x"}, {"url": {"Host": "x"}}, {"url": {"A": "b\r\nC: d"}}, {"url": 1}]
)
async def test_malformed_headers_are_the_callers_fault(tools: McpTools, headers: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^The .*mcp_headers"):
        await tools.list_tools(group("url"), {"mcp_headers": headers})


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_a_slow_tool_is_timed_out_and_nothing_is_left_running(
    guard: Guard, mcp_server: str, path: str, seen: Count
) -> None:
    tools = McpTools(guard, timeout=1)
    tasks = asyncio.all_tasks()

    outcome = await invoke(tools, f"{mcp_server}{path}", "sleep", seconds=30)

    assert outcome.error
    assert "did not respond within 1 s" in text_of(outcome.content)
    assert asyncio.all_tasks() == tasks


@pytest.mark.parametrize("path", PATHS)
async def test_a_cancelled_call_ends_at_once_and_leaves_nothing(tools: McpTools, mcp_server: str, path: str) -> None:
    await invoke(tools, f"{mcp_server}{path}", "add", a=1, b=2)
    tasks = asyncio.all_tasks()
    running = asyncio.create_task(invoke(tools, f"{mcp_server}{path}", "sleep", seconds=30))
    await asyncio.sleep(0.3)

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 30)
    assert asyncio.all_tasks() == tasks


async def test_calls_run_side_by_side(tools: McpTools, mcp_server: str) -> None:
    urls = [f"{mcp_server}{path}" for path in PATHS * 3]

    outcomes = await asyncio.gather(*(invoke(tools, url, "add", a=n, b=1) for n, url in enumerate(urls)))

    assert [text_of(outcome.content) for outcome in outcomes] == [str(n + 1) for n in range(len(urls))]


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_over_the_limit_is_an_outcome_at_once(guard: Guard, mcp_server: str, path: str) -> None:
    tools = McpTools(guard, timeout=60, max_bytes=100_000)

    outcome = await asyncio.wait_for(invoke(tools, f"{mcp_server}{path}", "big", size=200_000), 30)

    assert outcome.error
    assert "more than 100,000 bytes" in text_of(outcome.content)


async def test_the_guard_holds_for_mcp_servers(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await McpTools(Guard()).list_tools(group(url), {})

    assert caught.value.code == "url_not_allowed"


async def test_a_server_that_is_not_there_is_unavailable(tools: McpTools) -> None:
    with pytest.raises(ToolUnavailable, match=r"^The MCP server at 127.0.0.1:1 cannot be reached \(ConnectError\)"):
        await tools.list_tools(group("http://127.0.0.1:1/mcp?key=secret"), {})


@pytest.mark.parametrize("url", ["http://x\n.example", "ftp://x.example", "http://user:pw@x.example"])
async def test_an_endpoint_that_is_no_url_is_refused(tools: McpTools, url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await tools.list_tools(group(url), {})

    assert caught.value.code == "url_not_allowed"


async def test_a_host_that_nobody_knows_is_the_fault_of_the_url() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    with pytest.raises(UnresolvableURL, match=r"^The host 'x.example' cannot be found"):
        await McpTools(Guard(resolve=resolve)).list_tools(group("https://x.example/mcp"), {})


async def test_a_toolgroup_without_an_endpoint_says_so(tools: McpTools) -> None:
    with pytest.raises(InvalidRequest, match=r"mcp::test.*mcp_endpoint"):
        await tools.list_tools(Toolgroup("mcp::test", "model-context-protocol"), {})


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ([Reply(status=500)], "answered 500 to POST"),
        ([Reply(status=429)], "answered 429 to POST"),
        ([Reply(status=404), Reply(status=404)], "answered 404 to POST and 404 to GET"),
        ([Reply(status=405), Reply(status=401)], "refuses the credentials"),
        ([Reply(status=302, headers={"Location": "http://169.254.169.254/"})], "answered 302"),
        ([Reply(status=0)], "cannot be reached"),
        ([Reply((b'{"jsonrpc": "2.0"',), ending="cut")], "cannot be reached"),
        ([Reply((b'{"jsonrpc":"2.0","id":0,"result":{"no":1}}',))], "violated the protocol"),
    ],
)
async def test_a_server_that_fails_is_told_of_at_once(
    tools: McpTools, server: ScriptedHTTPServer, replies: list[Reply], words: str
) -> None:
    server.script(*replies)

    with pytest.raises(ToolUnavailable) as caught:
        await asyncio.wait_for(tools.list_tools(group(f"{server.url}/mcp"), {}), 30)

    assert words in caught.value.message


REFUSED = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "closed on Sundays"}}
JSON = {"Content-Type": "application/json; charset=utf-8"}
PROBLEM = {"Content-Type": "application/problem+json"}
TEXT = {"Content-Type": "text/plain; charset=utf-8"}
EVENTS = {"Content-Type": "text/event-stream"}
AS_EVENT = b": wait\n\nevent: message\ndata: " + json.dumps(REFUSED).encode() + b"\n\n"


@pytest.mark.parametrize(
    "reply",
    [
        Reply((json.dumps(REFUSED).encode(),)),
        Reply((b"data: " + json.dumps(REFUSED).encode() + b"\n\n",), headers={"Content-Type": "text/event-stream"}),
        *[Reply((json.dumps(REFUSED).encode(),), status, JSON) for status in (400, 404, 405, 406, 422, 500, 501, 503)],
        Reply((json.dumps(REFUSED).encode(),), 400, PROBLEM),
        Reply((AS_EVENT,), 400, EVENTS),
        Reply((AS_EVENT,), 500, EVENTS, ending="hang"),
        Reply((AS_EVENT.replace(b"\n", b"\r\n")[:40], AS_EVENT.replace(b"\n", b"\r\n")[40:]), 400, EVENTS),
        Reply((json.dumps(REFUSED | {"error": "closed on Sundays"}).encode(),), 400, JSON),
    ],
)
@pytest.mark.parametrize("acts", [False, True])
async def test_a_server_that_refuses_to_initialize_says_why(
    tools: McpTools, server: ScriptedHTTPServer, reply: Reply, acts: bool
) -> None:
    server.script(reply)

    with pytest.raises(InvalidRequest, match=r"refuses to initialize a session: closed on Sundays\.") as caught:
        await (invoke(tools, server.url, "add") if acts else tools.list_tools(group(server.url), {}))

    assert caught.value.code == "mcp_server_refused"
    assert "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25" in caught.value.message
    assert len(server.requests) == 1


async def test_a_server_of_a_later_revision_is_refused_by_its_name(tools: McpTools, server: ScriptedHTTPServer) -> None:
    server.script(
        answer(0, {"protocolVersion": "2099-01-01", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})
    )

    with pytest.raises(InvalidRequest, match=r"refuses to initialize a session: .*2099-01-01") as caught:
        await tools.list_tools(group(server.url), {})

    assert caught.value.code == "mcp_server_refused"


def test_the_documents_name_the_revisions_that_the_client_speaks() -> None:
    text = (Path(__file__).parents[4] / "docs" / "tools.md").read_text()

    assert set(SUPPORTED_PROTOCOL_VERSIONS) == set(HANDSHAKE_REVISIONS)
    assert set(re.findall(r"20\d\d-\d\d-\d\d", text)) == {*SUPPORTED_PROTOCOL_VERSIONS, REVISION}


@pytest.mark.parametrize(
    "reply",
    [
        Reply((b"[" * 50_000,), 400, JSON),
        Reply((b'{"error": {"message": 5}}',), 400, JSON),
        Reply((b'{"jsonrpc": "2.0", "error": {"message": " "}}',), 400, JSON),
        Reply((b"<html>No.</html>",), 400, {"Content-Type": "text/html"}),
        Reply((b"no " * 200,), 400, TEXT),
        Reply((b"n\0o",), 400, TEXT),
        Reply((b"data: no\n\n",), 400, EVENTS),
        Reply((b"data: {}",), 400, EVENTS, ending="cut"),
        Reply((b": x\n\n" * 20_000,), 400, EVENTS),
        Reply((b"\xff",), 400, JSON),
        Reply((b" " * 3_500_000,), 400, JSON),
        Reply((b'{"error":',), 400, JSON, ending="cut"),
    ],
)
async def test_a_refusal_without_a_reason_is_one_of_the_transport(
    tools: McpTools, server: ScriptedHTTPServer, reply: Reply
) -> None:
    server.script(reply, Reply(status=404))

    with pytest.raises(ToolUnavailable, match="answered 400 to POST and 404 to GET: check the endpoint's URL"):
        await tools.list_tools(group(server.url), {})


async def refusal_of(tools: McpTools, server: ScriptedHTTPServer, *replies: Reply) -> StintError:
    server.script(*replies)
    with pytest.raises(StintError) as caught:
        await tools.list_tools(group(server.url), {})
    return caught.value


@pytest.mark.parametrize(
    "reply",
    [
        Reply((b"initialize is not\n supported",), 400, TEXT),
        Reply((b'{"error": "initialize is not supported", "message": "x"}',), 400, JSON),
        Reply((b'{"title": "Bad Request", "detail": "initialize is not supported"}',), 400, PROBLEM),
        Reply((b'{"error": {"message": "initialize is not supported"}}',), 422, JSON),
    ],
)
async def test_a_text_in_another_form_is_the_reason_if_the_older_transport_fails_too(
    tools: McpTools, server: ScriptedHTTPServer, reply: Reply
) -> None:
    refusal = await refusal_of(tools, server, reply, Reply(status=405))

    assert "refuses to initialize a session: initialize is not supported. Stint speaks" in refusal.message
    assert refusal.code == "mcp_server_refused"
    assert [each.method for each in server.requests] == ["POST", "GET"]


@pytest.mark.parametrize("status", [500, 502, 503])
@pytest.mark.parametrize(
    ("body", "headers"), [(b"upstream", TEXT), (b'{"error": {"code": 503, "message": "busy"}}', JSON)]
)
async def test_an_error_of_a_gateway_is_a_failure_of_the_server(
    tools: McpTools, server: ScriptedHTTPServer, status: int, body: bytes, headers: dict[str, str]
) -> None:
    refusal = await refusal_of(tools, server, Reply((body,), status, headers))

    assert isinstance(refusal, ToolUnavailable)
    assert refusal.message.endswith(f"answered {status} to POST: the server, or a gateway in front of it, has failed")


@pytest.mark.parametrize("status", [404, 405])
async def test_a_text_at_a_wrong_url_is_no_refusal(tools: McpTools, server: ScriptedHTTPServer, status: int) -> None:
    refusal = await refusal_of(tools, server, Reply((b"Not here",), status, TEXT), Reply((b"Nor here",), 404, TEXT))

    assert isinstance(refusal, ToolUnavailable)
    assert "check the endpoint's URL" in refusal.message


async def test_a_server_that_is_busy_is_unavailable_with_its_reason(
    tools: McpTools, server: ScriptedHTTPServer
) -> None:
    refusal = await refusal_of(tools, server, Reply((json.dumps(REFUSED).encode(),), 429, JSON))

    assert isinstance(refusal, ToolUnavailable)
    assert refusal.message.endswith("answered 429 to POST: closed on Sundays")


async def test_an_error_of_a_get_is_not_the_reason(tools: McpTools, server: ScriptedHTTPServer) -> None:
    refusal = await refusal_of(tools, server, Reply(status=400), Reply((json.dumps(REFUSED).encode(),), 405, JSON))

    assert isinstance(refusal, ToolUnavailable)
    assert "closed" not in refusal.message


async def test_a_long_reason_is_cut(tools: McpTools, server: ScriptedHTTPServer) -> None:
    long = json.dumps(REFUSED | {"error": {"code": 1, "message": "x" * 60_000}}).encode()

    assert len((await refusal_of(tools, server, Reply((long,), 400, JSON))).message) < 1_000


@pytest.mark.parametrize("filling", ["", "x" * 480])
async def test_a_reason_has_no_control_characters_and_no_part_of_a_credential(
    tools: McpTools, server: ScriptedHTTPServer, filling: str
) -> None:
    begin_request()
    remember({"sk-callers-token-98765"})
    told = f"{filling}\x1b[31m you\r\nsent sk-callers-token-98765\u202e!"

    refusal = await refusal_of(tools, server, Reply((json.dumps(REFUSED | {"error": told}).encode(),), 500, JSON))

    assert refusal.message.isprintable()
    assert "sk-" not in refusal.message
    assert "[31m you sent ***" in refusal.message


@pytest.mark.parametrize("location", ["http://xn--a/", "http://[::1"])
async def test_a_redirect_to_what_is_not_a_valid_url_is_the_fault_of_the_url(
    tools: McpTools, server: ScriptedHTTPServer, location: str
) -> None:
    for path in PATHS:
        server.script(Reply(status=302, headers={"Location": location}))
        with pytest.raises(UnresolvableURL, match="redirects to an invalid URL"):
            await tools.list_tools(group(f"{server.url}{path}"), {})


async def test_a_redirect_to_what_is_not_a_valid_url_leaves_the_old_list(
    tools: McpTools, server: ScriptedHTTPServer
) -> None:
    server.script(*LISTING)
    listed = await tools.list_tools(group(server.url), {})
    CLOCK.move(301)
    server.script(Reply(status=302, headers={"Location": "http://xn--a/"}))

    assert await tools.list_tools(group(server.url), {}) == listed


async def test_a_server_that_is_silent_is_unavailable_after_the_time_out(
    guard: Guard, server: ScriptedHTTPServer
) -> None:
    server.script(Reply(ending="hang"))
    listing = asyncio.create_task(McpTools(guard, timeout=60).list_tools(group(server.url), {}))
    await until_asked(server)
    CLOCK.move(20)

    with pytest.raises(ToolUnavailable, match=r"^The MCP server at .* did not list its tools within 20 s"):
        await listing


async def test_the_log_bears_neither_arguments_nor_keys(
    tools: McpTools, mcp_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    url = f"{mcp_server}/private/mcp"

    await tools.invoke(group(url), call("boom", credentials(url), why="a-secret-reason"))

    assert TOKEN not in caplog.text
    assert "a-secret-reason" not in caplog.text


CORE = Path(__file__).parents[4] / "layers" / "core"


@pytest.mark.parametrize(("path", "loaded"), [("/mcp", "{'mcp.client.session'}"), ("/stateless/mcp", "set()")])
def test_the_client_brings_no_server_along(mcp_server: str, path: str, loaded: str) -> None:
    script = """
import asyncio, sys
from stint.tools.mcp.provider import SLOW_SECONDS, McpTools
from stint.tools.port import Toolgroup
from stint.net.guard import Guard
assert "mcp" not in sys.modules
try:
    asyncio.run(McpTools(Guard(["127.0.0.1"])).list_tools(Toolgroup("g", "p", mcp_endpoint=sys.argv[1]), {}))
except Exception as error:
    print(type(error).__name__)
print({"mcp.client.session", "uvicorn", "starlette", "jsonschema", "cryptography", "mcp.server"} & set(sys.modules))
"""

    command, environment = [sys.executable, "-c", script, mcp_server + path], {"PYTHONPATH": str(CORE)}
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert out.split() == [loaded]
