from collections.abc import Mapping
from typing import Any

import pytest
from infra.local.engine import Engine
from infra.local.sample_ids import (
    AGENT,
    AWAITING_STEP,
    AWAITING_TURN,
    BACKGROUND_RESPONSE,
    COMPLETED_STEPS,
    COMPLETED_TURN,
    CONVERSATION,
    CONVERSATION_ITEM,
    DELETED_CHAT_COMPLETION,
    PENDING_STEP,
    QUEUED_RESPONSE,
    RESPONSE,
    SESSION,
)
from infra.local.sample_store import clients
from infra.local.samples import store_samples

from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import AwsEnvironment
from stint.aws.s3_reader import S3Reader
from stint.domain.ids import TENANT
from stint.domain.run_outcome import RunStatus
from stint.store.bucket import Bucket
from stint.store.keys import chat_completion_blobs
from stint.store.store import Store


def make_store(dynamodb: DynamoDBClient, s3: Any, environment: Mapping[str, str]) -> Store:
    name = environment["STINT_BUCKET"]
    bucket = Bucket(name, lambda: s3, lambda: S3Reader(AwsEnvironment(environment), name))
    return Store(dynamodb, environment["STINT_TABLE"], bucket)


async def test_samples_are_stored_anew_whatever_an_interrupted_event_left(engine: Engine) -> None:
    names = {"STINT_TABLE": engine.outputs["TableName"], "STINT_BUCKET": engine.outputs["BucketName"]}
    environment = engine.environment() | names
    async with clients(environment) as (dynamodb, s3):
        store = make_store(dynamodb, s3, environment)
        await store_samples(environment)
        await store.session_leases.acquire(TENANT, AGENT, SESSION, AWAITING_TURN, resume=True, seconds=60)
        await store.agents.mark_deleted(TENANT, AGENT)

        await store_samples(environment)

        history = await store.turns.history(TENANT, AGENT, SESSION)
        pending = await store.turns.get_pending(TENANT, AGENT, SESSION, AWAITING_TURN)
        session = await store.sessions.get(TENANT, AGENT, SESSION)
    found = {turn.header.turn_id: turn.status for turn in history.turns}
    assert found == {COMPLETED_TURN: RunStatus.completed, AWAITING_TURN: RunStatus.awaiting_input}
    assert pending is not None
    assert [call.call_id for call in pending.tool_calls] == ["call_2"]
    assert (session.lease_turn, session.last) == (None, history.last)


async def test_the_worker_has_a_body_of_a_chat_completion_to_delete(engine: Engine) -> None:
    names = {"STINT_TABLE": engine.outputs["TableName"], "STINT_BUCKET": engine.outputs["BucketName"]}
    environment = engine.environment() | names
    async with clients(environment) as (dynamodb, s3):
        store = make_store(dynamodb, s3, environment)
        await store_samples(environment)
        place = {"Bucket": names["STINT_BUCKET"], "Prefix": chat_completion_blobs(TENANT, DELETED_CHAT_COMPLETION)}
        before = s3.list_objects_v2(**place)["KeyCount"]
        done = await store.chat_completions.delete(TENANT, DELETED_CHAT_COMPLETION)
        after = s3.list_objects_v2(**place)["KeyCount"]

    assert (before, done, after) == (1, True, 0)


async def test_samples_have_the_ids_that_the_events_name(engine: Engine) -> None:
    names = {"STINT_TABLE": engine.outputs["TableName"], "STINT_BUCKET": engine.outputs["BucketName"]}
    environment = engine.environment() | names
    await store_samples(environment)
    async with clients(environment) as (dynamodb, s3):
        store = make_store(dynamodb, s3, environment)
        history = await store.turns.history(TENANT, AGENT, SESSION)
        pending = await store.turns.get_pending(TENANT, AGENT, SESSION, AWAITING_TURN)
        stored = [await store.responses.get(TENANT, each) for each in (RESPONSE, QUEUED_RESPONSE, BACKGROUND_RESPONSE)]
        item = await store.conversations.get_item(TENANT, CONVERSATION, CONVERSATION_ITEM)

    steps = {turn.header.turn_id: [step.step_id for step in turn.steps] for turn in history.turns}
    assert steps == {COMPLETED_TURN: list(COMPLETED_STEPS), AWAITING_TURN: [AWAITING_STEP]}
    assert pending is not None
    assert pending.step_id == PENDING_STEP
    assert [each.status for each in stored] == ["completed", "queued", "completed"]
    assert item.item.id == CONVERSATION_ITEM


async def test_the_samples_of_an_event_log_no_warning(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    names = {"STINT_TABLE": engine.outputs["TableName"], "STINT_BUCKET": engine.outputs["BucketName"]}

    await store_samples(engine.environment() | names)

    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []
