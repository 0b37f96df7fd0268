"""Service tiers and labels of ConverseStream calls."""

import re
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer

from stint.domain.errors import InvalidRequest
from stint.domain.inference import Finished, InferenceRequest, UserInput
from stint.models.bedrock.model import Bedrock
from stint.models.bedrock.request import LONGEST_METADATA, MOST_METADATA, TIERS, write_converse

HELLO = InferenceRequest("amazon.nova-pro-v1:0", (UserInput("Hello"),))
UNSUPPORTED = "The provided service tier is not supported for this model."


def shape_of(name: str) -> Any:
    return botocore.session.get_session().get_service_model("bedrock-runtime").shape_for(name)


async def served(model: Bedrock, request: InferenceRequest) -> str | None:
    chunks = [chunk async for chunk in model.stream(request)]
    assert isinstance(chunks[-1], Finished)
    return chunks[-1].service_tier


def answer(tier: str | None) -> Any:
    told = {"serviceTier": {"type": tier}} if tier else {}
    end = {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}, **told}
    stop = converse.event("messageStop", {"stopReason": "end_turn"})
    return converse.begun(*converse.text_block("Hi"), stop, converse.event("metadata", end))


@pytest.mark.parametrize("tier", ["default", "flex", "priority"])
async def test_a_tier_is_sent_and_the_one_that_served_is_reported(
    model: Bedrock, server: ConverseStreamServer, tier: str
) -> None:
    server.script(answer("priority"))

    assert await served(model, replace(HELLO, service_tier=tier)) == "priority"
    assert server.bodies[0]["serviceTier"] == {"type": tier}


async def test_no_tier_is_sent_unless_it_is_asked_for(model: Bedrock, server: ConverseStreamServer) -> None:
    server.script(answer("default"))

    assert await served(model, HELLO) == "default"
    assert "serviceTier" not in server.bodies[0]


@pytest.mark.parametrize(("asked", "reported"), [("flex", "flex"), (None, None)])
async def test_an_answer_that_names_no_tier_was_served_as_asked(
    model: Bedrock, server: ConverseStreamServer, asked: str | None, reported: str | None
) -> None:
    server.script(answer(None))

    assert await served(model, replace(HELLO, service_tier=asked)) == reported


@pytest.mark.parametrize("name", ["Flex!", "", "x" * 100, "auto"])
async def test_a_name_that_no_tier_can_have_is_not_reported(
    model: Bedrock, server: ConverseStreamServer, name: str
) -> None:
    server.script(answer(name))

    assert await served(model, HELLO) is None


async def test_a_tier_that_the_model_lacks_is_refused_by_name(model: Bedrock, server: ConverseStreamServer) -> None:
    server.script(converse.error(400, "ValidationException", UNSUPPORTED))

    with pytest.raises(InvalidRequest) as caught:
        await served(model, replace(HELLO, service_tier="flex"))

    assert caught.value.param == "service_tier"
    assert "'flex'" in caught.value.message
    assert HELLO.model in caught.value.message
    assert len(server.bodies) == 1


@pytest.mark.parametrize("message", ["'flex' tier is not available", "Unknown tier: priority", "Invalid serviceTier"])
async def test_a_refusal_of_a_tier_is_known_by_the_word(
    model: Bedrock, server: ConverseStreamServer, message: str
) -> None:
    server.script(converse.error(400, "ValidationException", message))

    with pytest.raises(InvalidRequest, match="choose another one") as caught:
        await served(model, replace(HELLO, service_tier="flex"))

    assert caught.value.param == "service_tier"


@pytest.mark.parametrize("message", ["Tool 'priority' is duplicated", "The tool flex has no frontier"])
async def test_a_refusal_of_something_with_the_name_of_a_tier_is_not_about_the_tier(
    model: Bedrock, server: ConverseStreamServer, message: str
) -> None:
    server.script(converse.error(400, "ValidationException", message))

    with pytest.raises(InvalidRequest, match=message) as caught:
        await served(model, replace(HELLO, service_tier="flex"))

    assert caught.value.param != "service_tier"
    assert "choose another one" not in caught.value.message


async def test_the_default_tier_is_never_refused(model: Bedrock, server: ConverseStreamServer) -> None:
    server.script(converse.error(400, "ValidationException", UNSUPPORTED), answer(None), answer(None), answer(None))
    default, flex = replace(HELLO, service_tier="default"), replace(HELLO, service_tier="flex")

    assert [await served(model, request) for request in (default, default, flex)] == ["default", "default", "flex"]
    assert [body.get("serviceTier") for body in server.bodies] == [{"type": "default"}, None, None, {"type": "flex"}]


@pytest.mark.parametrize("tier", ["scale", "ultrafast"])
def test_a_tier_that_bedrock_lacks_is_refused_before_the_call(model: Bedrock, tier: str) -> None:
    with pytest.raises(InvalidRequest, match=tier) as caught:
        model.check(replace(HELLO, service_tier=tier))

    assert caught.value.param == "service_tier"


async def test_labels_are_the_metadata_of_the_call(model: Bedrock, server: ConverseStreamServer) -> None:
    await served(model, replace(HELLO, labels=(("tenant", "acme"), ("key_id", "k1"))))
    await served(model, HELLO)

    assert server.bodies[0]["requestMetadata"] == {"tenant": "acme", "key_id": "k1"}
    assert "requestMetadata" not in server.bodies[1]


@pytest.mark.parametrize("value", ["ann@müller.example", "a%b\x00c", "\u2003", "l" * 1_000, "A-z_0 9:@$#=/+,."])
def test_metadata_is_within_the_limits_of_the_service(value: str) -> None:
    labels = tuple((f"label{place}", value) for place in range(20))
    form = shape_of("RequestMetadata")

    written = write_converse(replace(HELLO, labels=labels)).parameters["requestMetadata"]

    assert len(written) == form.metadata["max"] == MOST_METADATA
    assert form.value.metadata["max"] == LONGEST_METADATA
    pattern = re.compile(form.value.metadata["pattern"], re.ASCII)
    assert all(pattern.fullmatch(each) for each in written.values())
    assert value != "A-z_0 9:@$#=/+,." or set(written.values()) == {value}


def test_the_tiers_are_those_of_the_service() -> None:
    assert {*TIERS, "reserved"} == set(shape_of("ServiceTierType").enum)
