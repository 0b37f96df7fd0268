"""Requests that are adapted and sent again after a chat completions server refused a field."""

from dataclasses import replace
from typing import Any

import pytest
from tests.servers import chat_completions as chat
from tests.servers.chat_completions import ChatCompletionsServer

from stint.domain.errors import StintError
from stint.domain.inference import AssistantAnswer, InferenceRequest, JsonObjectResponseFormat, SystemText, UserInput
from stint.models.openai_compatible import OpenAICompatible

BRIEF = InferenceRequest("m", (UserInput("Hello"),), verbosity="low")
KEYED = InferenceRequest("m", (UserInput("Hello"),), cache_key="5f0c")
GROUP = InferenceRequest(
    "m", (SystemText("Be brief.", "editor"), UserInput("Hello", "Ann"), AssistantAnswer("Hi", name="Bob"))
)
PLAIN = [
    {"role": "system", "content": "editor: Be brief."},
    {"role": "user", "content": "Ann: Hello"},
    {"role": "assistant", "content": "Bob: Hi"},
]
OBJECT = InferenceRequest("m", (UserInput("Hello"),), response_format=JsonObjectResponseFormat())
SCHEMA = {"type": "json_schema", "json_schema": {"name": "response", "schema": {"type": "object"}}}


async def ask(model: OpenAICompatible, request: InferenceRequest) -> None:
    async for _ in model.stream(request):
        pass


async def refused(model: OpenAICompatible, request: InferenceRequest) -> str:
    with pytest.raises(StintError) as caught:
        await ask(model, request)
    return caught.value.message


def details(*location: str | int) -> dict[str, Any]:
    """The answer of FastAPI servers that forbid additional fields, such as Mistral's."""
    return {
        "detail": [{"type": "extra_forbidden", "loc": ["body", *location], "msg": "Extra inputs are not permitted"}]
    }


class TestVerbosity:
    async def test_it_is_sent_to_servers_that_take_it(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        await ask(model, BRIEF)

        assert server.bodies[0]["verbosity"] == "low"

    @pytest.mark.parametrize(
        "refusal",
        [
            chat.error(
                400, "Unsupported value: 'verbosity' does not support 'low' with this model.", param="verbosity"
            ),
            chat.document(details("verbosity"), 422),
        ],
        ids=["OpenAI", "Mistral"],
    )
    async def test_a_model_that_refuses_it_is_asked_without_from_then_on(
        self, model: OpenAICompatible, server: ChatCompletionsServer, refusal: Any
    ) -> None:
        server.script(refusal)

        await ask(model, BRIEF)
        await ask(model, BRIEF)
        await ask(model, replace(BRIEF, model="other"))

        assert [body.get("verbosity") for body in server.bodies] == ["low", None, None, "low"]


class TestCacheKeys:
    @pytest.mark.parametrize(
        "refusal",
        [
            chat.error(400, "Unknown parameter: 'prompt_cache_key'.", param="prompt_cache_key"),
            chat.document(details("prompt_cache_key"), 422),
        ],
        ids=["OpenAI", "FastAPI"],
    )
    async def test_a_model_that_refuses_them_is_asked_without_from_then_on(
        self, model: OpenAICompatible, server: ChatCompletionsServer, refusal: Any
    ) -> None:
        server.script(refusal)

        await ask(model, KEYED)
        await ask(model, KEYED)
        await ask(model, replace(KEYED, model="other"))

        assert [body.get("prompt_cache_key") for body in server.bodies] == ["5f0c", None, None, "5f0c"]

    async def test_a_request_without_one_has_no_such_field(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        await ask(model, BRIEF)

        assert "prompt_cache_key" not in server.bodies[0]


class TestNames:
    async def test_they_are_sent_beside_the_messages(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        await ask(model, GROUP)

        sent = [(message["name"], message["content"]) for message in server.bodies[0]["messages"]]
        assert sent == [("editor", "Be brief."), ("Ann", "Hello"), ("Bob", "Hi")]

    @pytest.mark.parametrize(
        "refusal",
        [
            chat.document(details("messages", 0, "system", "name"), 422),
            chat.error(400, "Unrecognized field: name"),
            chat.error(400, "'messages.0' : for 'role:user' (property 'name' is unsupported)"),
            chat.error(400, "Invalid value.", param="messages[1].name"),
        ],
        ids=["Mistral", "plain", "Groq", "OpenAI"],
    )
    async def test_a_model_that_refuses_them_gets_them_in_the_text(
        self, model: OpenAICompatible, server: ChatCompletionsServer, refusal: Any
    ) -> None:
        server.script(refusal)

        await ask(model, GROUP)
        await ask(model, GROUP)

        assert [body["messages"] for body in server.bodies[1:]] == [PLAIN, PLAIN]

    async def test_a_refused_name_of_a_tool_is_none_of_theirs(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        server.script(chat.error(400, "Invalid 'tools[0].function.name': string does not match pattern."))

        await refused(model, GROUP)

        assert len(server.requests) == 1

    @pytest.mark.parametrize("name", ["Ann Lee", "a" * 65, "<Ann>", "a/b", "Ann\n"])
    async def test_one_that_openai_would_refuse_goes_into_the_text(
        self, model: OpenAICompatible, server: ChatCompletionsServer, name: str
    ) -> None:
        await ask(model, InferenceRequest("m", (UserInput("Hello", name),)))

        assert server.bodies[0]["messages"] == [{"role": "user", "content": f"{name}: Hello"}]


class TestJsonObject:
    async def test_it_is_sent_as_it_is(self, model: OpenAICompatible, server: ChatCompletionsServer) -> None:
        await ask(model, OBJECT)

        assert server.bodies[0]["response_format"] == {"type": "json_object"}

    @pytest.mark.parametrize(
        "refusal",
        [
            chat.document({"error": "'response_format.type' must be 'json_schema' or 'text'"}, 400),
            chat.document(details("response_format", "type"), 422),
            chat.error(400, "Unsupported value: 'json_object'"),
        ],
        ids=["LM Studio", "FastAPI", "plain"],
    )
    async def test_a_model_that_refuses_it_gets_a_schema_from_then_on(
        self, model: OpenAICompatible, server: ChatCompletionsServer, refusal: Any
    ) -> None:
        server.script(refusal)

        await ask(model, OBJECT)
        await ask(model, OBJECT)

        assert [body["response_format"] for body in server.bodies[1:]] == [SCHEMA, SCHEMA]

    async def test_messages_that_do_not_speak_of_json_are_the_callers_to_change(
        self, model: OpenAICompatible, server: ChatCompletionsServer
    ) -> None:
        words = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        server.script(chat.error(400, words, param="messages"))

        assert words in await refused(model, OBJECT)
        await ask(model, OBJECT)

        assert [body["response_format"]["type"] for body in server.bodies] == ["json_object"] * 2
