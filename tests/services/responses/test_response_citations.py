"""Citations of files that were found before: in a chain, a conversation, or the input."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.api.fakes import FakeKnowledge
from tests.script_model import Part, called, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Answered, Responder
from tests.store.conftest import Cloud

from stint.domain.errors import ModelError
from stint.domain.inference import TextChunk
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.items import Message
from stint.domain.openai.parts import FileCitation, OutputText
from stint.domain.openai.response_resource import Response
from stint.domain.retrieval import FoundChunk
from stint.services.responses.replay import replay

STORE = f"vs_{'1' * 32}"
ANDES, UNKNOWN = f"file-{'a' * 32}", f"file-{'b' * 32}"
CHUNK = FoundChunk(STORE, ANDES, 0.9, "Llamas live in the Andes.", "andes.txt", {})
TOOLS: dict[str, Any] = {"tools": [{"type": "file_search", "vector_store_ids": [STORE]}]}
JSON: dict[str, Any] = {"text": {"format": {"type": "json_object"}}}
SEARCH = called("file_search", arguments='{"query": "llamas"}')
MARKED = f"There <|{ANDES}|>. Or <|{UNKNOWN}|> <|endoftext|>"
CITED = OutputText(
    text="There. Or <|endoftext|>", annotations=[FileCitation(index=5, file_id=ANDES, filename="andes.txt")]
)


@pytest.fixture
def make_responder(make_worker_fixture: MakeWorkerFixture) -> Any:
    def make(*answers: list[Part]) -> Responder:
        return Responder(make_worker_fixture(script(*answers), knowledge=FakeKnowledge([CHUNK])))

    return make


def part_of(response: Response) -> Any:
    [message] = [item for item in response.output if isinstance(item, Message)]
    return message.content[0]


def streamed(answered: Answered) -> str:
    return "".join(event.delta for event in answered.events if event.type == "response.output_text.delta")


async def assert_cites(responder: Responder, answered: Answered) -> None:
    """Check a response that cites the file: as a stream, as it was streamed, read again, and replayed."""
    response = answered.response
    assert part_of(response) == CITED
    assert streamed(answered) == CITED.text
    assert answered.kinds.count("output_text.annotation.added") == 1
    assert part_of(await responder.get(response.id)) == CITED
    stored = await responder.stored(response.id)
    replayed = [event.type for event in replay(stored, lambda _: "")]
    assert replayed.count("response.output_text.annotation.added") == 1


@pytest.mark.parametrize("tools", [TOOLS, {}])
async def test_a_follow_up_cites_what_an_earlier_response_found(make_responder: Any, tools: dict[str, Any]) -> None:
    responder = make_responder(SEARCH, said("Found."), said("Hm."), said(MARKED))
    first = (await responder.respond(**TOOLS)).response.id
    second = (await responder.respond(previous_response_id=first)).response.id

    answered = await responder.respond(previous_response_id=second, **tools)

    await assert_cites(responder, answered)


async def test_a_process_that_knows_the_chain_cites_like_one_that_reads_it(make_responder: Any) -> None:
    responder = make_responder(SEARCH, said("Found."), *[said(MARKED)] * 2)
    first = (await responder.respond(**TOOLS)).response.id
    cold = await responder.respond(previous_response_id=first)

    warm = await responder.respond(previous_response_id=first)

    assert part_of(cold.response) == part_of(warm.response) == CITED


async def test_what_a_cited_text_says_can_be_cited_after_the_search_is_out_of_the_context(make_responder: Any) -> None:
    responder = make_responder(said(MARKED))
    earlier = {
        "role": "assistant",
        "type": "message",
        "content": [CITED.model_dump(mode="json")],
        "status": "completed",
    }

    answered = await responder.respond([earlier, {"role": "user", "content": "Where?"}])

    await assert_cites(responder, answered)


async def test_a_conversation_cites_what_it_found_before(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(SEARCH, said("Found."), said(MARKED))
    responder = Responder(make_worker_fixture(model, knowledge=FakeKnowledge([CHUNK])))
    conversation = await responder.conversation()
    await responder.respond(conversation=conversation, **TOOLS)

    answered = await responder.respond(conversation=conversation)

    await assert_cites(responder, answered)
    assert any(f"cite as <|{ANDES}|>" in words_of(message) for message in model.requests[-1].messages)


async def test_results_in_the_input_are_cited(make_responder: Any) -> None:
    responder = make_responder(SEARCH, said("Found."), said(MARKED))
    first = await responder.respond(**TOOLS, include=["file_search_call.results"])
    output = [item.model_dump(mode="json") for item in first.response.output]

    answered = await responder.respond([*output, {"role": "user", "content": "Where?"}])

    assert isinstance(first.response.output[0], FileSearchCall)
    await assert_cites(responder, answered)


async def test_json_keeps_its_text(make_responder: Any) -> None:
    text = f'{{"place": "<|{ANDES}|>"}}'
    responder = make_responder(SEARCH, said("Found."), said(text))
    first = (await responder.respond(**TOOLS)).response.id

    answered = await responder.respond("As JSON", previous_response_id=first, **JSON)

    assert part_of(answered.response) == OutputText(text=text)


async def test_an_answer_that_cites_nothing_stores_no_more_than_without_a_search(
    make_responder: Any, cloud: Cloud
) -> None:
    responder = make_responder(SEARCH, said("Found."), said("Hm."), said(MARKED))
    first = (await responder.respond(**TOOLS)).response.id

    plain = await responder.stored((await responder.respond(previous_response_id=first)).response.id)
    cloud.forget()
    cited = await responder.stored((await responder.respond(previous_response_id=first)).response.id)

    assert [record.cited for record in plain.records] == [None]
    assert [record.cited for record in cited.records] == [{ANDES: "andes.txt"}]
    assert cloud.calls["PutItem"] == cloud.calls["BatchWriteItem"] == 1


async def test_a_background_follow_up_cites(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(SEARCH, said("Found."), said(MARKED))
    fixture = make_worker_fixture(model, knowledge=FakeKnowledge([CHUNK]))
    first = (await Responder(fixture).respond(**TOOLS)).response.id

    response_id = await fixture.create(previous_response_id=first, stream=True)
    await fixture.run(response_id)

    assert part_of(await fixture.get(response_id)) == CITED
    followed = await fixture.follow(response_id)
    assert [event["type"] for event in followed].count("response.output_text.annotation.added") == 1


@pytest.mark.parametrize("text", ["In Peru <|file-aaaa", " <|file-", f"In Peru <|{ANDES}|> <"])
async def test_a_broken_answer_keeps_the_text_that_waits_for_its_marker(make_responder: Any, text: str) -> None:
    busy: Sequence[Part] = [*map(TextChunk, text), ModelError("Busy.")]
    responder = make_responder(SEARCH, list(busy))

    answered = await responder.respond(**TOOLS)

    expected = text.replace(f" <|{ANDES}|>", "")
    assert answered.response.status == "failed"
    assert part_of(answered.response).text == streamed(answered) == expected
    assert part_of(await responder.get(answered.response.id)).text == expected


async def test_a_background_response_fails_if_its_store_was_deleted_before_it_ran(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    knowledge = FakeKnowledge([CHUNK])
    fixture = make_worker_fixture(script(SEARCH), knowledge=knowledge)
    response_id = await fixture.create(stream=True, **TOOLS)
    knowledge.chunks = ()

    await fixture.run(response_id)

    response = await fixture.get(response_id)
    assert response.status == "failed"
    assert response.error is not None
    assert response.error.code == "vector_store_not_found"
    assert STORE in response.error.message
    assert (await fixture.follow(response_id))[-1]["type"] == "response.failed"
