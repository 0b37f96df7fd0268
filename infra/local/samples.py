"""The objects that the files in `events/` refer to. The use cases of the API make them in this process.

They are an agent with a client tool, a session, a complete turn and one that waits; a toolgroup, a shield and a model;
a conversation with a message; a stored chat completion; a response, and two in the background: one that waits for the
worker, and one that has ended; an automation with an invocation; a file, an upload with a part, a vector store with an
object in its inbox, and a vector db with a document and a chunk; an API key; a webhook endpoint, if there is a key for
its secret; a stop. An agent, a response, a conversation, a file, a vector store, and a chat completion with its body in
the bucket, are marked as deleted.
"""

import contextlib
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from infra.local.automation_samples import store_automation
from infra.local.errors import LocalCloudError
from infra.local.fixed_ids import deadline, fixed_ids
from infra.local.knowledge_samples import KnowledgeSamples
from infra.local.sample_bodies import BOILING_POINT, CONFIG, LONG_MESSAGE, MESSAGE, QUESTION
from infra.local.sample_ids import (
    AGENT,
    API_KEY,
    AWAITING_STEP,
    AWAITING_TURN,
    BACKGROUND_RESPONSE,
    CHAT_COMPLETION,
    COMPLETED_STEPS,
    COMPLETED_TURN,
    CONVERSATION,
    CONVERSATION_ITEM,
    CREDENTIAL,
    DELETED_AGENT,
    DELETED_CHAT_COMPLETION,
    DELETED_CONVERSATION,
    DELETED_FILE,
    DELETED_RESPONSE,
    DELETED_VECTOR_STORE,
    INBOX_OBJECT,
    MODEL,
    PENDING_STEP,
    QUEUED_RESPONSE,
    RESPONSE,
    RESPONSE_STEP,
    SESSION,
    SHIELD,
    STOPPED_SESSION,
    TOOLGROUP,
    VAULT,
    WEBHOOK_ENDPOINT,
)
from infra.local.sample_store import client, clients, remove_samples, session_of

from stint.aws.environment import AwsEnvironment
from stint.aws.s3_reader import S3Reader
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.bootstrap.knowledge import delete_knowledge_objects
from stint.bootstrap.openai import compose_responses, compose_worker
from stint.domain.api_keys import ApiKeyObject, StoredApiKey, hash_of, new_secret
from stint.domain.errors import StintError
from stint.domain.ids import TENANT
from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    ShieldRegisterRequest,
    ToolGroupRegisterRequest,
)
from stint.domain.llama_stack.turns import TurnCreateRequest, TurnResumeRequest
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.conversations import CreateConversation
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.vaults import BearerAuth, Vault, VaultCredential
from stint.domain.principals import NO_BUDGETS
from stint.domain.stops import stop_name
from stint.domain.webhooks import StoredWebhookEndpoint, WebhookEndpoint
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import VectorIndex
from stint.services.deletions import Deletions
from stint.services.responses.link_cache import LinkCache
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_run import TurnRun
from stint.services.vaults.vault_secrets import VaultSecrets
from stint.services.webhooks.signatures import hint_of, new_signing_secret
from stint.services.webhooks.signing_secrets import SigningSecrets
from stint.settings import Settings
from stint.store.api_keys import ApiKeyStore, key_record
from stint.store.bucket import Bucket
from stint.store.objects import BucketObjects
from stint.store.store import Store
from stint.store.table import Table
from stint.store.vaults import ACCESS_TOKEN, StoredCredential

PACKED_BYTES = 1_000_000


async def store_samples(environment: Mapping[str, str]) -> None:
    """Store the samples where functions of this environment look for them, in place of what an earlier event left.

    Raises:
        LocalCloudError: the store cannot be reached.
    """
    table, bucket = environment["STINT_TABLE"], environment["STINT_BUCKET"]
    async with clients(environment) as (dynamodb, s3):
        with reported():
            objects = Bucket(bucket, lambda: s3, lambda: S3Reader(AwsEnvironment(environment), bucket))
            store = Store(dynamodb, table, objects)
            index = PackedIndex(BucketObjects(objects), PACKED_BYTES)
            await remove_samples(store, Table(dynamodb, table), index)
            await Samples(store, environment, index).make()
            await store.agents.mark_deleted(TENANT, DELETED_AGENT)
            await store.responses.mark_deleted(TENANT, DELETED_RESPONSE)
            await store.conversations.mark_deleted(TENANT, DELETED_CONVERSATION)
            await store.chat_completions.mark_deleted(TENANT, DELETED_CHAT_COMPLETION)
            await store.files.mark_deleted(TENANT, DELETED_FILE)
            await store.vector_stores.mark_deleted(TENANT, DELETED_VECTOR_STORE)
            await store_automation(store)
            if key := environment.get("STINT_CREDENTIALS_KEY_ARN"):
                await store_vault(store, key, environment)
                await store_webhook_endpoint(store, key, environment)
            if keys_table := environment.get("STINT_KEYS_TABLE"):
                await store_api_key(Table(dynamodb, keys_table))
            await store.stops.add(TENANT, stop_name("session", STOPPED_SESSION), 1756472000)
        s3.put_object(Bucket=bucket, Key=INBOX_OBJECT, Body=b"Llamas hum.")


@contextlib.contextmanager
def reported() -> Iterator[None]:
    try:
        yield
    except StintError as error:
        raise LocalCloudError(f"cannot store the records that the event names: {error.message}") from error


HOUR = 3_600


async def store_api_key(table: Table) -> None:
    """Store a key whose secret nobody has. Only the functions `admin` and `worker` have the table."""
    resource = ApiKeyObject(
        id=API_KEY,
        tenant=TENANT,
        name="sample",
        subject="sample",
        scopes=["use"],
        models=[],
        budgets=NO_BUDGETS,
        created_at=1756472000,
        expires_at=int(time.time()) + HOUR,  # an admin without a key rotates no endless one
    )
    await table.delete_many([key_record(API_KEY)])
    await ApiKeyStore(table).create(StoredApiKey(resource, hash_of(new_secret())))


async def store_vault(store: Store, key: str, environment: Mapping[str, str]) -> None:
    """Store a vault with a credential of a server that does not exist."""
    vault = Vault(id=VAULT, created_at=1756472000, name="sample")
    credential = VaultCredential(
        id=CREDENTIAL,
        vault_id=VAULT,
        name="sample",
        auth=BearerAuth(mcp_server_url="https://example.com/mcp"),
        created_at=1756472000,
        updated_at=1756472000,
    )
    context = VaultSecrets(TENANT, None).context_of(credential, ACCESS_TOKEN)
    kms = client(session_of(environment), "kms", environment)
    try:
        blob = kms.encrypt(KeyId=key, Plaintext=b"sample-token-0", EncryptionContext=context)["CiphertextBlob"]
    finally:
        kms.close()
    await store.vaults.create(TENANT, vault)
    stored = StoredCredential(credential, {ACCESS_TOKEN: b64encode(blob).decode()})
    await store.vaults.create_credential(TENANT, stored)


async def store_webhook_endpoint(store: Store, key: str, environment: Mapping[str, str]) -> None:
    """Store a webhook endpoint to which nobody listens."""
    secret, secrets = new_signing_secret(), SigningSecrets(TENANT, None)
    kms = client(session_of(environment), "kms", environment)
    try:
        context = secrets.context_of(WEBHOOK_ENDPOINT)
        blob = kms.encrypt(KeyId=key, Plaintext=secret.encode(), EncryptionContext=context)["CiphertextBlob"]
    finally:
        kms.close()
    resource = WebhookEndpoint(
        id=WEBHOOK_ENDPOINT,
        created_at=1756472000,
        updated_at=1756472000,
        name="sample",
        url="http://127.0.0.1:9/hook",
        event_types=["agent.session.failed"],
        signing_secret_hint=hint_of(secret),
    )
    stored = StoredWebhookEndpoint(resource=resource, sealed=b64encode(blob).decode())
    await store.webhook_endpoints.create(TENANT, stored)


class Outbox:
    """A queue, an event bus and schedules that deliver nothing."""

    async def send(self, task: Any) -> None:
        pass

    async def put(self, source: str, detail_type: str, detail: Any) -> None:
        pass

    async def delete(self, schedule: str) -> None:
        pass


class Samples:
    """The use cases that make the samples, over the store of the functions."""

    def __init__(self, store: Store, environment: Mapping[str, str], index: VectorIndex) -> None:
        settings = Settings(
            default_model="scripted/demo",
            scripted_models=True,
            scripted_word_seconds=0,
            own_functions=environment.get("STINT_OWN_FUNCTIONS", ""),
        )
        outbox, adapters = Outbox(), Adapters(settings, make_index=lambda: index)
        kinds = delete_agent_objects(store, outbox.send, outbox.delete) | delete_knowledge_objects(store, lambda: index)
        deletions = Deletions(kinds, outbox.send)
        self.agents = compose(TENANT, adapters, store, deletions)
        self.openai = compose_responses(TENANT, adapters, store, self.agents, queue=outbox, links=LinkCache())
        self.knowledge = KnowledgeSamples(adapters, store, index, deletions, self.agents.registry)
        self.worker = compose_worker(TENANT, settings, store, self.openai, bus=outbox)

    async def make(self) -> None:
        await self.make_agents()
        await self.register()
        await self.make_conversations()
        await self.make_chat_completion(CHAT_COMPLETION, QUESTION)
        await self.make_chat_completion(DELETED_CHAT_COMPLETION, LONG_MESSAGE)
        await self.make_responses()
        await self.knowledge.make()

    async def make_agents(self) -> None:
        for agent_id in (AGENT, DELETED_AGENT):
            with fixed_ids(agent_id):
                await self.agents.agents.create(CONFIG)
        with fixed_ids(SESSION):
            await self.agents.sessions.create(AGENT, "sample")
        with fixed_ids(COMPLETED_TURN, *COMPLETED_STEPS[:2]):
            await self.begin_turn("Please get_weather for Oslo")
        response = {"call_id": "call_1", "tool_name": "get_weather", "content": "Snow, -3 degrees"}
        request = TurnResumeRequest.model_validate({"tool_responses": [response]})
        turn = await self.agents.turns.resume(AGENT, SESSION, COMPLETED_TURN, request, RequestContext(deadline()))
        with fixed_ids(COMPLETED_STEPS[2]):
            await self.finish(turn)
        with fixed_ids(AWAITING_TURN, AWAITING_STEP, PENDING_STEP):
            await self.begin_turn("And get_weather for Bern")

    async def begin_turn(self, text: str) -> None:
        request = TurnCreateRequest.model_validate({"messages": [{"role": "user", "content": text}]})
        await self.finish(await self.agents.turns.start(AGENT, SESSION, request, RequestContext(deadline())))

    async def finish(self, turn: TurnRun) -> None:
        async for _ in self.agents.turns.run(turn):
            pass

    async def register(self) -> None:
        toolgroup = {"toolgroup_id": TOOLGROUP, "provider_id": "lambda-function", "args": {"tools": [BOILING_POINT]}}
        await self.agents.toolgroups.register(ToolGroupRegisterRequest.model_validate(toolgroup))
        shield = {"shield_id": SHIELD, "provider_id": "deny-list", "params": {"phrases": ["the launch code"]}}
        await self.agents.shields.register(ShieldRegisterRequest.model_validate(shield))
        model = {"model_id": MODEL, "provider_id": "scripted", "provider_model_id": "demo"}
        await self.agents.registry.register_model(ModelRegisterRequest.model_validate(model))

    async def make_conversations(self) -> None:
        request = CreateConversation.model_validate({"items": [MESSAGE], "metadata": {"topic": "names"}})
        for conversation_id in (CONVERSATION, DELETED_CONVERSATION):
            with fixed_ids(CONVERSATION_ITEM, conversation_id):
                await self.openai.conversations.create(request)

    async def make_chat_completion(self, completion_id: str, message: Any) -> None:
        body = {"model": "scripted/demo", "messages": [message], "store": True, "metadata": {"topic": "weather"}}
        with fixed_ids(completion_id):
            run = await self.openai.chat.start(ChatCompletionRequest.model_validate(body), deadline())
        async for _ in self.openai.chat.run(run):
            pass

    async def make_responses(self) -> None:
        request = {"model": "scripted/demo", "input": [MESSAGE]}
        for response_id in (RESPONSE, DELETED_RESPONSE):
            with fixed_ids(response_id):
                run = await self.openai.responses.start(
                    CreateResponse.model_validate(request), RequestContext(deadline())
                )
            with fixed_ids(*([RESPONSE_STEP] if response_id == RESPONSE else [])):
                async for _ in self.openai.responses.run(run):
                    pass
        for response_id in (QUEUED_RESPONSE, BACKGROUND_RESPONSE):
            with fixed_ids(response_id):
                await self.openai.background.create(
                    CreateResponse.model_validate(request | {"background": True}), RequestContext(deadline())
                )
        await self.worker.handle(BACKGROUND_RESPONSE, deadline())
