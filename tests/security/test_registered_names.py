"""No registration by a caller who is no admin changes what a name means.

Every route that registers, with every name that resolves to something and what looks like it, by callers with each
scope. Then everything that used the names is called again.
"""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, say
from tests.security.attacks import Attacks, Record
from tests.security.registrations import (
    CALLERS,
    MODELS,
    NAMES,
    SHIELDS,
    TOOLGROUPS,
    Registration,
    Uses,
    lookalikes,
    models,
    registrations,
    shields,
    thief_at,
    toolgroups,
)
from tests.security.stack import Stack
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.domain.principals import SCOPES, Scope

LOOKED_LIKE = ("scripted/demo", "demo", "all-MiniLM-L6-v2", "openai/meta-llama/Llama-Guard-3-8B")
REFUSED = (400, 403, 409)
NO_ADMIN = tuple(scope for scope in SCOPES if scope != "admin")


@pytest.fixture
def tenant(stack: Stack) -> str:
    return f"names-{len(stack.create_key('acme').id)}-{stack.create_key('acme').id[-12:]}"


@pytest.fixture
def http(stack: Stack, tenant: str) -> Iterator[httpx.Client]:
    with stack.client(stack.create_key(tenant).key) as http:
        yield http


@pytest.mark.parametrize("scopes", CALLERS, ids="+".join)
def test_no_registration_changes_what_a_name_means(
    stack: Stack,
    tenant: str,
    http: httpx.Client,
    model_server: ScriptedHTTPServer,
    scopes: tuple[Scope, ...],
    record_property: Record,
) -> None:
    attacks, uses, thief = Attacks(), Uses(http), thief_at(model_server.url)
    before = uses.answers()
    with stack.client(stack.create_key(tenant, scopes=list(scopes)).key) as caller:
        for name in NAMES:
            for path, body in registrations(name, thief):
                with attacks.attack(f"POST {path}"):
                    answer = caller.post(path, json=body)
                if answer.status_code >= 500:
                    attacks.got_in.append(f"{path} {body}: {answer.status_code} {answer.text[:200]}")
    after = uses.answers()
    attacks.got_in += [f"{use}: {before[use]} -> {after[use]}" for use in before if before[use] != after[use]]

    attacks.record(record_property)


def names_of_others(thief: str) -> Iterator[tuple[str, Registration]]:
    """Yield each name with registrations of its own kind, which all mean something else."""
    for name in MODELS:
        yield from ((name, each) for each in [next(models(name)), *list(models(name))[-1:]])
    for name in SHIELDS:
        yield from ((name, each) for each in shields(name))
    for name in TOOLGROUPS:
        yield from ((name, each) for each in toolgroups(name, thief))


def test_a_name_that_means_something_is_refused(
    stack: Stack, tenant: str, model_server: ScriptedHTTPServer, record_property: Record
) -> None:
    attacks = Attacks()
    with stack.client(stack.create_key(tenant, scopes=list(NO_ADMIN)).key) as caller:
        for name, (path, body) in names_of_others(thief_at(model_server.url)):
            with attacks.attack(f"POST {path}"):
                answer = caller.post(path, json=body)
            if answer.status_code not in REFUSED:
                attacks.got_in.append(f"{path} {name}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)


def test_a_name_that_looks_like_another_is_refused_to_an_admin_too(
    stack: Stack, tenant: str, http: httpx.Client, model_server: ScriptedHTTPServer, record_property: Record
) -> None:
    attacks, thief = Attacks(), thief_at(model_server.url)
    tries = [
        *(each for name in LOOKED_LIKE for other in lookalikes(name) for each in models_alone(other)),
        *(each for name in SHIELDS for other in lookalikes(name) for each in shields(other)),
        *(each for name in TOOLGROUPS if name in ("builtin::rag", "mcp::conf/add") for other in lookalikes(name)
          for each in toolgroups(other, thief)),
    ]  # fmt: skip
    for path, body in tries:
        with attacks.attack(f"POST {path}"):
            answer = http.post(path, json=body)
        if answer.status_code not in REFUSED:
            attacks.got_in.append(f"{path} {body}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)


def models_alone(name: str) -> Iterator[Registration]:
    """Yield a registration through the API of today, and one through that of October 2024."""
    *_, october = models(name)
    yield from (next(models(name)), october)


def test_an_admin_gives_a_name_another_meaning_which_lists_show(http: httpx.Client) -> None:
    tools = [{"name": "sub", "description": "", "url": "http://public.example/"}]
    group: dict[str, Any] = {"provider_id": "remote-execution", "args": {"tools": tools}}
    for name in ("mcp::conf", "mcp::conf/add", "builtin::rag"):
        assert http.post("/v1/toolgroups", json={"toolgroup_id": name} | group).json()["override"] is True
    model = {"model_id": "demo", "provider_id": "vision", "provider_model_id": "stolen"}
    assert http.post("/v1/models", json=model).json()["override"] is True

    listed = {each["identifier"]: each for each in http.get("/v1/toolgroups").json()["data"]}
    [demo] = [each for each in http.get("/v1/models").json()["data"] if each["identifier"] == "demo"]

    marked = {name for name, each in listed.items() if "override" in each}
    assert marked == {"mcp::conf", "mcp::conf/add", "builtin::rag"}
    assert (demo["override"], demo["provider_id"]) == (True, "vision")
    tools_of = http.get("/v1/tools", params={"toolgroup_id": "mcp::conf/add"}).json()["data"]
    assert [(tool["identifier"], tool["toolgroup_id"]) for tool in tools_of] == [("sub", "mcp::conf/add")]


def test_what_an_admin_has_set_is_unregistered_by_an_admin_only(stack: Stack, tenant: str, http: httpx.Client) -> None:
    model = {"model_id": "demo", "provider_id": "scripted", "provider_model_id": "demo2"}
    http.post("/v1/models", json=model).raise_for_status()

    with stack.client(stack.create_key(tenant, scopes=list(NO_ADMIN)).key) as caller:
        refused = caller.delete("/v1/models/demo")

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")
    assert http.get("/v1/models/demo").json()["provider_resource_id"] == "demo2"
    assert http.delete("/v1/models/demo").status_code == 200
    assert http.get("/v1/models/demo").json()["provider_resource_id"] == "demo"


def own_registrations(url: str) -> dict[str, Registration]:
    """Return registrations of an admin by the paths of their deletion. No name of them has a meaning before."""
    tools = [{"name": "add", "description": "", "url": url}]
    group = {"toolgroup_id": "mcp::crm", "provider_id": "remote-execution", "args": {"tools": tools}}
    shield = {"shield_id": "nobombs", "provider_id": "deny-list", "params": {"phrases": ["bomb"]}}
    model = {"model_id": "ours", "provider_id": "scripted", "provider_model_id": "demo"}
    return {
        "/v1/toolgroups/mcp::crm": Registration("/v1/toolgroups", group),
        "/v1/shields/nobombs": Registration("/v1/shields", shield),
        "/v1/models/ours": Registration("/v1/models", model),
    }


def uses_of_own(http: httpx.Client, session: str, server: ScriptedHTTPServer) -> dict[str, Any]:
    """Return what is answered under the names of `own_registrations`."""
    shown = {path: http.get(path).json() for path in own_registrations("")}
    shown["shield"] = [step["step_type"] for step in say(http, session, "make a bomb").json()["steps"]]
    say(http, session, "call: add {}").raise_for_status()
    shown["tool"] = server.requests[-1].path
    message = {"role": "user", "content": "say: Hi"}
    shown["model"] = http.post("/v1/chat/completions", json={"model": "ours", "messages": [message]}).json()["choices"]
    return shown


@pytest.mark.parametrize("scopes", CALLERS, ids="+".join)
def test_nobody_else_replaces_what_an_admin_has_registered(
    stack: Stack,
    tenant: str,
    http: httpx.Client,
    model_server: ScriptedHTTPServer,
    scopes: tuple[Scope, ...],
    record_property: Record,
) -> None:
    """Each name is unregistered, registered for something else, and has names of tools before it."""
    thief = thief_at(model_server.url)
    tries = [Registration(path, body) for name in ("mcp::crm", "nobombs", "ours")
             for path, body in registrations(name, thief)]  # fmt: skip
    attacks, own = Attacks(), own_registrations(thief.replace("stolen", "good"))
    with stack.client(stack.create_key(tenant, scopes=list(scopes)).key) as caller:
        for path, body in toolgroups("mcp::crm/add", thief):
            with attacks.attack(f"POST {path}"):
                caller.post(path, json=body)
        for path, body in own.values():
            http.post(path, json=body).raise_for_status()
        session = open_session(http, toolgroups=["mcp::crm/add"], input_shields=["nobombs"])
        before = uses_of_own(http, session, model_server)
        for deletion in own:
            for path in (deletion, f"/v1/openai{deletion}"):
                with attacks.attack(f"DELETE {path}"):
                    answer = caller.delete(path)
                if answer.status_code < 400:
                    attacks.got_in.append(f"DELETE {path}: {answer.status_code}")
        for path, body in tries:
            with attacks.attack(f"POST {path}"):
                caller.post(path, json=body)
    after = uses_of_own(http, session, model_server)
    attacks.got_in += [f"{use}: {before[use]} -> {after[use]}" for use in before if before[use] != after[use]]
    assert (before["shield"], before["tool"]) == (["shield_call"], "/good")

    attacks.record(record_property)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("args", {"headers": {"Authorization": "Bearer {}"}}),
        ("mcp_endpoint", {"uri": "http://public.example/mcp?key={}"}),
    ],
)
def test_a_secret_is_named_by_an_admin_only(
    stack: Stack, tenant: str, http: httpx.Client, place: str, value: dict[str, Any], record_property: Record
) -> None:
    attacks = Attacks()
    secret = f"arn:aws:secretsmanager:eu-west-1:123456789012:secret:stint/{tenant}/crm"
    filled = {"uri": value["uri"].format(secret)} if "uri" in value else {"headers": {"Authorization": secret}}
    endpoint = {"mcp_endpoint": {"uri": "http://public.example/mcp"}}
    body = {"toolgroup_id": "crm", "provider_id": "model-context-protocol"} | endpoint | {place: filled}
    with (
        stack.client(stack.create_key(tenant, scopes=list(NO_ADMIN)).key) as caller,
        attacks.attack("POST /v1/toolgroups"),
    ):
        answer = caller.post("/v1/toolgroups", json=body)
    if answer.status_code != 403 or "admin" not in answer.text:
        attacks.got_in.append(f"{place}: {answer.status_code} {answer.text[:200]}")
    assert http.post("/v1/toolgroups", json=body).status_code == 200
    with stack.client(stack.create_key(tenant, scopes=list(NO_ADMIN)).key) as caller:
        assert caller.post("/v1/toolgroups", json=body).status_code == 200, "the same may be registered again"

    attacks.record(record_property)
