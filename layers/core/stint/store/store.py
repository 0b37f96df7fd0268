"""The store, which the services receive.

Each kind of record has a class of its own, and a request needs few of them, so each is imported when it is first used
(`stint.lazy`). All share one client, and so one pool of connections.
"""

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from stint.lazy import Lazy, lazy
from stint.store.blobs import Blobs
from stint.store.bucket import Bucket
from stint.store.documents import Documents
from stint.store.keys import KeyLayout
from stint.store.table import Table

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient
    from stint.store.agents import AgentStore
    from stint.store.attempts import CreationAttempts, ResponseAttempts, RetryClaims
    from stint.store.automation_invocations import InvocationStore
    from stint.store.automations import AutomationStore
    from stint.store.background import BackgroundStore
    from stint.store.budgets import BudgetStore, UsageStore
    from stint.store.call_results import CallResultStore
    from stint.store.chat_completions import ChatCompletionStore
    from stint.store.containers import ContainerStore
    from stint.store.conversations import ConversationStore
    from stint.store.deletion import Deletion
    from stint.store.document_leases import DocumentLeases
    from stint.store.end_users import EndUserIndex
    from stint.store.files import FileStore
    from stint.store.forks import ForkStore
    from stint.store.idempotency import IdempotencyRecords
    from stint.store.idempotent_requests import RequestRecords
    from stint.store.imports import ImportStore
    from stint.store.mcp_calls import McpCalls
    from stint.store.metadata_index import MetadataIndex
    from stint.store.objects import Inbox
    from stint.store.partial_steps import PartialStepStore
    from stint.store.registrations import Registrations
    from stint.store.response_leases import ConversationLeases, ResponseLeases
    from stint.store.responses import ResponseStore
    from stint.store.run_signals import RunSignalStore
    from stint.store.running_runs import RunningRunStore
    from stint.store.session_files import SessionFiles
    from stint.store.session_index import SessionIndex
    from stint.store.session_leases import SessionLeases
    from stint.store.session_records import SessionRecords
    from stint.store.sessions import SessionStore
    from stint.store.signing_keys import SigningKeys
    from stint.store.stops import StopStore
    from stint.store.threads import ThreadStore
    from stint.store.transactions import Transactions
    from stint.store.turns import TurnStore
    from stint.store.uploads import UploadStore
    from stint.store.vaults import VaultStore
    from stint.store.vector_store_contents import DocumentOwners, EntityLinks, VectorDBNames, VectorStoreContents
    from stint.store.vector_store_documents import VectorStoreDocuments
    from stint.store.vector_stores import FileBatchStore, VectorStores
    from stint.store.waiting_line import WaitingLine
    from stint.store.webhook_endpoints import WebhookEndpointStore

T = TypeVar("T")
Part: TypeAlias = Lazy["Store", T]


class Store:
    """One table and one bucket. Each part is imported and made when first used.

    Nothing is sent here. `key_layout` is that of sessions and stops; see `stint.store.keys`.
    """

    def __init__(
        self, dynamodb: "DynamoDBClient", table: str, bucket: Bucket, key_layout: KeyLayout = "spread"
    ) -> None:
        self._dynamodb, self._table_name = dynamodb, table
        self._key_layout = key_layout
        self._table = Table(dynamodb, table)
        self._bucket = bucket
        self._blobs = Blobs(bucket)
        self._documents = Documents(self._table, self._blobs)

    _transactions: "Part[Transactions]" = lazy(
        "stint.store.transactions:Transactions", lambda self, cls: cls(self._dynamodb, self._table_name)
    )
    agents: "Part[AgentStore]" = lazy(
        "stint.store.agents:AgentStore", lambda self, cls: cls(self._table, self._documents, lambda: self._transactions)
    )
    session_records: "Part[SessionRecords]" = lazy(
        "stint.store.session_records:SessionRecords",
        lambda self, cls: cls(self._table, lambda: self._transactions, self._key_layout),
    )
    sessions: "Part[SessionStore]" = lazy(
        "stint.store.sessions:SessionStore", lambda self, cls: cls(self._table, self.session_records, self._documents)
    )
    session_index: "Part[SessionIndex]" = lazy(
        "stint.store.session_index:SessionIndex", lambda self, cls: cls(self._table)
    )
    threads: "Part[ThreadStore]" = lazy("stint.store.threads:ThreadStore", lambda self, cls: cls(self._table))
    metadata_index: "Part[MetadataIndex]" = lazy(
        "stint.store.metadata_index:MetadataIndex", lambda self, cls: cls(self._table)
    )
    session_files: "Part[SessionFiles]" = lazy(
        "stint.store.session_files:SessionFiles", lambda self, cls: cls(self._blobs)
    )
    session_leases: "Part[SessionLeases]" = lazy(
        "stint.store.session_leases:SessionLeases", lambda self, cls: cls(self._table, self.session_records)
    )
    turns: "Part[TurnStore]" = lazy(
        "stint.store.turns:TurnStore", lambda self, cls: cls(self._table, self.session_records, self._documents)
    )
    forks: "Part[ForkStore]" = lazy(
        "stint.store.forks:ForkStore", lambda self, cls: cls(self._table, self._documents, self.turns)
    )
    partial_steps: "Part[PartialStepStore]" = lazy(
        "stint.store.partial_steps:PartialStepStore", lambda self, cls: cls(self._table, self._documents)
    )
    deletion: "Part[Deletion]" = lazy(
        "stint.store.deletion:Deletion",
        lambda self, cls: cls(self._table, self._blobs, self.agents, self.sessions, self.session_records),
    )
    call_results: "Part[CallResultStore]" = lazy(
        "stint.store.call_results:CallResultStore", lambda self, cls: cls(self._table, self._documents)
    )
    registrations: "Part[Registrations]" = lazy(
        "stint.store.registrations:Registrations", lambda self, cls: cls(self._table, self._documents)
    )
    webhook_endpoints: "Part[WebhookEndpointStore]" = lazy(
        "stint.store.webhook_endpoints:WebhookEndpointStore", lambda self, cls: cls(self._table, self._documents)
    )
    imports: "Part[ImportStore]" = lazy(
        "stint.store.imports:ImportStore",
        lambda self, cls: cls(self._table, self._documents, self.agents, self.sessions, self.turns),
    )
    responses: "Part[ResponseStore]" = lazy(
        "stint.store.responses:ResponseStore",
        lambda self, cls: cls(self._table, self._documents, self._blobs, self.background),
    )
    background: "Part[BackgroundStore]" = lazy(
        "stint.store.background:BackgroundStore", lambda self, cls: cls(self._table, self._documents)
    )
    response_leases: "Part[ResponseLeases]" = lazy(
        "stint.store.response_leases:ResponseLeases", lambda self, cls: cls(self._table)
    )
    conversations: "Part[ConversationStore]" = lazy(
        "stint.store.conversations:ConversationStore",
        lambda self, cls: cls(self._table, self._documents, self._blobs, versioned=self._key_layout == "spread"),
    )
    conversation_leases: "Part[ConversationLeases]" = lazy(
        "stint.store.response_leases:ConversationLeases", lambda self, cls: cls(self._table)
    )
    files: "Part[FileStore]" = lazy("stint.store.files:FileStore", lambda self, cls: cls(self._table, self._blobs))
    containers: "Part[ContainerStore]" = lazy(
        "stint.store.containers:ContainerStore", lambda self, cls: cls(self._table, self._blobs)
    )
    chat_completions: "Part[ChatCompletionStore]" = lazy(
        "stint.store.chat_completions:ChatCompletionStore",
        lambda self, cls: cls(self._table, self._documents, self._blobs),
    )
    uploads: "Part[UploadStore]" = lazy(
        "stint.store.uploads:UploadStore", lambda self, cls: cls(self._table, self._transactions, self._blobs)
    )
    automations: "Part[AutomationStore]" = lazy(
        "stint.store.automations:AutomationStore",
        lambda self, cls: cls(self._table, self._transactions, self._documents),
    )
    invocations: "Part[InvocationStore]" = lazy(
        "stint.store.automation_invocations:InvocationStore", lambda self, cls: cls(self._table, self._documents)
    )
    vaults: "Part[VaultStore]" = lazy(
        "stint.store.vaults:VaultStore", lambda self, cls: cls(self._table, self._transactions)
    )
    budgets: "Part[BudgetStore]" = lazy(
        "stint.store.budgets:BudgetStore", lambda self, cls: cls(self._dynamodb, self._table_name)
    )
    usage: "Part[UsageStore]" = lazy("stint.store.budgets:UsageStore", lambda self, cls: cls(self._table, self.budgets))
    stops: "Part[StopStore]" = lazy(
        "stint.store.stops:StopStore", lambda self, cls: cls(self._dynamodb, self._table_name, self._key_layout)
    )
    run_signals: "Part[RunSignalStore]" = lazy(
        "stint.store.run_signals:RunSignalStore", lambda self, cls: cls(self.session_records, self._table, self.stops)
    )
    running_runs: "Part[RunningRunStore]" = lazy(
        "stint.store.running_runs:RunningRunStore", lambda self, cls: cls(self._table)
    )
    idempotency: "Part[IdempotencyRecords]" = lazy(
        "stint.store.idempotency:IdempotencyRecords", lambda self, cls: cls(self._table)
    )
    requests: "Part[RequestRecords]" = lazy(
        "stint.store.idempotent_requests:RequestRecords", lambda self, cls: cls(self._table, self._documents)
    )
    response_attempts: "Part[ResponseAttempts]" = lazy(
        "stint.store.attempts:ResponseAttempts", lambda self, cls: cls(self._table)
    )
    creation_attempts: "Part[CreationAttempts]" = lazy(
        "stint.store.attempts:CreationAttempts", lambda self, cls: cls(self._table)
    )
    retry_claims: "Part[RetryClaims]" = lazy("stint.store.attempts:RetryClaims", lambda self, cls: cls(self._table))
    mcp_calls: "Part[McpCalls]" = lazy("stint.store.mcp_calls:McpCalls", lambda self, cls: cls(self._table))
    vector_db_names: "Part[VectorDBNames]" = lazy(
        "stint.store.vector_store_contents:VectorDBNames", lambda self, cls: cls(self._table)
    )
    signing_keys: "Part[SigningKeys]" = lazy("stint.store.signing_keys:SigningKeys", lambda self, cls: cls(self._table))
    vector_stores: "Part[VectorStores]" = lazy(
        "stint.store.vector_stores:VectorStores", lambda self, cls: cls(self._table)
    )
    vector_store_documents: "Part[VectorStoreDocuments]" = lazy(
        "stint.store.vector_store_documents:VectorStoreDocuments",
        lambda self, cls: cls(self._table, self._transactions),
    )
    document_owners: "Part[DocumentOwners]" = lazy(
        "stint.store.vector_store_contents:DocumentOwners", lambda self, cls: cls(self._table)
    )
    document_leases: "Part[DocumentLeases]" = lazy(
        "stint.store.document_leases:DocumentLeases", lambda self, cls: cls(self._table)
    )
    entity_links: "Part[EntityLinks]" = lazy(
        "stint.store.vector_store_contents:EntityLinks", lambda self, cls: cls(self._table)
    )
    file_batches: "Part[FileBatchStore]" = lazy(
        "stint.store.vector_stores:FileBatchStore", lambda self, cls: cls(self._table)
    )
    end_users: "Part[EndUserIndex]" = lazy(
        "stint.store.end_users:EndUserIndex", lambda self, cls: cls(self._table, self.session_records)
    )
    inbox: "Part[Inbox]" = lazy("stint.store.objects:Inbox", lambda self, cls: cls(self._bucket))
    vector_store_contents: "Part[VectorStoreContents]" = lazy(
        "stint.store.vector_store_contents:VectorStoreContents", lambda self, cls: cls(self._blobs)
    )

    def session_line(self, tenant: str, agent_id: str, session_id: str) -> "WaitingLine":
        """Return the requests that wait for a session."""
        from stint.store import waiting_line  # noqa: PLC0415 - few requests wait

        keys = waiting_line.session_line(tenant, agent_id, session_id)
        return waiting_line.WaitingLine(self._table, self._documents, keys)

    def conversation_line(self, tenant: str, conversation_id: str) -> "WaitingLine":
        """Return the requests that wait for a conversation."""
        from stint.store import waiting_line  # noqa: PLC0415 - few requests wait

        keys = waiting_line.conversation_line(tenant, conversation_id)
        return waiting_line.WaitingLine(self._table, self._documents, keys)

    def waiting_responses(self, tenant: str) -> "WaitingLine":
        """Return the messages that wait for the conversations of a tenant, without their places."""
        from stint.store import keys, waiting_line  # noqa: PLC0415 - few requests wait

        line = waiting_line.LineKeys("", keys.waiting_responses(tenant), "")
        return waiting_line.WaitingLine(self._table, self._documents, line)
