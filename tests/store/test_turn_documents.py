"""The stored form of turns: small in new records, and whole in those of earlier releases."""

import secrets
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, header, record

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.ids import new_id
from stint.domain.inference import Usage
from stint.domain.llama_stack.stored_turns import TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep, SafetyViolation, ShieldCallStep, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse, ToolResponseMessage
from stint.store.documents import to_json
from stint.store.items import size
from stint.store.store import Store

TURN, STEP = "01a20441-3221-7000-a091-9a2b36f72c94", "01a20441-323b-7000-81b1-877ec4a3068d"
WHOLE_HEADER = (
    '{"turn_id":"01a20441-3221-7000-a091-9a2b36f72c94","session_id":"%s","input_messages":[{"role":"user",'
    '"content":"Hello"}],"documents":[],"started_at":"2026-11-22T17:15:11.283517Z","overrides":{"toolgroups":[]}}'
)
WHOLE_RECORD = (
    '{"step":{"turn_id":"01a20441-3221-7000-a091-9a2b36f72c94","step_id":"01a20441-323b-7000-81b1-877ec4a3068d",'
    '"started_at":"2026-11-22T17:15:10.291295Z","completed_at":"2026-11-22T17:15:11.291303Z","step_type":"inference",'
    '"model_response":{"role":"assistant","content":"Hi","stop_reason":"end_of_turn","tool_calls":[]}},"ending":'
    '{"status":"completed","completed_at":"2026-11-22T17:15:11.293408Z","usage":{"input_tokens":12,"output_tokens":3,'
    '"total_tokens":15,"cached_tokens":0,"reasoning_tokens":0}}}'
)
WHOLE_PENDING = (
    '{"turn_id":"01a20441-3221-7000-a091-9a2b36f72c94","step_id":"01a20441-323b-7000-81b1-877ec4a3068d",'
    '"started_at":"2026-11-22T17:15:11.293408Z","tool_calls":[{"call_id":"c1","tool_name":"look","arguments":{}}]}'
)


@pytest.fixture
async def session_fixture(store: Store, tenant: str) -> SessionFixture:
    return await SessionFixture.create(store, tenant)


def stored(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    """Return the records of turns of a tenant."""
    items = sorted(cloud.items(tenant), key=lambda item: str(item["sk"]["S"]))
    return [item for item in items if "#session:" in item["pk"]["S"] and "doc" in item]


def at(second: int) -> datetime:
    return datetime(2026, 11, 22, 17, 15, second, tzinfo=UTC)


async def test_records_of_earlier_releases_stay_readable(cloud: Cloud, session_fixture: SessionFixture) -> None:
    tenant, agent_id, session_id = session_fixture.ids
    pk = f"{tenant}#session:{agent_id}:{session_id}"
    pending = f"{tenant}#in_progress_tool_call_step:{agent_id}:{session_id}"
    cloud.write(
        [
            {"pk": pk, "sk": TURN, "doc": WHOLE_HEADER % session_id},
            {"pk": pk, "sk": f"{TURN}:0000", "doc": WHOLE_RECORD, "ended_as": "completed"},
            {"pk": pending, "sk": TURN, "doc": WHOLE_PENDING},
        ]
    )

    turn = await cloud.store.turns.get(*session_fixture.ids, TURN)
    waiting = await cloud.store.turns.get_pending(*session_fixture.ids, TURN)

    assert turn.header == TurnHeader(
        turn_id=TURN,
        session_id=session_id,
        input_messages=[UserMessage(content="Hello")],
        started_at=at(11).replace(microsecond=283517),
        overrides=TurnOverrides(),
    )
    assert turn.records == [
        TurnRecord(
            step=InferenceStep(
                turn_id=TURN,
                step_id=STEP,
                started_at=at(10).replace(microsecond=291295),
                completed_at=at(11).replace(microsecond=291303),
                model_response=CompletionMessage(content="Hi"),
            ),
            ending=RunOutcome(
                status=RunStatus.completed,
                completed_at=at(11).replace(microsecond=293408),
                usage=Usage(input_tokens=12, output_tokens=3, total_tokens=15),
            ),
        )
    ]
    assert turn.size == len(WHOLE_HEADER % session_id) + len(WHOLE_RECORD)
    assert waiting is not None
    assert (waiting.turn_id, waiting.step_id, waiting.tool_calls[0].call_id) == (TURN, STEP, "c1")


async def test_a_record_has_no_id_of_its_key_and_no_empty_field(cloud: Cloud, session_fixture: SessionFixture) -> None:
    turn_id = await session_fixture.turn("Hello", "Hi")

    header_item, record_item = stored(cloud, session_fixture.tenant)

    for item in (header_item, record_item):
        for absent in (turn_id, session_fixture.session_id, "[]", "{}", "null", '""'):
            assert absent not in item["doc"]["S"]
    assert header_item["doc"]["S"].startswith('{"input_messages":[{"content":"Hello"}],"started_at":"20')
    assert '"model_response":{"content":"Hi"}' in record_item["doc"]["S"]


async def test_a_short_turn_takes_three_quarters_of_the_bytes_of_whole_documents(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    lease = await session_fixture.begin("Hello")
    last = record(lease.turn_id, "Hi", RunStatus.completed)
    last.ending = RunOutcome(status=RunStatus.completed, completed_at=now(), usage=Usage(input_tokens=12))
    await cloud.store.turns.append(lease, 0, last)

    items = [
        {name: next(iter(value.values())) for name, value in item.items()}
        for item in stored(cloud, session_fixture.tenant)
    ]

    turn = await cloud.store.turns.get(*session_fixture.ids, lease.turn_id)
    whole = [to_json(turn.header), to_json(turn.records[0])]
    bytes_whole = sum(size(item | {"doc": raw.decode(), "size": ""}) for item, raw in zip(items, whole, strict=True))
    assert turn.size == sum(map(len, whole))
    assert sum(size(item | {"size": 100}) for item in items) < 0.75 * bytes_whole


def records(turn_id: str) -> list[TurnRecord]:
    """Return records of all kinds."""
    common = {"turn_id": turn_id, "step_id": new_id(), "started_at": now()}
    call = ToolCall(call_id="c1", tool_name="look", arguments={"a": None, "b": [], "c": ""}, arguments_json="{}")
    answers = [
        CompletionMessage(),
        CompletionMessage(content="", stop_reason="end_of_message", tool_calls=[call]),
        CompletionMessage(content=[TextContentItem(text=""), ImageContentItem(image=ImageSource(data=""))]),
        CompletionMessage(content=TextContentItem(text="a"), stop_reason="out_of_tokens"),
        CompletionMessage(content='{"turn_id":"x","role":"user"}'),
    ]
    response = ToolResponse(call_id="c1", tool_name="look", content="", metadata={"turn_id": None, "role": []})
    violation = SafetyViolation(violation_level="error", metadata={"turn_id": "x", "a": None})
    error = ErrorInfo(message="", type="t", code="c")
    return [
        *[TurnRecord(step=InferenceStep(**common, model_response=answer)) for answer in answers],
        TurnRecord(step=ToolExecutionStep(**common, tool_calls=[], tool_responses=[])),
        TurnRecord(step=ToolExecutionStep(**common, tool_calls=[call], tool_responses=[response])),
        TurnRecord(step=ShieldCallStep(**common)),
        TurnRecord(step=ShieldCallStep(**common, violation=violation)),
        TurnRecord(ending=RunOutcome(status=RunStatus.awaiting_input, completed_at=now(), usage=Usage())),
        TurnRecord(),
        TurnRecord(ending=RunOutcome(status=RunStatus.failed, completed_at=now(), error=error)),
    ]


async def test_records_of_all_kinds_read_back_equal(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.acquire()
    begun = TurnHeader(
        turn_id=lease.turn_id,
        session_id=session_fixture.session_id,
        input_messages=[
            UserMessage(content="", context=""),
            ToolResponseMessage(call_id="c0", content=[]),
            UserMessage(content=[TextContentItem(text="a")]),
        ],
        started_at=now(),
        overrides=TurnOverrides(instructions=""),
    )
    await store.turns.put_header(lease, begun)
    written = records(lease.turn_id)
    for index, one in enumerate(written):
        await store.turns.append(lease, index, one)

    turn = await store.turns.get(*session_fixture.ids, lease.turn_id)

    assert turn.header == begun
    assert turn.records == written
    assert turn.size == sum(len(to_json(document)) for document in (begun, *written))


async def test_documents_about_the_limit_of_an_item_read_back_equal(
    session_fixture: SessionFixture, store: Store
) -> None:
    for length in (280_000, 299_700, 299_850, 300_000, 300_200, 310_000):
        text = secrets.token_hex(length // 2)
        turn_id = await session_fixture.turn(text, secrets.token_urlsafe(length)[:length])

        turn = await store.turns.get(*session_fixture.ids, turn_id)

        assert turn.header.input_messages == [UserMessage(content=text)]
        assert turn.size == sum(len(to_json(document)) for document in (turn.header, *turn.records))


async def test_a_document_that_names_another_turn_keeps_its_ids(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.begin()
    other = record(new_id(), "Hi")
    await store.turns.append(lease, 0, other)

    turn = await store.turns.get(*session_fixture.ids, lease.turn_id)

    assert turn.records == [other]
    assert header(lease.turn_id, session_fixture.session_id).turn_id == turn.header.turn_id
