"""Efforts of reasoning beside tools, which OpenAI's newer models refuse in chat completions.

The texts of the refusals are those that users of these models have published.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import until
from tests.servers.chat_completions import error, stream
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest, ReasoningOptions, ToolSignature, UserInput
from stint.domain.tools import ToolChoice
from stint.models.openai_compatible import OpenAICompatible

TOOL = ToolSignature("lookup", "", {"type": "object"})
INSTEAD = "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
USE_RESPONSES = INSTEAD + "Please use /v1/responses instead."
OR_SET_NONE = INSTEAD + "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
NO_MINIMAL = (
    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. "
    "Supported values are: 'none', 'low', 'medium', 'high', 'xhigh'."
)

Judge = Callable[[dict[str, Any]], str | None]


def gpt_5_4(body: dict[str, Any]) -> str | None:
    return USE_RESPONSES if body.get("tools") and body.get("reasoning_effort", "none") != "none" else None


def gpt_5_5(body: dict[str, Any]) -> str | None:
    """Refuse as one report says: also if no effort was sent."""
    return USE_RESPONSES if body.get("tools") and body.get("reasoning_effort") != "none" else None


def gpt_5_6(body: dict[str, Any]) -> str | None:
    if body.get("reasoning_effort") == "minimal":
        return NO_MINIMAL
    return OR_SET_NONE if body.get("tools") and body.get("reasoning_effort") != "none" else None


JUDGES: dict[str, Judge] = {"gpt-5.4": gpt_5_4, "gpt-5.5": gpt_5_5, "gpt-5.6": gpt_5_6, "gpt-5.6-terra": gpt_5_6}


def answer(received: Received) -> Reply:
    body = received.json()
    refusal = JUDGES[body["model"]](body)
    if refusal is None:
        return stream({"content": "ok"})
    message = refusal.format(model=body["model"])
    return error(400, message, type="invalid_request_error", param="reasoning_effort")


@asynccontextmanager
async def asked_model() -> AsyncIterator[tuple[OpenAICompatible, ScriptedHTTPServer]]:
    with ScriptedHTTPServer(answer) as server:
        model = OpenAICompatible(f"{server.url}/v1", backoff=0.001)
        yield model, server
        await model.aclose()


def request_of(model: str, effort: str | None, **fields: Any) -> InferenceRequest:
    reasoning = ReasoningOptions(effort) if effort else None
    return InferenceRequest(model, (UserInput("Hello"),), reasoning=reasoning, **{"tools": (TOOL,), **fields})


async def ask(model: OpenAICompatible, request: InferenceRequest) -> None:
    async for _ in model.stream(request):
        pass


@pytest.mark.parametrize(
    ("name", "effort", "sent"),
    [
        ("gpt-5.4", None, [None]),
        ("gpt-5.4", "none", ["none"]),
        ("gpt-5.4", "low", ["low", None]),
        ("gpt-5.5", None, [None, "none"]),
        ("gpt-5.5", "high", ["high", None, "none"]),
        ("gpt-5.5", "none", ["none"]),
        ("gpt-5.6", None, [None, "none"]),
        ("gpt-5.6", "high", ["high", "none"]),
        ("gpt-5.6", "none", ["none"]),
        ("gpt-5.6", "minimal", ["minimal", "low", "none"]),
        ("gpt-5.6-terra", None, [None, "none"]),
    ],
)
async def test_an_effort_that_a_model_refuses_beside_tools_is_given_up(
    name: str, effort: str | None, sent: list[str | None]
) -> None:
    async with asked_model() as (model, server):
        await ask(model, request_of(name, effort))
        first = efforts_in(server)
        await ask(model, request_of(name, effort))

        assert first == sent
        assert efforts_in(server) == [*sent, sent[-1]], "later requests are adapted at once"


def efforts_in(server: ScriptedHTTPServer) -> list[str | None]:
    return [body.get("reasoning_effort") for body in server.bodies]


@pytest.mark.parametrize(
    "message",
    [
        USE_RESPONSES + " (tid: 2026060603462294496503107606431)",
        "400 Tools and reasoning_effort cannot be combined here: see /v1/responses.",
        "reasoning_effort is not supported with tools",
    ],
)
async def test_the_words_may_differ(message: str) -> None:
    async with asked_model() as (model, server):
        server.script(error(400, message), error(400, message))

        await ask(model, request_of("gpt-5.5", "low"))

        assert efforts_in(server) == ["low", None, "none"]


@pytest.mark.parametrize("fields", [{"tools": ()}, {"tool_choice": ToolChoice.none}], ids=["no tools", "none chosen"])
async def test_an_effort_without_tools_is_still_sent(fields: dict[str, Any]) -> None:
    async with asked_model() as (model, server):
        await ask(model, request_of("gpt-5.6", "high"))
        await ask(model, replace(request_of("gpt-5.6", "high"), **fields))
        await ask(model, replace(request_of("gpt-5.6", "minimal"), **fields))
        await ask(model, replace(request_of("gpt-5.6", None), **fields))

        assert efforts_in(server) == ["high", "none", "high", "minimal", "low", None]


async def test_what_one_model_refuses_is_sent_to_others() -> None:
    async with asked_model() as (model, server):
        await ask(model, request_of("gpt-5.6", None))
        await ask(model, request_of("gpt-5.4", None))

        assert efforts_in(server) == [None, "none", None]


async def test_a_refusal_that_another_request_learned_from_first_is_learned_from_too() -> None:
    """Two requests are sent at once. When the second is refused, the model's refusal is known."""
    async with asked_model() as (model, server):
        late = error(400, USE_RESPONSES.format(model="gpt-5.4"), param="reasoning_effort")
        learned = threading.Event()
        server.script(replace(late, before=learned))
        slow = asyncio.create_task(ask(model, request_of("gpt-5.4", "low")))
        await until(lambda: server.requests)
        await ask(model, request_of("gpt-5.4", "low"))
        learned.set()
        await slow

        assert efforts_in(server) == ["low", "low", None, None]


async def test_an_effort_that_does_not_exist_is_refused_by_name() -> None:
    JUDGES["strict"] = lambda _: "Unsupported value: 'reasoning_effort' does not support 'max' with this model."
    async with asked_model() as (model, server):
        with pytest.raises(InvalidRequest) as caught:
            await ask(model, request_of("strict", "max"))

        assert caught.value.param == "reasoning.effort"
        assert efforts_in(server) == ["max"]


async def test_a_model_that_accepts_neither_is_not_asked_for_ever() -> None:
    JUDGES["never"] = lambda _: USE_RESPONSES
    async with asked_model() as (model, server):
        with pytest.raises(InvalidRequest):
            await ask(model, request_of("never", "low"))

        assert efforts_in(server) == ["low", None, "none"]
