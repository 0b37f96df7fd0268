"""The parts of a request that a definition fixes, and that no argument and no caller replaces."""

from typing import Any

import pytest
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.domain.errors import InvalidRequest
from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.port import Invocation, Toolgroup


@pytest.fixture
def tools(guard: Guard) -> HttpEndpoints:
    return HttpEndpoints(guard)


def group(server: ScriptedHTTPServer, **definition: Any) -> Toolgroup:
    definition["url"] = f"{server.url}{definition.get('url', '/')}"
    tool = {"name": "ticket", "parameters": {"type": "object", "properties": {"id": {}, "title": {}}}, **definition}
    return Toolgroup("http::tickets", "remote-execution", config={"tools": [tool]})


@pytest.mark.parametrize("name", ["account", "Account", "account[0]", " account", "account\x00", "key", "fixed", "via"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_argument_replaces_a_field_of_the_definition(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str, method: str
) -> None:
    body = {} if method == "GET" else {"body": {"fixed": "ours", "other": "{absent}"}}
    params = {"key": "ours", "via": "{absent}", "fixed": "ours"}
    parameters = {"type": "object", "properties": {"absent": {}}}
    toolgroup = group(server, url="/x?account=ours", method=method, params=params, parameters=parameters, **body)

    await tools.invoke(toolgroup, Invocation("ticket", {name: "theirs", "note": "n"}, "c"))

    (request,) = server.requests
    assert {"account=ours", "key=ours", "fixed=ours"} <= set(request.path.partition("?")[2].split("&"))
    assert b"theirs" not in request.path.encode() + request.body
    assert "note=n" in request.path or request.json() == {"note": "n", "fixed": "ours"}


@pytest.mark.parametrize("name", ["account[id", "account_id", "account.id", "account id", "[account_id]", "Account[id"])
async def test_no_argument_is_a_field_of_the_definition_for_php(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str
) -> None:
    toolgroup = group(server, url="/x?account_id=ours", parameters={"type": "object"})

    await tools.invoke(toolgroup, Invocation("ticket", {name: "theirs"}, "c"))

    assert [request.path for request in server.requests] == ["/x?account_id=ours"]


@pytest.mark.parametrize("name", ["account[id", "[account", "[account]", "account]"])
async def test_no_argument_is_a_field_of_the_definition_for_rack(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str
) -> None:
    toolgroup = group(server, url="/x?account=ours", parameters={"type": "object"})

    await tools.invoke(toolgroup, Invocation("ticket", {name: "theirs"}, "c"))

    assert [request.path for request in server.requests] == ["/x?account=ours"]


async def test_no_argument_is_the_method_of_the_request_unless_it_is_declared(
    tools: HttpEndpoints, server: ScriptedHTTPServer
) -> None:
    declared = {"type": "object", "properties": {"_method": {}}}
    for parameters in ({"type": "object"}, declared):
        toolgroup = group(server, method="POST", parameters=parameters)
        await tools.invoke(toolgroup, Invocation("ticket", {"_method": "DELETE", "id": "1"}, "c"))

    assert [request.json() for request in server.requests] == [{"id": "1"}, {"_method": "DELETE", "id": "1"}]


@pytest.mark.parametrize("name", ["X-Tenant", "x-tenant", "AUTHORIZATION", "X_Tenant", "X.Tenant", "x!tenant"])
async def test_a_caller_cannot_replace_a_header_of_the_definition(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str
) -> None:
    toolgroup = group(server, headers={"X-Tenant": "ours", "Authorization": "Bearer ours-alone"})
    data = {"http_headers": {server.url: {name: "theirs"}}}

    with pytest.raises(InvalidRequest, match=f"may set the header '{name}'") as refused:
        await tools.invoke(toolgroup, Invocation("ticket", {"id": "1"}, "c", data))

    assert refused.value.param == "http_headers"
    assert server.requests == []


@pytest.mark.parametrize(
    "name", ["X-HTTP-Method-Override", "x_http_method", "X-Method-Override", "X-Original-URL", "X-Rewrite-Url"]
)
async def test_a_caller_cannot_replace_the_method_or_the_url(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str
) -> None:
    data = {"http_headers": {server.url: {name: "DELETE"}}}

    with pytest.raises(InvalidRequest, match=f"the header '{name}'") as refused:
        await tools.invoke(group(server), Invocation("ticket", {"id": "1"}, "c", data))
    await tools.invoke(group(server, headers={name: "DELETE"}), Invocation("ticket", {"id": "1"}, "c"))

    assert (refused.value.code, refused.value.param) == ("header_not_allowed", "http_headers")
    assert [request.headers[name.lower()] for request in server.requests] == ["DELETE"]


@pytest.mark.parametrize("name", ["Content-Type", "content_type", "Content-Encoding"])
async def test_a_caller_cannot_change_what_a_body_means(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str
) -> None:
    invocation = Invocation("ticket", {"id": "1"}, "c", {"http_headers": {server.url: {name: "text/plain"}}})

    with pytest.raises(InvalidRequest, match=f"the header '{name}'"):
        await tools.invoke(group(server, method="POST"), invocation)
    await tools.invoke(group(server), invocation)

    assert [request.headers[name.lower()] for request in server.requests] == ["text/plain"]


@pytest.mark.parametrize("name", ["Host", "content_length", "Transfer_Encoding", "Connection", "Keep-Alive"])
async def test_a_caller_cannot_set_the_headers_of_the_connection(
    tools: HttpEndpoints, server: ScriptedHTTPServer, name: str
) -> None:
    data = {"http_headers": {server.url: {name: "0"}}}

    with pytest.raises(InvalidRequest, match=f"'{name}' is set by the connection"):
        await tools.invoke(group(server, method="POST"), Invocation("ticket", {"id": "1"}, "c", data))

    assert server.requests == []


async def test_a_callers_headers_have_no_key_of_their_own(tools: HttpEndpoints, server: ScriptedHTTPServer) -> None:
    data = {"http_headers": {server.url: {"idempotency-key": "theirs", "Idempotency_Key": "theirs"}}}

    await tools.invoke(group(server, method="POST"), Invocation("ticket", {"id": "1"}, "c", data))

    (request,) = server.requests
    assert (request.headers["idempotency-key"], request.headers.get("idempotency_key")) == ("c", None)
