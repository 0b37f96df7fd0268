import httpx
import pytest

MODEL = ["identifier", "provider_resource_id", "provider_id", "type", "metadata", "model_type"]
OPENAI = ["id", "object", "created", "owned_by"]


def test_a_model_bears_llama_stacks_keys_and_openais(http: httpx.Client) -> None:
    listed, single = http.get("/v1/models").json(), http.get("/v1/models/scripted/demo").json()

    entry, _, short, *_ = listed["data"]
    assert list(listed) == ["data", "object"]
    assert list(entry) == [*MODEL, *OPENAI, "default"]
    assert entry["provider_resource_id"] == "demo"
    assert (entry["type"], entry["model_type"], entry["object"]) == ("model", "llm", "model")
    assert single == entry | {"owner": None}
    assert short | {"default": True} == entry | {"identifier": "demo", "id": "demo"}


def test_the_default_models_are_marked_under_their_configured_ids(http: httpx.Client) -> None:
    models = http.get("/v1/models").json()["data"]

    marked = [(model["identifier"], model["model_type"]) for model in models if model.get("default")]
    assert marked == [("scripted/demo", "llm"), ("hashed/words-384", "embedding")]


def test_what_is_there_from_the_start_is_listed(http: httpx.Client) -> None:
    toolgroups, tools = http.get("/v1/toolgroups").json()["data"], http.get("/v1/tools").json()["data"]

    assert [group["identifier"] for group in toolgroups] == [
        "builtin::websearch",
        "builtin::wolfram_alpha",
        "builtin::rag",
        "builtin::photogen",
    ]
    assert [(tool["identifier"], tool["toolgroup_id"]) for tool in tools] == [
        ("web_search", "builtin::websearch"),
        ("wolfram_alpha", "builtin::wolfram_alpha"),
        ("knowledge_search", "builtin::rag"),
        ("photogen", "builtin::photogen"),
    ]
    assert [tool["metadata"] for tool in tools] == [None] * 4
    assert http.get("/v1/shields").json() == {"data": []}


def test_tools_of_an_mcp_server_name_its_endpoint_as_recorded_without_its_credentials(
    http: httpx.Client, mcp: str, mcp_server: str
) -> None:
    endpoint = {"uri": f"{mcp_server}/mcp?api_key=0123456789"}
    body = {"toolgroup_id": "mcp::keyed", "provider_id": "model-context-protocol", "mcp_endpoint": endpoint}
    http.post("/v1/toolgroups", json=body).raise_for_status()

    listed = {
        group: http.get(path, params={name: group}).json()["data"]
        for path, name in (("/v1/tools", "toolgroup_id"), ("/v1/tool-runtime/list-tools", "tool_group_id"))
        for group in (mcp, "mcp::keyed")
    }
    single = http.get(f"/v1/tools/{mcp}/add").json()

    assert {tool["metadata"]["endpoint"] for tool in listed[mcp]} == {f"{mcp_server}/mcp"}
    [shown] = {tool["metadata"]["endpoint"] for tool in listed["mcp::keyed"]}
    assert shown == http.get("/v1/toolgroups/mcp::keyed").json()["mcp_endpoint"]["uri"]
    assert "0123456789" not in shown
    assert single["metadata"] == {"endpoint": f"{mcp_server}/mcp"}


def test_providers_that_are_not_asked_say_so_as_recorded(http: httpx.Client) -> None:
    health = {each["provider_id"]: each["health"] for each in http.get("/v1/providers").json()["data"]}

    unasked = {"status": "Not Implemented", "message": "Provider does not implement health check"}
    assert health["tavily-search"] == health["llama-guard"] == unasked
    assert health["scripted"] == {"status": "OK"}


def test_an_unknown_toolgroup_has_no_tools(http: httpx.Client) -> None:
    response = http.get("/v1/tools", params={"toolgroup_id": "mcp::nowhere"})

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "toolgroup_not_found"


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest/{path}", "http://127.0.0.1:9001/2018-06-01/", "file:///x"]
)
def test_a_tool_at_a_place_that_may_not_be_called_is_not_registered(http: httpx.Client, url: str) -> None:
    body = {
        "toolgroup_id": "rest::inside",
        "provider_id": "remote-execution",
        "args": {"tools": [{"name": "steal", "url": url}]},
    }

    response = http.post("/v1/toolgroups", json=body)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == "args"
    assert "steal" in response.json()["detail"] or "tools.0" in response.json()["detail"]
    assert http.get("/v1/toolgroups/rest::inside").status_code == 404


@pytest.mark.parametrize("provider_id", ["model-context-protocol", "lambda-function", "wolfram-alpha"])
def test_an_endpoint_that_may_not_be_called_is_not_registered(http: httpx.Client, provider_id: str) -> None:
    function = {"name": "f", "function": "f"}
    body = {
        "toolgroup_id": "mcp::inside",
        "provider_id": provider_id,
        "mcp_endpoint": {"uri": "http://169.254.169.254/mcp"},
        "args": {"tools": [function]},
    }

    response = http.post("/v1/toolgroups", json=body)

    assert (response.status_code, response.json()["error"]["param"]) == (400, "mcp_endpoint")
    assert http.get("/v1/toolgroups/mcp::inside").status_code == 404


def test_ids_with_slashes_are_names_not_paths(http: httpx.Client) -> None:
    for path, kind in (("models", "model"), ("toolgroups", "toolgroup"), ("shields", "shield"), ("tools", "tool")):
        response = http.get(f"/v1/{path}/mcp::a/b/c")

        assert response.status_code == 404
        assert response.json()["error"]["code"] == f"{kind}_not_found"
        assert "mcp::a/b/c" in response.json()["error"]["message"]


def test_providers_tell_no_secrets(http: httpx.Client) -> None:
    providers = http.get("/v1/providers").json()["data"]

    keys = ["api", "provider_id", "provider_type", "config", "health"]
    assert all(list(provider) == keys for provider in providers)
    assert {provider["api"] for provider in providers} == {"inference", "safety", "tool_runtime", "vector_io"}
    assert http.get("/v1/providers/openai").json() == providers[1]
    assert list(providers[1]["config"]) == ["url"]


def test_every_route_is_listed_and_answers(http: httpx.Client) -> None:
    routes = http.get("/v1/inspect/routes").json()["data"]

    assert [list(route) for route in routes] == [["route", "method", "provider_types"]] * len(routes)
    assert len(routes) == len({(route["route"], route["method"]) for route in routes})
    for route in routes:
        path = route["route"].replace(":path}", "}")
        response = http.request(route["method"], path.replace("{", "").replace("}", ""))
        assert response.json().get("error", {}).get("code") not in ("route_not_found", "method_not_allowed")


def test_health_and_version(http: httpx.Client) -> None:
    assert http.get("/v1/health").json() == {"status": "OK"}
    assert http.get("/v1/version").json() == {"version": "0.2.12"}


def test_the_caller_reads_its_tenant_and_scopes(http: httpx.Client) -> None:
    caller = http.get("/v1/whoami", headers={"x-stint-user": "eve"}).json()

    assert caller["end_user"] == "eve"
    assert {"use", "admin"} <= set(caller["scopes"])
    assert list(caller) == ["authentication", "tenant", "scopes", "key_id", "end_user", "expires_at"]


def test_spans_are_not_supported_by_name(http: httpx.Client) -> None:
    response = http.post("/v1/telemetry/spans", json={})

    assert (response.status_code, response.json()["error"]["code"]) == (501, "not_supported")
    assert "/v1/telemetry/spans" in response.json()["error"]["message"]
    assert response.headers["x-should-retry"] == "false"
