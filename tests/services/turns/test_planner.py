from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.script_model import said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest, ReasoningOptions, SystemText, UserInput
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.tools import ToolDef
from stint.loop.plan import Plan
from stint.models.bedrock.model import Bedrock
from stint.models.scripted.model import Scripted
from stint.services.registry.tool_schemas import signature_of

MakePlan = Callable[..., Awaitable[Plan]]
WEATHER = {"name": "get_weather", "parameters": []}


@pytest.fixture
def plan(make_turn_fixture: MakeTurnFixture) -> MakePlan:
    planner = make_turn_fixture(Scripted(0)).turns.planner

    async def plan(overrides: dict[str, Any] | None = None, **config: Any) -> Plan:
        agent = AgentConfig.model_validate({"model": "scripted/demo", "instructions": "Be brief."} | config)
        return await planner.plan(agent, TurnOverrides.model_validate(overrides or {}), {})

    return plan


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("str", {"type": "string"}),
        ("string", {"type": "string"}),
        ("int", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("number", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("dict", {"type": "object"}),
        ("Dict[str, int]", {"type": "object"}),
        ("list", {"type": "array", "items": {}}),
        ("typing.List[int]", {"type": "array", "items": {}}),
        ("NoneType", {"type": "null"}),
        ("Any", {}),
        ("str | None", {}),
    ],
)
def test_names_of_types_become_those_of_json_schema(name: str, schema: dict[str, Any]) -> None:
    parameter = {"name": "p", "parameter_type": name, "description": ""}

    signature = signature_of(ToolDef.model_validate({"name": "w", "parameters": [parameter]}))

    assert signature.parameters["properties"] == {"p": schema}


@pytest.mark.parametrize("default", [0, False, "", [], 5])
def test_a_default_is_told_whatever_it_is(default: Any) -> None:
    parameter = {"name": "p", "parameter_type": "str", "description": "d", "required": False, "default": default}

    signature = signature_of(ToolDef.model_validate({"name": "w", "parameters": [parameter]}))

    assert signature.parameters == {
        "type": "object",
        "properties": {"p": {"type": "string", "description": "d", "default": default}},
        "required": [],
    }


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    signature = signature_of(ToolDef(name="w"))

    assert (signature.description, signature.parameters) == ("", {"type": "object", "properties": {}, "required": []})


def test_an_input_schema_is_sent_unchanged() -> None:
    schema = {"type": "object", "properties": {"city": {"$ref": "#/$defs/City"}}, "$defs": {"City": {"minLength": 2}}}

    assert signature_of(ToolDef(name="w", input_schema=schema)).parameters == schema
    assert signature_of(ToolDef(name="w", input_schema={})).parameters == signature_of(ToolDef(name="w")).parameters


@pytest.mark.parametrize(
    ("asked", "sent"), [("auto", None), ("default", "default"), ("fast", "priority"), ("flex", "flex")]
)
async def test_options_of_the_agent_are_sent_with_each_model_call(
    make_turn_fixture: MakeTurnFixture, asked: str, sent: str | None
) -> None:
    model = script(said("Hi"), said("Hi"))
    options = {"reasoning": {"effort": "low", "summary": "auto"}, "verbosity": "high", "service_tier": asked}
    turn_fixture = await make_turn_fixture(model).open(**options)
    turn = await turn_fixture.turn()

    call = await rebuild_call(turn_fixture, turn.turn_id, turn.steps[0].step_id)

    for request in (model.requests[0], call):
        assert request.reasoning == ReasoningOptions(effort="low", summary="auto")
        assert (request.verbosity, request.service_tier) == ("high", sent)


async def rebuild_call(turn_fixture: TurnFixture, turn_id: str, step_id: str) -> InferenceRequest:
    ids = turn_fixture.agent_id, turn_fixture.session_id, turn_id, step_id
    return (await turn_fixture.services.step_inputs.rebuild(*ids, {})).request


async def test_a_tier_that_the_model_lacks_is_refused_by_name(plan: MakePlan) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await plan(service_tier="flex")

    assert caught.value.param == "service_tier"


async def test_instructions_are_the_first_message_unless_they_are_empty(plan: MakePlan) -> None:
    hello = UserInput("Hello")

    assert (await plan()).request([hello]).messages == (SystemText("Be brief."), hello)
    assert (await plan({"instructions": "Sing."})).request([hello]).messages == (SystemText("Sing."), hello)
    assert (await plan({"instructions": ""})).request([hello]).messages == (hello,)


DEFINED = '[{"name":"get_weather","description":"","parameters":{"type":"object","properties":{},"required":[]}}]'
PLACE = "{{function_definitions}}"


@pytest.mark.parametrize(
    ("tool_config", "instructions", "said"),
    [
        ({"system_message_behavior": "replace"}, f"Tools: {PLACE}", f"Tools: {DEFINED}"),
        ({"system_message_behavior": "replace"}, f"{PLACE} {PLACE}", f"{DEFINED} {PLACE}"),
        ({"system_message_behavior": "replace"}, "No place.", "No place."),
        ({"system_message_behavior": "replace", "tool_choice": "none"}, PLACE, "[]"),
        ({"system_message_behavior": "append"}, PLACE, PLACE),
        ({"tool_prompt_format": "python_list"}, PLACE, PLACE),
    ],
)
async def test_instructions_that_replace_the_system_message_say_where_tools_are_defined(
    plan: MakePlan, tool_config: dict[str, Any], instructions: str, said: str
) -> None:
    of_agent = await plan(tool_config=tool_config, instructions=instructions, client_tools=[WEATHER])
    of_turn = await plan({"tool_config": tool_config, "instructions": instructions}, client_tools=[WEATHER])

    for planned in (of_agent, of_turn):
        assert planned.request([]).messages == (SystemText(said),)


async def test_many_places_for_definitions_do_not_multiply_them(plan: MakePlan) -> None:
    tools = [{"name": f"tool_{n}", "description": "x" * 1_000} for n in range(128)]
    config = {"tool_config": {"system_message_behavior": "replace"}, "instructions": PLACE * 10_000}

    planned = await plan(client_tools=tools, **config)

    assert len(planned.instructions) < 10_000 * len(PLACE) + 200_000


@pytest.mark.parametrize(("given", "planned"), [(0, 1), (1, 1), (7, 7)])
async def test_there_is_one_iteration_at_least(plan: MakePlan, given: int, planned: int) -> None:
    assert (await plan(max_infer_iters=given)).max_infer_iters == planned


async def test_a_turn_may_choose_a_tool_of_the_agents(plan: MakePlan) -> None:
    chosen = await plan({"tool_config": {"tool_choice": "get_weather"}}, client_tools=[WEATHER])

    assert chosen.tool_config.tool_choice == "get_weather"
    assert chosen.tool_config.system_message_behavior == "append"


@pytest.mark.parametrize(
    ("overrides", "config", "code"),
    [
        ({"toolgroups": ["a"]}, {}, "toolgroup_not_found"),
        ({}, {"toolgroups": ["a"]}, "toolgroup_not_found"),
        ({}, {"output_shields": ["a"]}, "shield_not_found"),
        ({}, {"client_tools": [WEATHER, WEATHER]}, "duplicate_tool"),
        ({}, {"client_tools": [{"name": "get.weather"}]}, "invalid_tool_name"),
        ({"client_tools": [{"name": "get weather"}]}, {}, "invalid_tool_name"),
        ({}, {"client_tools": [{"name": "w" * 65}]}, "invalid_tool_name"),
        ({"tool_config": {"tool_choice": "a"}}, {"client_tools": [WEATHER]}, "tool_not_found"),
        ({}, {"model": "bedrock/x"}, "model_not_found"),
    ],
)
async def test_what_nobody_knows_is_refused(
    plan: MakePlan, overrides: dict[str, Any], config: dict[str, Any], code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await plan(overrides, **config)

    assert refused.value.code == code
    assert refused.value.param


async def test_a_parameter_that_the_models_provider_lacks_is_refused_before_anything_is_asked(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    planner = make_turn_fixture(Bedrock()).turns.planner
    config = {"model": "test/nova", "instructions": "", "sampling_params": {"repetition_penalty": 1.2}}
    agent = AgentConfig.model_validate(config)

    with pytest.raises(InvalidRequest, match="does not support repetition_penalty") as refused:
        await planner.plan(agent, TurnOverrides(), {})

    assert refused.value.param == "sampling_params.repetition_penalty"
