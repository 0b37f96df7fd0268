"""Refusals of Bedrock that quote what a caller has written. Nothing is learned from them about a model."""

from dataclasses import replace

import pytest
from tests.script_model import collect
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer

from stint.domain.errors import StintError
from stint.domain.inference import Decoding, InferenceRequest, PromptCache, SystemText, ToolSignature, UserInput
from stint.models.bedrock.model import Bedrock

ADD = ToolSignature("add", "Adds", {"type": "object", "properties": {}}, strict=True)
ASKED = InferenceRequest(
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    (SystemText("Be kind."), UserInput("Add")),
    (ADD,),
    cache=PromptCache(),
    decoding=Decoding(temperature=0.0),
    service_tier="default",
)
QUOTING = [
    "`tool_use` ids were found without `tool_result` blocks immediately after: cachePoint.",
    "Tool prompt caching not found in provided tools",
    "The value at toolConfig.tools.0.toolSpec.inputSchema.json is invalid: 'cache_control TTL' is not an object",
    "Tool strict_thing duplicated",
    "Duplicate tool: temperature",
    "Tool 'priority' is duplicated",
    "Duplicate tools: temperature, strict, priority, cachePoint",
]


@pytest.mark.parametrize("message", QUOTING)
async def test_other_requests_stay_as_they_are(model: Bedrock, server: ConverseStreamServer, message: str) -> None:
    await collect(model.stream(ASKED))
    first = server.bodies[-1]
    server.script(*[converse.error(400, "ValidationException", message)] * 9)

    with pytest.raises(StintError, match=r"uplicate|not found|without|invalid"):
        await collect(model.stream(ASKED))
    calls = len(server.bodies) - 1
    server.forget()
    await collect(model.stream(ASKED))

    assert calls <= 5, "each adaptation is tried once"
    assert server.bodies[-1] == first


async def test_several_refusals_in_a_row_are_remembered_once_the_call_is_accepted(
    model: Bedrock, server: ConverseStreamServer
) -> None:
    for message in ("strict tool use is not supported", "`temperature` is deprecated", "did not allow prompt caching"):
        server.script(converse.error(400, "ValidationException", message))

    await collect(model.stream(ASKED))
    await collect(model.stream(ASKED))

    assert len(server.bodies) == 5
    assert server.bodies[3] == server.bodies[4]
    assert server.bodies[4]["inferenceConfig"] == {}
    assert "cachePoint" not in str(server.bodies[4])


async def test_what_a_refusal_named_in_vain_is_not_remembered(model: Bedrock, server: ConverseStreamServer) -> None:
    """The name of a tool is beside what the model does refuse, which is tried next."""
    refusal = converse.error(400, "ValidationException", "`temperature` is deprecated (tools: strict)")
    server.script(refusal, refusal)

    await collect(model.stream(ASKED))
    await collect(model.stream(replace(ASKED)))

    sent = server.bodies[-1]
    assert (len(server.bodies), sent["inferenceConfig"]) == (4, {})
    assert sent["toolConfig"]["tools"][0]["toolSpec"]["strict"] is True
