"""Reasoning of the Responses API: streamed, and sent back unchanged to the server and model that it is of."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.servers.model_responses import (
    ModelResponsesServer,
    call,
    events_of,
    message,
    only,
    raw_thought,
    reply,
    stream,
    thought,
    whole,
)
from tests.unit.models.openai_responses.calling import (
    ADD,
    answer_of,
    asked,
    collect,
    connect,
    continued,
    read,
    sent_back,
    text_in,
    thoughts_in,
)

from stint.domain.inference import AssistantAnswer, Reasoning, ReasoningChunk, ReasoningOptions, UserInput
from stint.domain.redaction import Redactor
from stint.loop.model_call import ChunkRedactor
from stint.models.bedrock.reasoning import write_reasoning
from stint.models.openai_responses import reasoning as items_of_reasoning

FIRST = thought("First I ", "then I", item_id="rs_1", encrypted="gAAAA1")
SECOND = thought("Second", item_id="rs_2", encrypted="gAAAA2")
CALL = call("c1", "add", '{"a": 1}')
LOW = ReasoningOptions(effort="low", summary="auto")


@pytest.fixture
def raw() -> Iterator[ModelResponsesServer]:
    with ModelResponsesServer(raw=True) as server:
        yield server


def kinds(items: list[dict[str, Any]]) -> list[str]:
    """Return what each item is: the id of reasoning, the text of a message, or the id of a call."""
    return [item.get("id") or item.get("call_id") or item["content"] for item in items]


async def test_reasoning_is_streamed_with_its_parts_apart(server: ModelResponsesServer) -> None:
    chunks = await read(server, stream(FIRST, SECOND, message("So")), asked(reasoning=LOW))

    assert thoughts_in(chunks) == "First I \n\nthen I\n\nSecond"
    assert server.bodies[0]["reasoning"] == {"effort": "low", "summary": "auto"}


@pytest.mark.parametrize("form", [stream, whole])
async def test_reasoning_comes_back_unchanged_after_a_call(
    server: ModelResponsesServer, form: Callable[..., Any]
) -> None:
    items = await sent_back(server, form(FIRST, SECOND, CALL))

    assert kinds(items) == ["rs_1", "rs_2", "c1"]
    for sent, item in zip((FIRST, SECOND), items, strict=False):
        assert item == {key: value for key, value in sent.items() if key in item}
        assert {"id", "summary", "encrypted_content"} <= item.keys()


async def test_reasoning_comes_back_in_later_turns(server: ModelResponsesServer) -> None:
    items = await sent_back(server, stream(FIRST, message("So")))

    assert kinds(items)[:2] == ["rs_1", "So"]


async def test_reasoning_without_a_summary_comes_back(server: ModelResponsesServer) -> None:
    hidden = thought(encrypted="gAAAA3")

    chunks = await read(server, stream(hidden, CALL), asked(tools=(ADD,)))
    items = await sent_back(server, stream(hidden, CALL))

    assert thoughts_in(chunks) == ""
    assert items[0] == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA3"}


async def test_a_model_can_reason_between_its_items(server: ModelResponsesServer) -> None:
    """The late reasoning is not shown, and goes back to its place."""
    answer = stream(FIRST, message("Let me see."), SECOND, message("It is.", item_id="msg_2"), CALL)

    chunks = await read(server, answer, asked(tools=(ADD,)))
    items = await sent_back(server, answer)

    assert thoughts_in(chunks) == "First I \n\nthen I"
    assert text_in(chunks) == "Let me see.\n\nIt is."
    assert kinds(items) == ["rs_1", "Let me see.", "rs_2", "It is.", "c1"]


async def test_reasoning_between_calls_goes_back_between_them(server: ModelResponsesServer) -> None:
    items = await sent_back(server, stream(FIRST, CALL, SECOND, call("c2", "add")))

    assert kinds(items) == ["rs_1", "c1", "rs_2", "c2"]


async def test_messages_keep_their_phases(server: ModelResponsesServer) -> None:
    answer = stream(
        FIRST,
        message("Let me see.", phase="commentary", item_id="a"),
        SECOND,
        message("It is 2.", phase="final_answer", item_id="b"),
    )

    items = (await sent_back(server, answer))[:-1]

    assert kinds(items) == ["rs_1", "Let me see.", "rs_2", "It is 2."]
    assert [item.get("phase") for item in items] == [None, "commentary", None, "final_answer"]


async def test_reasoning_after_a_message_without_a_phase_comes_back(server: ModelResponsesServer) -> None:
    answer = stream(message("Let me see."), SECOND, CALL)

    found = answer_of(await read(server, answer, asked(tools=(ADD,))))
    items = await sent_back(server, answer)

    assert found.reasoning is not None
    assert found.reasoning.shown is None
    assert kinds(items) == ["Let me see.", "rs_2", "c1"]


async def test_a_phase_needs_no_reasoning(server: ModelResponsesServer) -> None:
    commentary = message("Let me see.", phase="commentary")

    items = await sent_back(server, stream(commentary, thought(encrypted="gAAAA4"), CALL))

    assert kinds(items) == ["Let me see.", "rs_1", "c1"]
    assert items[0]["phase"] == "commentary"


@pytest.mark.parametrize("phase", ["new", 7, None, {}])
async def test_an_unknown_phase_is_ignored(server: ModelResponsesServer, phase: Any) -> None:
    [event] = only(events_of(message("So")), "output_item.added")
    event["item"]["phase"] = phase

    chunks = await read(server, reply([event, *events_of(message("So"))[3:]]))

    assert not any(isinstance(chunk, ReasoningChunk) for chunk in chunks)


async def test_reasoning_itself_goes_back_to_a_server_that_does_not_encrypt(raw: ModelResponsesServer) -> None:
    """Those are vLLM with gpt-oss, and LM Studio."""
    answer = stream(raw_thought("I need to ", "add."), CALL)

    chunks = await read(raw, answer, asked(tools=(ADD,)))
    items = await sent_back(raw, answer)

    assert thoughts_in(chunks) == "I need to add."
    assert items[0] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "I need to add."}],
    }


NAMES = ["reasoning.delta", "reasoning_text.delta", "reasoning_summary.delta", "reasoning_summary_text.delta"]


@pytest.mark.parametrize("name", NAMES)
async def test_each_name_of_the_events_of_reasoning_is_read(server: ModelResponsesServer, name: str) -> None:
    place = {"output_index": 0, "item_id": "rs_1", "content_index": 0}
    deltas = [{"type": f"response.{name}", "delta": piece, **place} for piece in ("Well ", "now")]
    events = [*events_of()[:2], *deltas, *events_of(thought("Well now"), message("So"))[-1:]]

    chunks = await read(server, reply(events))

    assert (thoughts_in(chunks), text_in(chunks)) == ("Well now", "So")


async def test_a_summary_that_is_not_encrypted_is_shown_and_not_sent_back(server: ModelResponsesServer) -> None:
    """OpenAI has the item only if it stored the response."""
    items = await sent_back(server, stream(thought("Well", encrypted=None), CALL))

    assert kinds(items) == ["c1"]


async def test_another_model_does_not_get_it(server: ModelResponsesServer) -> None:
    items = await sent_back(server, stream(FIRST, message("Let me see."), SECOND, CALL), {"model": "another"})

    assert kinds(items) == ["Let me see.", "c1"]


async def test_another_server_does_not_get_it(server: ModelResponsesServer) -> None:
    answer = answer_of(await read(server, stream(FIRST, CALL), asked(tools=(ADD,))))
    with ModelResponsesServer() as another:
        await read(another, None, continued(answer))

        assert kinds(another.inputs[0])[1:] == ["c1", "c1"]


async def test_another_provider_with_the_address_does_not_get_it(server: ModelResponsesServer) -> None:
    """Its key is of another account."""
    one, other = connect(server, provider="one"), connect(server, provider="other")
    server.script(stream(FIRST, CALL))
    answer = answer_of(await collect(one, asked(tools=(ADD,))))

    for model in (other, one):
        await collect(model, continued(answer))
        await model.aclose()

    assert [kinds(items)[1:-1] for items in server.inputs[1:]] == [["c1"], ["rs_1", "c1"]]


async def test_bedrock_does_not_get_it(server: ModelResponsesServer) -> None:
    answer = answer_of(await read(server, stream(FIRST, message("Let me see."), SECOND, CALL)))

    assert answer.reasoning is not None
    assert (answer.reasoning.signature.count("gAAAA"), answer.reasoning.late.count("gAAAA")) == (1, 1)
    assert write_reasoning(answer.reasoning) == []


@pytest.mark.parametrize(
    "reasoning",
    [
        Reasoning(text="I think", signature="c2lnbmVk\n3:c2lnbmVk"),
        Reasoning(redacted="c2VjcmV0"),
        Reasoning(text="I think"),
        Reasoning(text="I think", signature='{"reasoning_of":'),
        Reasoning(text="I think", signature='{"reasoning_of":"x"}\n{"at":[0,0]}'),
    ],
)
async def test_reasoning_of_bedrock_and_of_chat_completions_is_omitted(
    server: ModelResponsesServer, reasoning: Reasoning
) -> None:
    await read(server, None, continued(AssistantAnswer("So", reasoning=reasoning)))

    assert kinds(server.inputs[0]) == ["Hello you", "So", "And?"]


@pytest.mark.parametrize(
    "line", ["{", "[]", "7", '{"at":[0,0]}', '{"at":7,"texts":[],"id":"x"}', '{"at":[1e999,0],"texts":[],"id":"x"}']
)
async def test_a_damaged_line_ends_the_reasoning(server: ModelResponsesServer, line: str) -> None:
    answer = answer_of(await read(server, stream(FIRST, message("So"))))
    assert answer.reasoning is not None
    damaged = replace(answer, reasoning=Reasoning(text="I", signature=f"{answer.reasoning.signature}\n{line}"))
    only_damaged = replace(answer, reasoning=Reasoning(text="I", signature=f"{_head(answer)}\n{line}"))

    for each in (damaged, only_damaged):
        model = connect(server)
        body = model._api_of(model._routes_to(asked())[0]).write(continued(each), frozenset())
        assert json.loads(body)["input"]


@pytest.mark.parametrize(
    "texts",
    [
        [[0, 9], [0, 9]],
        [[0, 5], [4, 9]],
        [[5, 9], [0, 5]],
        [[0, 11]],
        [[-1, 5]],
        [[0, -1]],
        [[5, 4]],
        [[0, None]],
        [[0.0, 1.5]],
        [["0", "5"]],
        [[0, True]],
        [[0]],
        [[0, 1, 2]],
        [7],
        {"a": 1},
        "ab",
        [[0, 0]] * 11,
        [[20, 25]],
    ],
)
@pytest.mark.parametrize("is_encrypted", [True, False])
def test_texts_of_a_damaged_line_are_not_repeated(texts: Any, is_encrypted: bool) -> None:
    """A small line would become a request of hundreds of megabytes."""
    sealed = {"encrypted_content": "g"} if is_encrypted else {}
    line = json.dumps({"id": "rs", "at": [0, 0], "texts": texts, **sealed})
    reasoning = Reasoning(text="0123456789", signature=f"{items_of_reasoning.write_head('o')}\n{line}")

    assert list(items_of_reasoning.read_items(reasoning, "o")) == []


def test_texts_of_two_damaged_lines_are_not_repeated() -> None:
    line = json.dumps({"id": "rs", "at": [0, 0], "texts": [[0, 9]]})
    both = f"{items_of_reasoning.write_head('o')}\n{line}\n{line}"

    for reasoning in (
        Reasoning(text="0123456789", signature=both),
        Reasoning(text="0123456789", signature=both[: -len(line) - 1], late=both[: -len(line) - 1]),
    ):
        assert len(list(items_of_reasoning.read_items(reasoning, "o"))) == 1


@pytest.mark.parametrize("phase", ["x" * 1_000, 7, {}, None])
def test_a_phase_of_a_damaged_line_is_not_repeated(phase: Any) -> None:
    """It would be in each message after it."""
    line = json.dumps({"phase": phase, "at": [0, 0]})
    reasoning = Reasoning(text="So", late=f"{items_of_reasoning.write_head('o')}\n{line}")

    assert list(items_of_reasoning.read_items(reasoning, "o")) == []


def _head(answer: AssistantAnswer) -> str:
    assert answer.reasoning is not None
    return answer.reasoning.signature.split("\n", 1)[0]


async def test_reasoning_with_a_secret_is_not_sent_back(server: ModelResponsesServer) -> None:
    """Its text was redacted, so that it is not what the server sent. The secret may also be in what is encrypted."""
    secret = "tok-12345678"
    leaky = thought(f"The token is {secret}.", encrypted="gAAAA5")
    redactor = ChunkRedactor(Redactor([secret]))
    chunks = [
        each
        for chunk in await read(server, stream(leaky, message("So"), SECOND, CALL), asked(tools=(ADD,)))
        for each in redactor.redact_chunk(chunk)
    ]
    answer = answer_of([*chunks, *redactor.flush()])

    await read(server, None, continued(answer))

    assert answer.reasoning is not None
    assert "12345678" not in answer.reasoning.text + answer.reasoning.signature
    assert kinds(server.inputs[-1])[1:-1] == ["So", "c1"]


async def test_reasoning_beyond_the_limit_is_omitted(
    server: ModelResponsesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stint.models.openai_responses.answer.MAX_CHARACTERS", 1_000)
    large = thought("Large", item_id="rs_2", encrypted="g" * 2_000)
    last = thought("Last", item_id="rs_3", encrypted="gAAAA6")

    answer = answer_of(await read(server, stream(FIRST, large, last, message("So"))))

    assert answer.reasoning is not None
    assert len(answer.reasoning.signature) < 1_200
    assert answer.reasoning.text == "First I \n\nthen I\n\nLarge\n\nLast"
    ids = [json.loads(line)["id"] for line in answer.reasoning.signature.split("\n")[1:]]
    assert ids == ["rs_1", "rs_3"]


async def test_an_answer_that_is_only_reasoning_goes_back_as_an_empty_message(server: ModelResponsesServer) -> None:
    """Its tokens did not suffice. The server has to get something between two messages of the user."""
    hidden = thought("Too long", encrypted=None)

    items = await sent_back(server, stream(hidden, status="incomplete", reason="max_output_tokens"))

    assert [item["content"] for item in items] == ["", "And?"]


LATER = thought("Third", item_id="rs_3", encrypted="gAAAA8")
ENDINGS: dict[str, tuple[list[Any], Callable[[AssistantAnswer], AssistantAnswer], list[str]]] = {
    "only reasoning": ([FIRST, SECOND], lambda answer: answer, [""]),
    "reasoning after the text": ([FIRST, message("So"), SECOND], lambda answer: answer, ["rs_1", "So"]),
    "dropped calls": ([FIRST, CALL], lambda answer: replace(answer, tool_calls=()), [""]),
    "dropped calls after text": (
        [FIRST, message("So"), SECOND, CALL, LATER, call("c2", "add")],
        lambda answer: replace(answer, tool_calls=()),
        ["rs_1", "So"],
    ),
    "a dropped call": (
        [FIRST, CALL, SECOND, call("c2", "add")],
        lambda answer: replace(answer, tool_calls=answer.tool_calls[:1]),
        ["rs_1", "c1"],
    ),
    "two dropped calls": (
        [FIRST, CALL, SECOND, call("c2", "add"), LATER, call("c3", "add")],
        lambda answer: replace(answer, tool_calls=answer.tool_calls[:1]),
        ["rs_1", "c1"],
    ),
    "a part of the text": (
        [FIRST, message("Let me see."), SECOND, message("It is.", item_id="msg_2")],
        lambda answer: replace(answer, text="Let me"),
        ["rs_1", "Let me"],
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
async def test_reasoning_without_its_following_item_is_omitted(server: ModelResponsesServer, name: str) -> None:
    """The answer was cut, had more calls than allowed, or a shield released a part of it. Servers refuse the rest."""
    items, cut, expected = ENDINGS[name]

    answer = cut(answer_of(await read(server, stream(*items), asked(tools=(ADD,)))))
    await read(server, None, continued(answer))

    assert (
        kinds([item for item in server.inputs[-1][1:] if item["type"] != "function_call_output"])[: len(expected)]
        == expected
    )
    assert sum(item["type"] == "reasoning" for item in server.inputs[-1]) == sum("rs_" in each for each in expected)


async def test_all_texts_survive_half_a_surrogate_pair(server: ModelResponsesServer) -> None:
    halves = thought("a\ud83d", "\ude00b", encrypted="gAAAA7")

    answer = answer_of(await read(server, stream(halves, message("\ud83d"), SECOND, CALL), asked(tools=(ADD,))))

    placed = list(items_of_reasoning.read_items(answer.reasoning, _origin(server)))
    assert [each.item["id"] for each in placed if each.item] == ["rs_1", "rs_2"]
    assert [part["text"][-1:] for part in (placed[0].item or {})["summary"]] == ["?", "b"]


def _origin(server: ModelResponsesServer) -> str:
    model = connect(server)
    api: Any = model._api_of(model._routes_to(asked())[0])
    return str(api._origin(asked()))


async def test_what_a_server_sends_as_an_id_is_a_text_or_nothing(server: ModelResponsesServer) -> None:
    for item_id in (7, {"a": [1]}, None, ""):
        answer = answer_of(await read(server, stream({**FIRST, "id": item_id}, message("So"))))
        [placed] = items_of_reasoning.read_items(answer.reasoning, _origin(server))

        assert placed.item is not None
        assert "id" not in placed.item


async def test_the_reasoning_of_each_request_is_its_own(server: ModelResponsesServer) -> None:
    """The unscripted server numbers its thoughts, and refuses those that were changed or moved."""
    messages: list[Any] = [UserInput("add {}")]
    for _ in range(3):
        answer = answer_of(await read(server, None, asked(*messages, tools=(ADD,), reasoning=LOW)))
        messages += [answer, *continued(answer).messages[2:]]

    assert sum(item["type"] == "reasoning" for item in server.inputs[-1]) == 2
