"""The store that samples are in, and the removal of what earlier events left there.

Ids of samples are fixed, because the files in `events/` contain them. What an earlier event left under an id, even the
mark of a deletion, would change what the next one does. So the samples are removed before they are stored again: as the
worker deletes objects, and then what it leaves.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import boto3
from botocore.config import Config
from infra.local.automation_samples import remove_automations
from infra.local.sample_ids import (
    AGENT,
    ASKING_EVENTS,
    CHAT_COMPLETION,
    CONTAINER,
    CONVERSATION,
    DELETED_AGENT,
    DELETED_CHAT_COMPLETION,
    DELETED_CONVERSATION,
    DELETED_FILE,
    DELETED_RESPONSE,
    FILE,
    NEW_VAULT,
    NEW_WEBHOOK_ENDPOINT,
    REGISTRATIONS,
    RESPONSES,
    SESSION,
    UPLOADS,
    VAULT,
    VECTOR_DB,
    VECTOR_DB_STORE,
    VECTOR_STORES,
    WEBHOOK_ENDPOINT,
)

from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import AwsEnvironment
from stint.domain.errors import NotFound
from stint.domain.ids import TENANT
from stint.domain.tasks import DeletionTask
from stint.retrieval.port import VectorIndex
from stint.services.knowledge.removal import Removal
from stint.store import keys
from stint.store.keys import chat_completion
from stint.store.store import Store
from stint.store.table import WRITE_BATCH, Table
from stint.store.vaults import StoredVault


@contextlib.asynccontextmanager
async def clients(environment: Mapping[str, str]) -> AsyncIterator[tuple[DynamoDBClient, Any]]:
    """Yield clients of DynamoDB and S3, as the functions would make them."""
    session = session_of(environment)
    dynamodb, s3 = DynamoDBClient(AwsEnvironment(environment)), client(session, "s3", environment)
    try:
        yield dynamodb, s3
    finally:
        await dynamodb.close()
        s3.close()


def session_of(environment: Mapping[str, str]) -> boto3.Session:
    return boto3.Session(
        environment.get("AWS_ACCESS_KEY_ID"),
        environment.get("AWS_SECRET_ACCESS_KEY"),
        environment.get("AWS_SESSION_TOKEN"),
        environment["AWS_REGION"],
    )


def client(session: boto3.Session, service: str, environment: Mapping[str, str]) -> Any:
    everywhere = environment.get("AWS_ENDPOINT_URL")
    endpoint = environment.get(f"AWS_ENDPOINT_URL_{service.upper()}", everywhere)
    # An endpoint on this machine is not behind the shell's proxy.
    return session.client(service, endpoint_url=endpoint, config=Config(proxies={} if endpoint else None))  # type: ignore[call-overload]  # boto3's stubs know no variable names


async def remove_samples(store: Store, table: Table, index: VectorIndex) -> None:
    """Delete the samples, and all records that events made of them.

    These are also tombstones, further registrations, and the idempotency records of events.
    """
    for agent_id in (AGENT, DELETED_AGENT):
        with contextlib.suppress(NotFound):
            await store.agents.mark_deleted(TENANT, agent_id)
            await store.deletion.delete_agent(TENANT, agent_id, time.monotonic() + 60)
    for kind, name in REGISTRATIONS.items():
        for identifier in (name, f"new-{name}"):
            with contextlib.suppress(NotFound):
                await store.registrations.delete(TENANT, kind, identifier, lambda _: None)
    await remove_automations(store)
    vaults = await store.vaults.list(TENANT, after=None, limit=1000, newest_first=True, accepts=is_sample)
    for vault in vaults.data:
        await store.vaults.mark_deleted(TENANT, vault.id)
        await store.vaults.delete(TENANT, vault.id)
    for found in await store.webhook_endpoints.list(TENANT):
        if found.stored.resource.id == WEBHOOK_ENDPOINT or found.stored.resource.name == NEW_WEBHOOK_ENDPOINT:
            await store.webhook_endpoints.delete(TENANT, found.stored.resource.id)
    for conversation_id in (CONVERSATION, DELETED_CONVERSATION):
        with contextlib.suppress(NotFound):
            await store.conversations.mark_deleted(TENANT, conversation_id)
            await store.conversations.delete(TENANT, conversation_id)
    removal, names = Removal(store, lambda: index), (VECTOR_DB, f"new-{VECTOR_DB}")
    named = await store.vector_db_names.find(TENANT, names)
    for name, vector_db in named.items():
        await store.vector_db_names.remove(TENANT, name, vector_db.store_id)
    for store_id in {*VECTOR_STORES, VECTOR_DB_STORE, *(one.store_id for one in named.values())}:
        with contextlib.suppress(NotFound):
            await store.vector_stores.mark_deleted(TENANT, store_id)
            task = DeletionTask(kind="delete_vector_store", tenant=TENANT, vector_store_id=store_id)
            await removal.delete_store(task, time.monotonic() + 60)
    for file_id in (FILE, DELETED_FILE):
        with contextlib.suppress(NotFound):
            await store.files.mark_deleted(TENANT, file_id)
            await store.files.delete(TENANT, file_id)
    with contextlib.suppress(NotFound):
        await store.containers.mark_deleted(TENANT, CONTAINER)
    await store.containers.delete(TENANT, CONTAINER)
    await table.delete_many([chat_completion(TENANT, CHAT_COMPLETION)])
    with contextlib.suppress(NotFound):
        await store.chat_completions.mark_deleted(TENANT, DELETED_CHAT_COMPLETION)
    await store.chat_completions.delete(TENANT, DELETED_CHAT_COMPLETION)
    await table.delete_many([keys.event(TENANT, event_id) for event_id in ASKING_EVENTS])
    records = [keys.response_records(TENANT, response_id) for response_id in (*RESPONSES, DELETED_RESPONSE)]
    records += [keys.upload(TENANT, upload_id).pk for upload_id in UPLOADS]
    for pk in (keys.turns(TENANT, AGENT, SESSION), keys.pending_calls(TENANT, AGENT, SESSION), *records):
        left = [keys.Key(pk, item["sk"]) async for item in table.query(pk, attributes="sk")]
        for start in range(0, len(left), WRITE_BATCH):
            await table.delete_many(left[start : start + WRITE_BATCH])


def is_sample(stored: StoredVault) -> bool:
    return stored.vault.id == VAULT or stored.vault.name == NEW_VAULT
