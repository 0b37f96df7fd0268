"""Conversations, chat completions and models by the `openai` package."""

import threading
from typing import Any

import pytest
from openai import BadRequestError, ConflictError, NotFoundError, OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from openai.types.conversations import Message

MODEL = "scripted/demo"
WEATHER: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def texts_of(client: OpenAI, conversation: str, **page: Any) -> list[str]:
    items = client.conversations.items.list(conversation, **page)
    return [str(getattr(item.content[0], "text", "")) for item in items if isinstance(item, Message)]


def test_a_conversation_is_created_changed_and_deleted(openai_client: OpenAI) -> None:
    created = openai_client.conversations.create(metadata={"topic": "plums"})

    changed = openai_client.conversations.update(created.id, metadata={"topic": "pears"})
    retrieved = openai_client.conversations.retrieve(created.id)
    page: Any = openai_client.get("/conversations?limit=1", cast_to=object)
    deleted = openai_client.conversations.delete(created.id)

    assert created.metadata == {"topic": "plums"}
    assert changed == retrieved
    assert retrieved.metadata == {"topic": "pears"}
    assert [each["id"] for each in page["data"]] == [created.id]
    assert (deleted.id, deleted.deleted) == (created.id, True)
    with pytest.raises(NotFoundError, match=created.id):
        openai_client.conversations.retrieve(created.id)


def test_items_are_added_read_in_pages_and_deleted(openai_client: OpenAI) -> None:
    words = [f"word {number}" for number in range(5)]
    conversation = openai_client.conversations.create(items=[{"role": "user", "content": words[0]}]).id
    added = openai_client.conversations.items.create(
        conversation, items=[{"type": "message", "role": "user", "content": word} for word in words[1:]]
    )
    ids = [str(item.id) for item in added.data]

    last = openai_client.conversations.items.retrieve(ids[-1], conversation_id=conversation)
    forward = texts_of(openai_client, conversation, limit=2, order="asc")
    backward = texts_of(openai_client, conversation, limit=2)
    openai_client.conversations.items.delete(ids[0], conversation_id=conversation)

    assert last == added.data[-1]
    assert forward == words
    assert backward == words[::-1]
    assert texts_of(openai_client, conversation, order="asc") == [words[0], *words[2:]]


def test_responses_read_a_conversation_and_add_to_it(openai_client: OpenAI) -> None:
    conversation = openai_client.conversations.create().id

    first = openai_client.responses.create(model=MODEL, input="My name is Ada", conversation=conversation)
    with openai_client.responses.stream(model=MODEL, input="Who am I?", conversation={"id": conversation}) as stream:
        second = stream.get_final_response()

    assert first.conversation
    assert first.conversation.id == conversation
    assert second.output_text == "You said: Who am I?"  # without the introduction of a first answer
    assert texts_of(openai_client, conversation, order="asc") == [
        "My name is Ada",
        first.output_text,
        "Who am I?",
        second.output_text,
    ]


def test_a_conversation_and_a_previous_response_exclude_each_other(openai_client: OpenAI) -> None:
    conversation = openai_client.conversations.create().id
    response = openai_client.responses.create(model=MODEL, input="Hello")

    with pytest.raises(BadRequestError, match="previous_response_id"):
        openai_client.responses.create(
            model=MODEL, input="Hello", conversation=conversation, previous_response_id=response.id
        )


def test_one_response_at_a_time_runs_in_a_conversation(openai_client: OpenAI) -> None:
    conversation = openai_client.conversations.create().id
    running = threading.Event()
    texts: list[str] = []

    def stream() -> None:
        with openai_client.responses.create(
            model=MODEL, input="slow: 5\nlong: 300 words", conversation=conversation, stream=True
        ) as events:
            for event in events:
                if event.type == "response.created":
                    running.set()
                if event.type == "response.completed":
                    texts.append(event.response.output_text)

    thread = threading.Thread(target=stream)
    thread.start()
    assert running.wait(20)
    with pytest.raises(ConflictError, match=conversation) as locked:
        openai_client.responses.create(model=MODEL, input="Me too", conversation=conversation)
    thread.join()

    assert locked.value.code == "conversation_locked"
    assert openai_client.responses.create(model=MODEL, input="say: Now", conversation=conversation).output_text == "Now"
    assert len(texts[0].split()) == 300


def test_a_chat_is_completed(openai_client: OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": "say: Hello there"},
    ]

    completion = openai_client.chat.completions.create(model=MODEL, messages=messages)
    chunks = list(
        openai_client.chat.completions.create(
            model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )

    assert completion.choices[0].message.content == "Hello there"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage
    assert completion.usage.total_tokens > 0
    streamed = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(streamed) == "Hello there"
    assert chunks[-1].usage == completion.usage


def test_a_chat_calls_a_tool(openai_client: OpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Please get_weather of Bern"}]

    asked = openai_client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
    calls = asked.choices[0].message.tool_calls or []
    answers: list[ChatCompletionMessageParam] = [
        {"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in calls
    ]
    question: Any = asked.choices[0].message
    final = openai_client.chat.completions.create(
        model=MODEL, messages=[*messages, question, *answers], tools=[WEATHER]
    )

    assert asked.choices[0].finish_reason == "tool_calls"
    assert [call.function.arguments for call in calls if call.type == "function"] == ['{"city": "Bern"}']
    assert final.choices[0].message.content == "get_weather answered: rain"


def test_a_chat_of_an_unknown_model_is_refused(openai_client: OpenAI) -> None:
    with pytest.raises((BadRequestError, NotFoundError), match="nobody/here"):
        openai_client.chat.completions.create(model="nobody/here", messages=[{"role": "user", "content": "Hello"}])


def test_models_are_listed(openai_client: OpenAI) -> None:
    models = list(openai_client.models.list())

    assert MODEL in [model.id for model in models]
    assert {model.object for model in models} == {"model"}
