import base64
import time
import tracemalloc
import zlib
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.store.conftest import Cloud
from tests.unit.services.responses.item_fixture import INPUT

from stint.domain.errors import InvalidRequest
from stint.domain.inference import Reasoning
from stint.domain.openai.opaque import UNSIGNED_PREFIX, CompactedContext, is_unsigned
from stint.domain.schema import Schema
from stint.services.conversations.opaque_texts import OpaqueTexts

THOUGHT = Reasoning(text="Cats, then.")
ASK = {"role": "user", "content": "go"}
ENCRYPTED = "reasoning.encrypted_content"


def reasoning(text: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": text}


def unsigned(body: str) -> str:
    packed = zlib.compress(f"Reasoning\n{body}".encode(), 9)
    return UNSIGNED_PREFIX + base64.urlsafe_b64encode(packed).decode()


def bomb(megabytes: int) -> str:
    return unsigned('{"text": "' + "a" * (megabytes * 1_000_000) + '"}')


async def refusal(opaque: OpaqueTexts, *items: dict[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        await opaque.check(INPUT.validate_python(list(items)))
    return caught.value


async def signed(opaque: OpaqueTexts, document: Schema) -> str:
    """Encode a document after the key was loaded."""
    await opaque.warm()
    return opaque.encode(document)


@pytest.fixture
def opaque(cloud: Cloud, tenant: str) -> OpaqueTexts:
    return OpaqueTexts(tenant, cloud.store.signing_keys)


async def test_a_text_of_one_process_is_accepted_by_another(cloud: Cloud, tenant: str, opaque: OpaqueTexts) -> None:
    other = OpaqueTexts(tenant, cloud.store.signing_keys)

    await other.check(INPUT.validate_python([reasoning(await signed(opaque, THOUGHT))]))


async def test_the_key_is_read_once_a_process(cloud: Cloud, opaque: OpaqueTexts) -> None:
    text = await signed(opaque, THOUGHT)
    cloud.forget()

    for _ in range(3):
        await opaque.check(INPUT.validate_python([reasoning(text), reasoning(await signed(opaque, THOUGHT))]))

    assert cloud.calls == {}


async def test_a_request_without_opaque_text_does_not_ask_for_the_key(cloud: Cloud, opaque: OpaqueTexts) -> None:
    await opaque.check(INPUT.validate_python([ASK, {"type": "reasoning", "summary": []}, {"id": "msg_1"}]))

    assert cloud.calls == {}


async def test_a_text_of_another_tenant_is_refused_by_its_place(cloud: Cloud, tenant: str, opaque: OpaqueTexts) -> None:
    other = OpaqueTexts(f"{tenant}b", cloud.store.signing_keys)
    compaction = {"type": "compaction", "encrypted_content": await signed(other, CompactedContext(summary="x"))}

    thought = await refusal(opaque, ASK, {"id": "msg_1"}, reasoning(await signed(other, THOUGHT)))
    summary = await refusal(opaque, compaction)

    assert thought.param == "input[2].encrypted_content"
    assert thought.message.startswith("input[2].encrypted_content: It was changed")
    assert summary.param == "input[0].encrypted_content"


@pytest.mark.parametrize("text", ["", "st1.AAAA", "st2.\u00e9"])
@pytest.mark.parametrize("kind", ["reasoning", "compaction"])
async def test_what_this_server_did_not_make_is_refused(opaque: OpaqueTexts, kind: str, text: str) -> None:
    refused = await refusal(opaque, reasoning(text) | {"type": kind})

    assert refused.param == "input[0].encrypted_content"
    assert refused.message.startswith("input[0].encrypted_content: It ")


async def test_a_text_of_another_type_of_item_is_refused(opaque: OpaqueTexts) -> None:
    text = await signed(opaque, CompactedContext(summary="x"))

    assert "another type" in (await refusal(opaque, reasoning(text))).message


async def test_texts_without_a_signature_are_refused_unread(opaque: OpaqueTexts) -> None:
    items = [reasoning(bomb(20))] * 40
    tracemalloc.start()

    refused = await refusal(opaque, *items)

    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    assert "STINT_UNSIGNED_CONTENT_UNTIL" in refused.message


async def test_texts_without_a_signature_are_accepted_until_the_end_of_a_day(
    cloud: Cloud, tenant: str, opaque: OpaqueTexts
) -> None:
    today = datetime.fromtimestamp(time.time(), UTC).date()
    items = INPUT.validate_python([reasoning(unsigned('{"text": "Cats."}'))])

    lenient = OpaqueTexts(tenant, cloud.store.signing_keys, today)
    await lenient.check(items)
    CLOCK.move(86_400)

    assert "not accepted" in (await refusal(lenient, reasoning(unsigned("{}")))).message
    strict = OpaqueTexts(tenant, cloud.store.signing_keys, today - timedelta(days=1))
    assert "not accepted" in (await refusal(strict, reasoning(unsigned("{}")))).message


async def test_accepted_texts_without_a_signature_are_bounded_in_all(cloud: Cloud, tenant: str) -> None:
    lenient = OpaqueTexts(tenant, cloud.store.signing_keys, date.max)
    await lenient.check(INPUT.validate_python([reasoning(bomb(7))]))
    tracemalloc.start()

    refused = await refusal(lenient, *(reasoning(bomb(3)) for _ in range(40)))

    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()
    assert refused.param == "input[2].encrypted_content"
    assert "more than 8,000,000 bytes in total" in refused.message
    assert "damaged" in (await refusal(lenient, reasoning(unsigned("{}")[:-3]))).message
    assert "damaged" in (await refusal(lenient, reasoning(unsigned('{"text": 5}')))).message


async def test_a_plain_response_never_asks_for_the_key(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said())))
    responder.cloud.forget()

    with responder.cloud.proxy.watch() as seen:
        await responder.respond()

    assert [call for call in seen if "signing_key" in call] == []


async def test_the_key_is_read_beside_what_a_response_continues(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), said(), said())))
    first = (await responder.respond()).response.id
    await responder.respond(previous_response_id=first, include=[ENCRYPTED])
    responder.cloud.forget()

    await responder.respond(previous_response_id=first, include=[ENCRYPTED])

    assert responder.cloud.calls == {"BatchGetItem": 1, "BatchWriteItem": 1, "PutItem": 1, "GetItem": 1}


async def test_what_is_stored_stays_readable_whatever_the_setting(make_worker_fixture: MakeWorkerFixture) -> None:
    """A conversation holds texts that were checked when they came in, signed or older."""
    responder = Responder(make_worker_fixture(script(said(), called("x"))))
    worker_fixture = responder.worker_fixture
    conversation = await worker_fixture.conversation()
    opaque = worker_fixture.services.conversations.opaque
    opaque.unsigned_until = date.max
    items = INPUT.validate_python([reasoning(unsigned('{"text": "Cats."}')), {"role": "assistant", "content": "Hm."}])
    await worker_fixture.services.conversations.add_items(conversation, items)
    opaque.unsigned_until = None

    ended = await responder.respond(conversation=conversation)

    assert ended.response.status.value == "completed"


async def test_a_signed_text_does_not_look_older(opaque: OpaqueTexts) -> None:
    assert not is_unsigned(await signed(opaque, THOUGHT))
