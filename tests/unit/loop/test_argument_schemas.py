"""The check of arguments against the schemas of MCP servers' and Lambda functions' tools."""

from typing import Any

import pytest

from stint.domain.content import text_of
from stint.domain.inference import ToolSignature
from stint.domain.tools import ToolCall
from stint.loop.toolbox import ServerTool, Toolbox
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

MCP, LAMBDA, HTTP = "model-context-protocol", "lambda-function", "remote-execution"
CLOSED = {"type": "object", "properties": {"x": {}}, "additionalProperties": False}


class Recorder:
    """A provider that records the arguments of calls."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.calls.append(invocation.arguments)
        return ToolOutcome("done")

    async def check(self, toolgroup: Toolgroup, /) -> None: ...

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return []

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return []


def toolbox_of(provider_id: str, schema: dict[str, Any], **args: Any) -> tuple[Toolbox, Recorder]:
    provider = Recorder()
    tool = ServerTool(ToolSignature("t", "", schema), Toolgroup("g", provider_id), provider, args)
    return Toolbox({}, {"t": tool}), provider


async def call(toolbox: Toolbox, arguments: dict[str, Any]) -> str:
    outcome = await toolbox.invoke(ToolCall(call_id="c", tool_name="t", arguments=arguments), "k")
    assert outcome.error == (outcome.content != "done")
    return text_of(outcome.content)


@pytest.mark.parametrize("provider_id", [MCP, LAMBDA])
@pytest.mark.parametrize(
    ("schema", "arguments", "where"),
    [
        ({"properties": {"o": CLOSED}}, {"o": {"x": 1, "evil": 1}}, "at $.o: it does not satisfy additionalProperties"),
        ({"properties": {"o": {"items": CLOSED}}}, {"o": [{}, {"evil": 1}]}, "at $.o[1]"),
        ({"properties": {"o": {"$ref": "#/$defs/o"}}, "$defs": {"o": CLOSED}}, {"o": {"evil": 1}}, "at $.o"),
        ({"allOf": [CLOSED]}, {"evil": 1}, "additionalProperties"),
        ({"allOf": [{"properties": {"x": {}}}], "unevaluatedProperties": False}, {"evil": 1}, "unevaluatedProperties"),
        ({"anyOf": [CLOSED, {"required": ["y"]}]}, {"evil": 1}, "anyOf"),
        ({"propertyNames": {"enum": ["x"]}}, {"evil": 1}, "enum"),
        ({"properties": {"x": {"enum": ["ours"]}}}, {"x": "theirs"}, "at $.x: it does not satisfy enum"),
        ({"properties": {"x": {"type": "integer"}}}, {"x": "5"}, "at $.x: it does not satisfy type"),
        ({"required": ["x"]}, {}, "'x' is a required property"),
    ],
)
async def test_arguments_that_a_schema_forbids_are_told_to_the_model(
    provider_id: str, schema: dict[str, Any], arguments: dict[str, Any], where: str
) -> None:
    toolbox, provider = toolbox_of(provider_id, {"type": "object", **schema})

    told = await call(toolbox, arguments)

    assert told.startswith("The tool 't' did not run, because its schema does not permit these arguments: ")
    assert where in told
    assert provider.calls == []


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"pattern": "("}}},
        {"properties": {"x": {"$ref": "https://elsewhere.example/x.json"}}},
        {"type": "object", "required": "x"},
        {"$ref": "#"},
        {"properties": {"x": {"enum": [str(n) for n in range(200_000)]}}},
    ],
)
async def test_a_schema_that_cannot_be_checked_refuses_nothing(schema: dict[str, Any]) -> None:
    toolbox, provider = toolbox_of(MCP, schema)

    assert await call(toolbox, {"x": "a"}) == "done"
    assert provider.calls == [{"x": "a"}]


async def test_undeclared_names_are_refused_also_if_the_schema_cannot_be_checked() -> None:
    toolbox, provider = toolbox_of(MCP, CLOSED | {"required": "x"})

    assert "does not have these arguments: 'evil'" in await call(toolbox, {"evil": 1})
    assert provider.calls == []


async def test_arguments_that_take_too_many_steps_are_refused() -> None:
    kinds = [{"const": number} for number in range(1_000)]
    toolbox, provider = toolbox_of(MCP, {"properties": {"x": {"items": {"anyOf": kinds}}}})

    assert "too large or nested too deeply to be checked" in await call(toolbox, {"x": [999] * 10_000})
    assert await call(toolbox, {"x": [999]}) == "done"
    assert len(provider.calls) == 1


async def test_many_values_are_checked() -> None:
    row = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    toolbox, provider = toolbox_of(MCP, {"properties": {"rows": {"items": row}}})
    rows = [{"a": n, "b": "text"} for n in range(5_000)]

    assert await call(toolbox, {"rows": rows}) == "done"
    assert "at $.rows[5000].a" in await call(toolbox, {"rows": [*rows, {"a": ""}]})
    assert len(provider.calls) == 1


async def test_the_args_of_an_agent_may_be_what_the_schema_forbids_to_a_model() -> None:
    schema = CLOSED | {"properties": {"x": {"type": "integer"}, "y": {}}, "required": ["x", "y"]}
    toolbox, provider = toolbox_of(MCP, schema, x="fixed", z=1)

    assert await call(toolbox, {"x": 1, "y": 2}) == "done"
    assert "'y' is a required property" in await call(toolbox, {})
    assert provider.calls == [{"x": "fixed", "y": 2, "z": 1}]


async def test_a_schema_is_read_once_in_a_run() -> None:
    toolbox, _ = toolbox_of(MCP, CLOSED)

    await call(toolbox, {"x": 1})
    document = toolbox.documents["t"]
    await call(toolbox, {"x": 2})

    assert document is not None
    assert toolbox.documents == {"t": document}


async def test_an_endpoint_and_a_built_in_tool_judge_the_values_of_their_arguments() -> None:
    for provider_id in (HTTP, "tavily-search"):
        toolbox, provider = toolbox_of(provider_id, {"type": "object", "properties": {"x": {"type": "string"}}})

        assert await call(toolbox, {"x": 5}) == "done"
        assert provider.calls == [{"x": 5}]
