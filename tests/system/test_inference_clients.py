"""Inference and stored chat completions against `make run`: the unmodified clients, and the examples of the docs."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from infra.local.engine import ROOT
from llama_stack_client import BadRequestError, LlamaStackClient
from openai import NotFoundError, OpenAI
from tests.system.run_process import Run

MODEL = "scripted/demo"
WEATHER: Any = {
    "tool_name": "get_weather",
    "description": "Returns the weather.",
    "parameters": {"city": {"param_type": "str", "description": "A city.", "required": True}},
}


@pytest.fixture
def client(responses_run: Run) -> Iterator[LlamaStackClient]:
    with LlamaStackClient(base_url=responses_run.url, http_client=httpx.Client(trust_env=False)) as client:
        yield client


def says(words: str) -> Any:
    return [{"role": "user", "content": words}]


def test_llama_stacks_client_chats_with_a_tool_streamed_and_whole(client: LlamaStackClient) -> None:
    question = says("Please get_weather of Bern")
    asked = client.inference.chat_completion(model_id=MODEL, messages=question, tools=[WEATHER]).completion_message
    [call] = asked.tool_calls or []
    result = {"role": "tool", "call_id": call.call_id, "content": "rain"}
    messages: Any = [*question, asked.to_dict(), result]
    stream: Any = client.inference.chat_completion(model_id=MODEL, messages=messages, tools=[WEATHER], stream=True)
    events = [chunk.event for chunk in stream]

    assert (asked.stop_reason, call.arguments) == ("end_of_message", {"city": "Bern"})
    assert [events[0].event_type, events[-1].event_type] == ["start", "complete"]
    texts = [event.delta.text for event in events if event.delta.type == "text"]
    assert "".join(texts) == "get_weather answered: rain"


def test_llama_stacks_client_completes_streams_and_sends_batches(client: LlamaStackClient) -> None:
    whole = client.inference.completion(model_id=MODEL, content="say: Hello there")
    chunks: Any = list(client.inference.completion(model_id=MODEL, content="say: Hello there", stream=True))
    batch = client.inference.batch_completion(model_id=MODEL, content_batch=["say: one", "say: two"])

    assert whole.content == "".join(chunk.delta for chunk in chunks) == "Hello there"
    assert [each.content for each in batch.batch] == ["one", "two"]
    with pytest.raises(BadRequestError, match="does not exist"):
        client.inference.chat_completion(model_id="nowhere", messages=says("Hi"))


def test_a_stored_chat_is_read_listed_changed_and_deleted(openai_client: OpenAI) -> None:
    chats = openai_client.chat.completions
    with chats.create(
        model=MODEL, messages=says("say: Hello there"), store=True, metadata={"run": "system"}, stream=True
    ) as stream:
        [completion_id] = {chunk.id for chunk in stream}

    stored = chats.retrieve(completion_id)
    listed = [each.id for each in chats.list(metadata={"run": "system"})]
    updated = chats.update(completion_id, metadata={"run": "ended"})
    messages = chats.messages.list(completion_id)
    deleted = chats.delete(completion_id)

    assert stored.choices[0].message.content == "Hello there"
    assert listed == [completion_id]
    assert updated.to_dict()["metadata"] == {"run": "ended"}
    assert [(str(each.role), each.content) for each in messages.data] == [("user", "say: Hello there")]
    assert deleted.deleted
    with pytest.raises(NotFoundError):
        chats.retrieve(completion_id)


def test_text_completions_are_whole_and_streamed(openai_client: OpenAI) -> None:
    whole = openai_client.completions.create(model=MODEL, prompt=["say: one", "say: two"])
    with openai_client.completions.create(model=MODEL, prompt="say: Hello there", stream=True) as stream:
        streamed = "".join(chunk.choices[0].text for chunk in stream)

    assert [choice.text for choice in whole.choices] == ["one", "two"]
    assert streamed == "Hello there"


def test_the_examples_of_inference_run_as_printed_but_for_the_port(responses_run: Run) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/inference.md").read_text(), flags=re.DOTALL)

    printed = [run_python(block.replace("http://127.0.0.1:8321", responses_run.url)) for block in blocks]

    assert printed == ["Hello\nstart \nprogress Hello\ncomplete \n", "Hello\nsay: Hello\nGoodbye\n"]


def run_python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
