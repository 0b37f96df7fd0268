"""Messages as JSON that is kept between requests, compared with a body that is written as a whole."""

import gc
import json
import threading
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.content import URL, Content, DetailedImage, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    InferenceRequest,
    ModelMessage,
    Reasoning,
    SystemText,
    ToolResult,
    UserInput,
)
from stint.domain.json_text import parse_json
from stint.domain.tools import ToolCall
from stint.models.fetched_images import FetchedImages, count_urls
from stint.models.openai import message_writer
from stint.models.openai.chat_completions import ChatCompletions
from stint.models.openai.message_writer import MessageWriter
from stint.models.openai.messages import MessageForm
from stint.models.participant_names import is_plain_name, put_name_in_text
from stint.models.tool_names import sanitize_request
from stint.providers.openai.errors import Refusal

GIF = "R0lGODlh"
PLAIN = MessageForm()
FORMS = [MessageForm(names, reasoning) for names in (True, False) for reasoning in (True, False)]

anything = st.text(st.characters(exclude_categories=()), max_size=12)  # single surrogates, too
texts = st.builds(TextContentItem, text=anything)
sources = st.one_of(
    st.just(ImageSource(data=GIF)),
    st.just(ImageSource(url=URL(uri="https://example.com/a.png"))),
    st.just(DetailedImage(data=GIF, detail="low")),
)
items = st.one_of(texts, st.builds(ImageContentItem, image=sources))
contents = st.one_of(anything, items, st.lists(items, max_size=3))
names = st.one_of(st.just(""), st.just("Ann"), anything)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), anything),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(anything, inner, max_size=2)),
    max_leaves=4,
)
arguments = st.one_of(st.dictionaries(anything, values, max_size=2), anything)
calls = st.builds(
    lambda given, text: ToolCall(call_id="c", tool_name="add", arguments=given, arguments_json=text),
    arguments,
    st.one_of(st.none(), anything),
)
messages: st.SearchStrategy[ModelMessage] = st.one_of(
    st.builds(SystemText, anything, names),
    st.builds(UserInput, contents, names),
    st.builds(
        AssistantAnswer,
        anything,
        st.lists(calls, max_size=2).map(tuple),
        st.one_of(st.none(), st.builds(Reasoning, text=anything)),
        names,
    ),
    st.builds(ToolResult, anything, st.sampled_from(["add", "chart"]), contents),
)


def as_sent(text: str) -> str:
    """Return a text as UTF-8 has it."""
    return text.encode(errors="replace").decode()


def expected(messages: Sequence[ModelMessage], form: MessageForm) -> list[Any]:
    """Write a conversation as a whole, from the rules of "Create chat completion"."""
    written: list[Any] = []
    pending: list[Any] = []
    for message in messages:
        if pending and not isinstance(message, ToolResult):
            written.append({"role": "user", "content": pending})
            pending = []
        written.append(expected_message(message, form))
        if isinstance(message, ToolResult):
            images = [part for part in parts_of(message.content) if part["type"] == "image_url"]
            pending += [{"type": "text", "text": f"From {message.tool_name}:"}, *images] if images else []
    written += [{"role": "user", "content": pending}] if pending else []
    return written


def expected_message(message: ModelMessage, form: MessageForm) -> dict[str, Any]:
    name = getattr(message, "name", "")
    if name and not (form.has_names and is_plain_name(name)):
        message = put_name_in_text(message)
    named = {"name": as_sent(name)} if name and getattr(message, "name", "") else {}
    match message:
        case SystemText(text=text):
            return {"role": "system", "content": as_sent(text), **named}
        case UserInput(content=content):
            parts = parts_of(content)
            texts = [part["text"] for part in parts if part["type"] == "text"]
            alone = len(parts) < 2 and len(texts) == len(parts)
            return {"role": "user", "content": "".join(texts) if alone else parts, **named}
        case AssistantAnswer(text=text, tool_calls=calls, reasoning=reasoning):
            answer: dict[str, Any] = {"role": "assistant", "content": as_sent(text), **named}
            if calls:
                answer |= {"content": as_sent(text) or None, "tool_calls": [expected_call(call) for call in calls]}
            return answer | ({"reasoning_content": as_sent(reasoning.text if reasoning else "")} if form[1] else {})
        case ToolResult(call_id=call_id, content=content):
            parts = parts_of(content)
            text = "\n".join(part["text"] for part in parts if part["type"] == "text")
            has_images = any(part["type"] == "image_url" for part in parts)
            text = text or ("(the image follows)" if has_images else "")
            return {"role": "tool", "tool_call_id": as_sent(call_id), "content": text}


def expected_call(call: ToolCall) -> dict[str, Any]:
    text = call.arguments_json if isinstance(call.arguments, dict) else None
    if not (text or "").strip():
        value = call.arguments if isinstance(call.arguments, dict) else read_object(call.arguments)
        text = json.dumps(value, ensure_ascii=False)
    assert text is not None
    return {"id": "c", "type": "function", "function": {"name": "add", "arguments": as_sent(text)}}


def read_object(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"invalid_arguments": text}


def parts_of(content: Content) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": as_sent(content)}]
    return [expected_part(item) for item in (content if isinstance(content, list) else [content])]


def expected_part(item: TextContentItem | ImageContentItem) -> dict[str, Any]:
    if isinstance(item, TextContentItem):
        return {"type": "text", "text": as_sent(item.text)}
    url = item.image.url.uri if item.image.url else f"data:image/gif;base64,{GIF}"
    detail = {"detail": item.image.detail} if isinstance(item.image, DetailedImage) else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def read(written: list[bytes]) -> list[Any]:
    return [json.loads(each) for each in written]


@given(
    st.lists(messages, max_size=6), st.lists(st.tuples(st.sampled_from(FORMS), st.randoms()), min_size=1, max_size=4)
)
def test_messages_that_are_kept_are_those_that_are_written_as_a_whole(
    conversation: list[ModelMessage], requests: list[tuple[MessageForm, Any]]
) -> None:
    writer = MessageWriter()

    for form, random in requests:
        some = [message for message in conversation if random.random() < 0.8]
        assert read(writer.write(some, form)) == expected(some, form)


@given(st.lists(messages, max_size=4), st.sampled_from([{}, {"temperature": 0.5, "stop": ("\ud800",)}]))
def test_the_body_has_the_messages_beside_all_other_fields(
    conversation: list[ModelMessage], fields: dict[str, Any]
) -> None:
    adaptations = ChatCompletions()
    request = InferenceRequest("m", tuple(conversation), decoding=Decoding(**fields))

    bodies = [json.loads(adaptations.write(request, frozenset())) for _ in range(2)]

    assert bodies[0] == bodies[1]
    assert bodies[0].pop("messages") == expected(conversation, PLAIN)
    given = {name: ["?"] if name == "stop" else value for name, value in fields.items()}
    assert bodies[0] == {"model": "m", "stream": True, "stream_options": {"include_usage": True}, **given}


def test_what_a_model_refuses_is_also_left_out_of_messages_that_are_kept() -> None:
    adaptations = ChatCompletions()
    request = InferenceRequest("m", (UserInput("hi", "Ann"), AssistantAnswer("ho", reasoning=Reasoning(text="hm"))))
    refused = [Refusal(400, "Unrecognized field: name"), Refusal(400, "Missing reasoning_content")]

    bodies = [json.loads(adaptations.write(request, frozenset()))]
    for refusal in refused:
        adaptations.refused.add("m", adaptations.find_refused(request, refusal, frozenset()))
        bodies.append(json.loads(adaptations.write(request, adaptations.refused.of("m"))))

    forms = (MessageForm(), MessageForm(has_names=False), MessageForm(has_names=False, has_reasoning=True))
    assert [body["messages"] for body in bodies] == [expected(request.messages, form) for form in forms]


def test_a_message_is_written_once_for_all_requests_that_contain_it(monkeypatch: pytest.MonkeyPatch) -> None:
    call = ToolCall(call_id="c", tool_name="add", arguments={"a": 1})
    answer = AssistantAnswer("", (call,))
    user = UserInput([TextContentItem(text="a")])
    conversation: list[ModelMessage] = [SystemText("s"), user, answer, ToolResult("c", "add", "1")]
    writer = MessageWriter()
    first = writer.write(conversation, PLAIN)

    monkeypatch.setattr(message_writer, "write_message", None)

    assert writer.write(conversation, PLAIN) == first


async def test_plain_messages_reach_the_adapter_as_the_same_objects() -> None:
    call = ToolCall(call_id="c", tool_name="add", arguments={})
    texts = (SystemText("s"), UserInput("a"), AssistantAnswer("", (call,)), ToolResult("c", "add", "1"))
    image = UserInput(ImageContentItem(image=ImageSource(url=URL(uri="https://example.com/a.gif"))))

    class Served:
        body = b"GIF89a"

    async def fetch(url: str) -> Served:
        return Served()

    request = sanitize_request(InferenceRequest("m", (*texts, image)))
    filled = await FetchedImages(Caught(), fetch)._fill_request(request, count_urls(request))

    assert all(one is other for one, other in zip(filled.messages, texts, strict=False))
    assert filled.messages[4] != image


class Caught:
    """A model that is never called."""

    def check(self, request: InferenceRequest) -> None:
        raise NotImplementedError

    stream: Any = None
    count_tokens: Any = None


def test_a_message_that_only_equals_a_kept_one_is_written_again() -> None:
    writer = MessageWriter()
    one, other = UserInput("a"), UserInput("a")

    writer.write([one], PLAIN)
    size = writer.size
    writer.write([one, other], PLAIN)

    assert one == other
    assert writer.size == 2 * size


def test_an_object_in_the_memory_of_a_former_message_is_not_taken_for_it() -> None:
    writer = MessageWriter()

    for number in range(200):
        assert read(writer.write([UserInput(f"{number}")], PLAIN)) == [{"role": "user", "content": f"{number}"}]


def test_a_message_is_not_kept_alive_and_its_json_is_dropped_after_it() -> None:
    writer = MessageWriter()
    writer.write([UserInput("a" * 1000) for _ in range(100)], PLAIN)
    gc.collect()

    writer.write([], PLAIN)

    assert writer.size == 0


def test_images_are_not_kept() -> None:
    writer = MessageWriter()
    image = ImageContentItem(image=ImageSource(data=GIF))
    conversation: list[ModelMessage] = [UserInput([image]), ToolResult("c", "chart", image)]

    writer.write(conversation, PLAIN)

    assert writer.size == 0


def test_an_image_that_cannot_be_read_leaves_the_writer_usable() -> None:
    writer = MessageWriter()
    broken = UserInput(ImageContentItem(image=ImageSource(data="?")))

    with pytest.raises(InvalidRequest, match="base64"):
        writer.write([UserInput("a"), broken], PLAIN)

    assert read(writer.write([UserInput("b")], PLAIN)) == [{"role": "user", "content": "b"}]


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_memory_stays_below_the_bound(length: int) -> None:
    writer = MessageWriter(most_bytes=1_000_000)
    conversation: list[ModelMessage] = [UserInput(f"{number}{'a' * length}") for number in range(4000)]
    tracemalloc.start()
    try:
        writer.write(conversation, PLAIN)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert writer.size <= 1_000_000
    assert 700_000 < used < 1_000_000


def test_a_message_over_the_bound_is_sent_and_displaces_no_other() -> None:
    writer = MessageWriter(most_bytes=1000)
    small, large = UserInput("a"), UserInput("a" * 2000)
    writer.write([small], PLAIN)
    size = writer.size

    assert read(writer.write([large], PLAIN)) == expected([large], PLAIN)
    assert writer.size == size


def test_the_least_recently_used_messages_are_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = [UserInput(letter) for letter in "abc"]
    writer = MessageWriter()
    writer.write(conversation[:1], PLAIN)
    writer.most_bytes = 2 * writer.size
    writer.write(conversation[1:2], PLAIN)

    writer.write(conversation[:1], PLAIN)
    writer.write(conversation[2:], PLAIN)

    size = writer.size
    monkeypatch.setattr(message_writer, "write_message", None)
    writer.write([conversation[0], conversation[2]], PLAIN)
    with pytest.raises(TypeError):
        writer.write(conversation[1:2], PLAIN)
    assert writer.size == size


def test_threads_can_share_a_writer() -> None:
    conversation: list[ModelMessage] = [UserInput(f"{number}") for number in range(300)]
    writer = MessageWriter(most_bytes=20_000)
    found: list[bool] = []

    def write(part: list[ModelMessage]) -> None:
        found.extend(read(writer.write(part, PLAIN)) == expected(part, PLAIN) for _ in range(10))

    threads = [threading.Thread(target=write, args=(conversation[place:],)) for place in range(0, 200, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [True] * 40
    assert writer.size <= 20_000
