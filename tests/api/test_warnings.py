"""The header x-stint-warning: what a request has that is ignored, at each API."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, assert_error, create_agent, create_session, open_session, user
from tests.api.responses_client import WEATHER

WARNING = "x-stint-warning"
RESPONSE = {"model": "scripted/demo", "input": "say: x"}
CHAT = {"model": "scripted/demo", "messages": [user("say: x")]}


@pytest.mark.parametrize(
    ("path", "body", "param", "intended"),
    [
        ("responses", RESPONSE | {"temperture": 1}, "temperture", "temperature"),
        ("responses", RESPONSE | {"stream": True, "instrctions": "x"}, "instrctions", "instructions"),
        ("responses", RESPONSE | {"text": {"verbositty": "low"}}, "text.verbositty", "verbosity"),
        ("responses/input_tokens", RESPONSE | {"tool": []}, "tool", "tools"),
        ("conversations", {"itmes": []}, "itmes", "items"),
        ("conversations/conv_1/items", {"items": [user("x")], "itens": []}, None, None),
        ("chat/completions", CHAT | {"temperture": 1}, "temperture", "temperature"),
        ("completions", {"model": "scripted/demo", "prompt": "say: x", "max_tokns": 1}, "max_tokns", "max_tokens"),
        ("embeddings", {"model": "m", "input": "x", "dimension": 4}, "dimension", "dimensions"),
        ("vector_stores", {"nmae": "x", "metdata": {}}, "metdata", "metadata"),
        ("vector_stores/vs_1/files", {"file_id": "x", "atributes": {}}, "atributes", "attributes"),
        (
            "uploads",
            {"filename": "a", "bytes": 1, "purpose": "assistants", "mime_type": "a/b", "mime_tpye": 1},
            None,
            None,
        ),
    ],
)
def test_openais_api_refuses_a_misspelled_field(
    http: httpx.Client, path: str, body: dict[str, Any], param: str | None, intended: str | None
) -> None:
    for base in ("/v1", "/v1/openai/v1"):
        answer = http.post(f"{base}/{path}", json=body)
        if param is None:  # the known field is given, too
            assert answer.headers[WARNING].startswith("Unknown field ")
            continue
        error = assert_error(answer, 400, "unknown_parameter")
        message = f"Unknown parameter: {param!r}. Did you mean {intended!r}?"
        assert error == {
            "message": message,
            "type": "invalid_request_error",
            "code": "unknown_parameter",
            "param": param,
        }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), [("responses", RESPONSE), ("chat/completions", CHAT)])
def test_openais_api_names_other_unknown_fields_in_the_header(
    http: httpx.Client, path: str, body: dict[str, Any], stream: bool
) -> None:
    more = {"top_k": 4, "chat_template_kwargs": {"enable_thinking": False}}

    answer = http.post(f"/v1/{path}", json=body | more | {"stream": stream})

    assert answer.status_code == 200
    assert answer.headers[WARNING] == (
        "Unknown field 'top_k' is ignored. Unknown field 'chat_template_kwargs' is ignored."
    )
    assert WARNING not in http.post(f"/v1/{path}", json=body | {"stream": stream}).headers


FILE = {"file": ("a.txt", b"x")}


@pytest.mark.parametrize(
    ("path", "form", "param", "intended"),
    [
        (
            "files",
            {"purpose": "assistants", "expires_aftr[seconds]": "3600"},
            "expires_aftr[seconds]",
            "expires_after[seconds]",
        ),
        ("files", {"purpse": "assistants"}, "purpse", "purpose"),
        ("containers/cntr_1/files", {"fileid": "x"}, "fileid", "file_id"),
    ],
)
def test_openais_api_refuses_a_misspelled_field_of_a_form(
    http: httpx.Client, path: str, form: dict[str, str], param: str, intended: str
) -> None:
    error = assert_error(http.post(f"/v1/{path}", data=form, files=FILE), 400, "unknown_parameter")

    assert error["message"] == f"Unknown parameter: {param!r}. Did you mean {intended!r}?"


def test_other_unknown_fields_of_a_form_are_named_in_the_header(http: httpx.Client) -> None:
    stored = http.post("/v1/files", data={"purpose": "assistants", "colour": "red"}, files=FILE)

    assert stored.status_code == 200, stored.text
    assert stored.headers[WARNING] == "Unknown field 'colour' is ignored."
    assert WARNING not in http.post("/v1/files", data={"purpose": "assistants"}, files=FILE).headers


@pytest.mark.parametrize(
    "path", ["responses", "agents", "chat/completions", "conversations", "files", "vector_stores", "containers"]
)
def test_unknown_parameters_of_a_query_are_named_in_the_header(http: httpx.Client, path: str) -> None:
    for base in ("/v1", "/v1/openai/v1"):
        if path == "agents" and base != "/v1":
            continue
        answer = http.get(f"{base}/{path}?limt=3&x")
        assert answer.headers[WARNING] == (
            "Unknown query parameter 'limt' is ignored. Did you mean 'limit'? Unknown query parameter 'x' is ignored."
        )
        assert WARNING not in http.get(f"{base}/{path}?limit=3&order=asc").headers


@pytest.mark.parametrize(
    "path", ["tools?toolgroup_id[name]=builtin::rag", "chat/completions?metadata[topic]=x", "responses?include[]=x"]
)
def test_parameters_with_brackets_are_not_checked(http: httpx.Client, path: str) -> None:
    assert WARNING not in http.get(f"/v1/{path}").headers


@pytest.mark.parametrize("path", ["agents", "chat/completions", "responses", "conversations"])
def test_a_filter_that_a_list_does_not_have_is_named_in_the_header(http: httpx.Client, path: str) -> None:
    answer = http.get(f"/v1/{path}?metadata[topic]=x")

    assert answer.status_code == 200
    ignored = (
        None if path in ("agents", "chat/completions") else "Unknown query parameter 'metadata[topic]' is ignored."
    )
    assert answer.headers.get(WARNING) == ignored


@pytest.mark.parametrize("stream", [False, True])
def test_llama_stacks_api_ignores_a_misspelled_field_and_names_it(http: httpx.Client, stream: bool) -> None:
    session = open_session(http)

    answer = http.post(f"{session}/turn", json={"messages": [user("say: x")], "stream": stream, "documants": []})

    assert answer.status_code == 200
    assert answer.headers[WARNING] == "Unknown field 'documants' is ignored. Did you mean 'documents'?"


@pytest.mark.parametrize(
    ("path", "body", "name", "intended"),
    [
        ("agents", {"agent_config": agent_config(instrctions="")}, "agent_config.instrctions", "instructions"),
        ("agents", {"agent_config": agent_config(toolgruops=[])}, "agent_config.toolgruops", "toolgroups"),
        ("inference/chat-completion", {"model_id": "m", "messages": [user("x")], "tols": []}, "tols", "tools"),
        ("toolgroups", {"toolgroup_id": "g", "provider_id": "p", "agrs": {}}, "agrs", None),
        ("shields", {"shield_id": "s", "parms": {}}, "parms", "params"),
        ("vector-dbs", {"vector_db_id": "v", "embedding_model": "m", "provder_id": 1}, "provder_id", "provider_id"),
    ],
)
def test_each_part_of_llama_stacks_api_names_unknown_fields(
    http: httpx.Client, path: str, body: dict[str, Any], name: str, intended: str | None
) -> None:
    answer = http.post(f"/v1/{path}", json=body)

    advice = f" Did you mean {intended!r}?" if intended else ""
    assert answer.headers[WARNING] == f"Unknown field {name!r} is ignored.{advice}"


def test_sessions_name_unknown_fields(http: httpx.Client) -> None:
    path = f"/v1/agents/{create_agent(http)}/session"

    answer = http.post(path, json={"session_name": "s", "expire_after": 9})

    assert answer.status_code == 200
    assert answer.headers[WARNING] == "Unknown field 'expire_after' is ignored. Did you mean 'expires_after'?"


def test_items_of_a_conversation_are_checked(http: httpx.Client) -> None:
    path = f"/v1/conversations/{http.post('/v1/conversations').json()['id']}/items"
    item = user("x") | {"type": "message"}

    refused = http.post(path, json={"items": [item | {"statsu": "completed"}]}, params={"include": []})
    named = http.post(path, json={"items": [item | {"provider_data": {}}]})

    assert assert_error(refused, 400, "unknown_parameter")["param"] == "items[0].statsu"
    assert named.headers[WARNING] == "Unknown field 'items[0].provider_data' is ignored."


def test_a_response_that_is_sent_back_has_only_known_fields(http: httpx.Client) -> None:
    first = http.post(
        "/v1/responses", json=RESPONSE | {"input": 'call: get_weather {"city": "Rome"}', "tools": [WEATHER]}
    )
    output = first.json()["output"]
    result = {"type": "function_call_output", "call_id": output[-1]["call_id"], "output": "fine"}

    second = http.post("/v1/responses", json=RESPONSE | {"input": [user("x"), *output, result], "tools": [WEATHER]})

    assert second.status_code == 200, second.text
    assert WARNING not in second.headers


def test_the_api_of_october_2024_names_unknown_fields(http: httpx.Client) -> None:
    config = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": False, "tool_chioce": "auto"}

    created = http.post("/agents/create", json={"agent_config": config})
    read = http.post("/models/get?identifer=x", json={"identifier": "scripted/demo"})

    assert created.status_code == 200, created.text
    assert created.headers[WARNING] == (
        "Unknown field 'agent_config.tool_chioce' is ignored. Did you mean 'tool_choice'?"
    )
    assert read.headers[WARNING] == "Unknown field 'identifer' is ignored. Did you mean 'identifier'?"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": "nope"}, "Model 'nope' does not exist. GET /v1/models lists the models."),
        ({"model": "scripted/dmo"}, "There is no scripted model 'scripted/dmo'."),
        ({"toolgroups": ["nope"]}, "Toolgroup 'nope' is not registered. GET /v1/toolgroups lists the registered ones."),
        ({"toolgroups": ["builtin::rag/serch"]}, "Toolgroup 'builtin::rag' has no tool 'serch'. Its tools are:"),
        ({"output_shields": ["nope"]}, "Shield 'nope' is not registered. GET /v1/shields lists the registered ones."),
    ],
)
def test_a_new_agent_whose_turns_would_fail_is_stored_and_its_creator_told(
    http: httpx.Client, config: dict[str, Any], message: str
) -> None:
    answer = http.post("/v1/agents", json={"agent_config": agent_config(**config)})

    assert list(answer.json()) == ["agent_id"]
    assert answer.headers[WARNING].startswith(f"Turns of the agent will fail: {message}")
    session = create_session(http, answer.json()["agent_id"])
    refused = http.post(f"{session}/turn", json={"messages": [user("x")]})
    assert message in refused.json()["error"]["message"]


def test_a_new_agent_with_names_that_exist_has_no_warning(http: httpx.Client) -> None:
    config = agent_config(toolgroups=["builtin::rag"])

    assert WARNING not in http.post("/v1/agents", json={"agent_config": config}).headers


def test_an_unknown_field_and_an_unknown_name_are_both_named(http: httpx.Client) -> None:
    config = agent_config(model="n\u00f8pe\r\n", colour="red", toolgroups=[f"group-{number}" for number in range(9)])

    answer = http.post("/v1/agents", json={"agent_config": config})

    header = answer.headers[WARNING]
    assert header.startswith(
        "Unknown field 'agent_config.colour' is ignored. Turns of the agent will fail: Model 'n\\xf8pe\\r\\n'"
    )
    assert header.endswith(" There are more warnings.")
    assert len(header) <= 512


def test_the_creator_of_an_agent_of_october_2024_is_told(http: httpx.Client) -> None:
    config = {"model": "nope", "instructions": "", "enable_session_persistence": False, "input_shields": ["none"]}

    answer = http.post("/agents/create", json={"agent_config": config})

    assert list(answer.json()) == ["agent_id"]
    assert "will fail: Model 'nope' does not exist." in answer.headers[WARNING]
    assert "will fail: Shield 'none' is not registered." in answer.headers[WARNING]
