"""Service tiers in requests and answers of chat completions servers."""

from dataclasses import replace
from typing import Any

import pytest
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import ChatCompletionsServer

from stint.domain.errors import InvalidRequest
from stint.domain.inference import Finished, InferenceRequest, UserInput
from stint.models.openai.answer import ChatCompletionReader
from stint.models.openai_compatible import OpenAICompatible

HELLO = InferenceRequest("m", (UserInput("Hello"),))
UNKNOWN = {"detail": [{"type": "extra_forbidden", "loc": ["body", "service_tier"], "msg": "Extra inputs"}]}


async def ask(model: OpenAICompatible, tier: str | None) -> None:
    async for _ in model.stream(replace(HELLO, service_tier=tier)):
        pass


def tier_in(*payloads: dict[str, Any]) -> str | None:
    reader = ChatCompletionReader()
    for payload in payloads:
        list(reader.feed(payload))
    [end] = reader.finish()
    assert isinstance(end, Finished)
    return end.service_tier


@pytest.mark.parametrize("tier", [None, "default", "flex", "priority", "ultrafast"])
async def test_a_tier_is_sent_as_it_is_asked_for(
    model: OpenAICompatible, server: ChatCompletionsServer, tier: str | None
) -> None:
    await ask(model, tier)

    assert server.bodies[0].get("service_tier") == tier


@pytest.mark.parametrize(
    ("payloads", "tier"),
    [
        ([{"service_tier": "flex", "choices": []}], "flex"),
        ([{"service_tier": None}, {"service_tier": "priority"}, {}], "priority"),
        ([{"service_tier": "auto"}], None),
        ([{"service_tier": 5}], None),
        ([{"service_tier": "x" * 1_000}], None),
        ([{}], None),
    ],
)
def test_the_tier_that_served_is_read_from_the_answer(payloads: list[dict[str, Any]], tier: str | None) -> None:
    assert tier_in(*payloads) == tier


@pytest.mark.parametrize(
    "refusal",
    [
        chat.error(400, "Invalid service_tier argument", param="service_tier"),
        chat.error(400, "Unrecognized request argument supplied: service_tier"),
        chat.document(UNKNOWN, 422),
    ],
    ids=["OpenAI", "plain", "Mistral"],
)
async def test_a_server_that_has_no_tiers_refuses_one_by_name_but_not_the_default(
    model: OpenAICompatible, server: ChatCompletionsServer, refusal: Any
) -> None:
    server.script(refusal, refusal)

    with pytest.raises(InvalidRequest) as caught:
        await ask(model, "flex")
    for _ in range(2):
        await ask(model, "default")

    assert "service_tier" in (caught.value.param or "")
    assert [body.get("service_tier") for body in server.bodies] == ["flex", "default", None, None]
