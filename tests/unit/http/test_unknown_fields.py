"""The search for unknown fields in what a request gave, beside what was read from it."""

from typing import Any

import pytest
from starlette.types import Scope
from tests.services.call_count import CallCount

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.agents import AgentCreateRequest
from stint.domain.llama_stack.inference import InferenceChatRequest
from stint.domain.llama_stack.registrations import ToolInvokeRequest
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.conversations import CreateItems
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.vector_stores import SearchVectorStore
from stint.domain.schema import Schema, has_unknown_fields
from stint.http.scopes import WARNING
from stint.http.unknown_fields import MOST_FIELDS, find_unknown_fields, note_unknown_fields

Body = dict[str, Any]
RESPONSE: Body = {"model": "m", "input": "x"}
CHAT: Body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
CONFIG: Body = {"model": "m", "instructions": ""}
TURN: Body = {"messages": [{"role": "user", "content": "x"}]}
CALL: Body = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
TOOL: Body = {"type": "function", "name": "f"}
FILTER: Body = {"type": "and", "filters": [{"type": "eq", "key": "k", "value": 1, "vlaue": 2}]}


def unknown_in(kind: type[Schema], body: Body) -> list[str]:
    read = kind.model_validate(body)
    found = [field.path for field in find_unknown_fields(body, read)]
    assert has_unknown_fields(body, read) is bool(found)
    return found


@pytest.mark.parametrize(
    ("kind", "body", "path"),
    [
        (CreateResponse, RESPONSE | {"temperture": 1}, "temperture"),
        (CreateResponse, RESPONSE | {"text": {"verbositty": "low"}}, "text.verbositty"),
        (CreateResponse, RESPONSE | {"text": {"format": {"type": "text", "nam": 1}}}, "text.format.nam"),
        (CreateResponse, RESPONSE | {"reasoning": {"efort": "low"}}, "reasoning.efort"),
        (CreateResponse, RESPONSE | {"conversation": {"id": "c", "x": 1}}, "conversation.x"),
        (
            CreateResponse,
            RESPONSE | {"tools": [{"type": "function", "name": "f", "strickt": True}]},
            "tools[0].strickt",
        ),
        (CreateResponse, RESPONSE | {"input": [{"role": "user", "content": "x"}, CALL | {"x": 1}]}, "input[1].x"),
        (
            CreateResponse,
            RESPONSE | {"input": [{"role": "user", "content": [{"type": "input_text", "text": "", "x": 1}]}]},
            "input[0].content[0].x",
        ),
        (CreateItems, {"items": [CALL | {"x": 1}]}, "items[0].x"),
        (ChatCompletionRequest, CHAT | {"messages": [{"role": "user", "content": "", "x": 1}]}, "messages[0].x"),
        (SearchVectorStore, {"query": "x", "filters": FILTER}, "filters.filters[0].vlaue"),
        (AgentCreateRequest, {"agent_config": CONFIG, "x": 1}, "x"),
        (AgentCreateRequest, {"agent_config": CONFIG | {"instrctions": 1}}, "agent_config.instrctions"),
        (
            AgentCreateRequest,
            {"agent_config": CONFIG | {"sampling_params": {"strategy": {"type": "greedy", "x": 1}}}},
            "agent_config.sampling_params.strategy.x",
        ),
        (
            AgentCreateRequest,
            {"agent_config": CONFIG | {"tool_shields": {"f": {"input_sheilds": []}}}},
            "agent_config.tool_shields.f.input_sheilds",
        ),
        (TurnCreateRequest, TURN | {"sampling_params": {"max_tokns": 1}}, "sampling_params.max_tokns"),
        (TurnCreateRequest, TURN | {"toolgroups": ["a", {"name": "b", "arg": {}}]}, "toolgroups[1].arg"),
        (
            InferenceChatRequest,
            TURN | {"model_id": "m", "tools": [{"tool_name": "t", "parameters": {"p": {"param_type": "s", "x": 1}}}]},
            "tools[0].parameters.p.x",
        ),
    ],
)
def test_an_unknown_field_is_found_at_its_path(kind: type[Schema], body: Body, path: str) -> None:
    assert unknown_in(kind, body) == [path]


FREE: Body = {"temperture": {"instrctions": [{"modle": 1}]}}
SCHEMA: Body = {"type": "json_schema", "name": "n", "schema": FREE}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (CreateResponse, RESPONSE | {"metadata": {"temperture": "1"}, "text": {"format": SCHEMA}}),
        (CreateResponse, RESPONSE | {"tools": [TOOL | {"parameters": FREE, "async": False}]}),
        (CreateResponse, RESPONSE | {"input": [CALL | {"caller": {"type": "direct"}, "namespace": None}]}),
        (CreateResponse, RESPONSE | {"prompt_cache_options": "x", "conversation": "c", "tool_choice": None}),
        (
            ChatCompletionRequest,
            CHAT | {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": FREE}}},
        ),
        (AgentCreateRequest, {"agent_config": CONFIG | {"toolgroups": [{"name": "g", "args": FREE}]}}),
        (
            AgentCreateRequest,
            {"agent_config": CONFIG | {"client_tools": [{"name": "t", "metadata": FREE}]}},
        ),
        (TurnCreateRequest, TURN | {"response_format": {"type": "json_schema", "json_schema": FREE}}),
        (ToolInvokeRequest, {"tool_name": "t", "kwargs": FREE}),
    ],
)
def test_objects_of_any_form_have_no_unknown_fields(kind: type[Schema], body: Body) -> None:
    assert unknown_in(kind, body) == []


def test_a_field_of_several_objects_is_named_once() -> None:
    messages = [{"role": "user", "content": "x", "colour": 1}] * 50

    assert unknown_in(TurnCreateRequest, {"messages": messages}) == ["messages[0].colour"]


def note(kind: type[Schema], body: Body) -> str:
    scope: Scope = {}
    note_unknown_fields(body, kind.model_validate(body), scope)
    return str(scope[WARNING])


@pytest.mark.parametrize("field", ["temperture", "maxOutputTokens"])
def test_openais_api_refuses_a_misspelled_field(field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"Unknown parameter: '{field}'. Did you mean") as caught:
        note(CreateResponse, RESPONSE | {"other": 1, field: 1})

    assert (caught.value.code, caught.value.param) == ("unknown_parameter", field)


def test_openais_api_does_not_refuse_a_field_that_resembles_one_that_is_given_too() -> None:
    assert note(ChatCompletionRequest, CHAT | {"models": []}) == (
        "Unknown field 'models' is ignored. Did you mean 'model'?"
    )


def test_other_apis_name_the_known_field() -> None:
    body = {"agent_config": CONFIG | {"toolgruops": [], "colour": "red"}}

    assert note(AgentCreateRequest, body) == (
        "Unknown field 'agent_config.toolgruops' is ignored. Did you mean 'toolgroups'? "
        "Unknown field 'agent_config.colour' is ignored."
    )


@pytest.mark.parametrize(
    "names",
    [
        [f"x{number}" for number in range(900)],
        ["x" * 100_000],
        ["x\r\nset-cookie: a=b", "\0\x7f", "\u2028", "\ud800"],
        ["\N{SNOWMAN}" * 60 + str(number) for number in range(9)],
        ["temperature" + "e" * number for number in range(3, 60)],
        ["'" * 60, '"', "\\"],
    ],
    ids=["many", "long", "controls", "not ASCII", "similar", "quotes"],
)
@pytest.mark.parametrize(("kind", "body"), [(CreateResponse, RESPONSE), (TurnCreateRequest, TURN)])
def test_the_header_is_short_printable_ascii(kind: type[Schema], body: Body, names: list[str]) -> None:
    header = note(kind, body | dict.fromkeys(names, 1))

    assert 0 < len(header) <= 512
    assert all(" " <= letter <= "~" for letter in header)


def test_the_work_for_many_unknown_fields_is_bounded() -> None:
    counts = []
    for number in (MOST_FIELDS, 900):
        body = RESPONSE | {f"max_output_tok{place:04}" + "x" * 30: 1 for place in range(number)}
        read = CreateResponse.model_validate(body)
        with CallCount() as count:
            note_unknown_fields(body, read, {})
        counts.append(count.calls)

    assert counts[1] <= counts[0] + 20


def test_known_fields_cost_one_call() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}] * 100}
    read = TurnCreateRequest.model_validate(body)
    has_unknown_fields(body, read)

    with CallCount() as count:
        has_unknown_fields(body, read)

    assert count.calls <= 2  # and that of the counter's end
