"""The store, which the services receive."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from stint.store.agents import AgentStore
from stint.store.blobs import Blobs
from stint.store.deletion import Deletion
from stint.store.documents import Documents
from stint.store.registrations import Registrations
from stint.store.session_leases import SessionLeases
from stint.store.sessions import SessionStore
from stint.store.table import Table
from stint.store.turns import TurnStore

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from stint.aws.dynamodb import DynamoDBClient
    from stint.store.attempts import CreationAttempts, ResponseAttempts, RetryClaims
    from stint.store.background import BackgroundStore
    from stint.store.budgets import BudgetStore, UsageStore
    from stint.store.chat_completions import ChatCompletionStore
    from stint.store.containers import ContainerStore
    from stint.store.conversations import ConversationStore
    from stint.store.document_leases import DocumentLeases
    from stint.store.end_users import EndUserIndex
    from stint.store.files import FileStore
    from stint.store.idempotency import IdempotencyRecords
    from stint.store.idempotent_requests import RequestRecords
    from stint.store.imports import ImportStore
    from stint.store.objects import Inbox
    from stint.store.partial_steps import PartialStepStore
    from stint.store.response_leases import ConversationLeases, ResponseLeases
    from stint.store.responses import ResponseStore
    from stint.store.run_signals import RunSignalStore, StopStore
    from stint.store.session_files import SessionFiles
    from stint.store.signing_keys import SigningKeys
    from stint.store.transactions import Transactions
    from stint.store.uploads import UploadStore
    from stint.store.vector_store_contents import DocumentOwners, EntityLinks, VectorDBNames, VectorStoreContents
    from stint.store.vector_store_documents import VectorStoreDocuments
    from stint.store.vector_stores import FileBatchStore, VectorStores
    from stint.store.waiting_line import WaitingLine


class Store:
    """One table and one bucket. Each part is made when first used.

    Nothing is sent here, and the S3 client is made for the first blob. The parts of the OpenAI API are imported when
    they are made, so that the functions that serve only agents and turns start without them.
    """

    def __init__(
        self, dynamodb: "DynamoDBClient", table: str, connect_s3: "Callable[[], S3Client]", bucket: str
    ) -> None:
        self._dynamodb, self._table_name = dynamodb, table
        self._table = Table(dynamodb, table)
        self._connect_s3, self._bucket = connect_s3, bucket
        self._blobs = Blobs(connect_s3, bucket)
        self._documents = Documents(self._table, self._blobs)

    def _make_transactions(self) -> "Transactions":
        from stint.store.transactions import Transactions  # noqa: PLC0415 - few requests write several records

        return Transactions(self._dynamodb, self._table_name)

    @cached_property
    def agents(self) -> AgentStore:
        return AgentStore(self._table, self._documents, self._make_transactions)

    @cached_property
    def sessions(self) -> SessionStore:
        return SessionStore(self._table, self._documents)

    @cached_property
    def session_files(self) -> "SessionFiles":
        from stint.store.session_files import SessionFiles  # noqa: PLC0415

        return SessionFiles(self._blobs)

    @cached_property
    def session_leases(self) -> SessionLeases:
        return SessionLeases(self._table)

    @cached_property
    def turns(self) -> TurnStore:
        return TurnStore(self._table, self._documents)

    @cached_property
    def imports(self) -> "ImportStore":
        from stint.store.imports import ImportStore  # noqa: PLC0415 - only for the command that imports

        return ImportStore(self._table, self._documents, self.agents, self.sessions, self.turns)

    @cached_property
    def partial_steps(self) -> "PartialStepStore":
        from stint.store.partial_steps import PartialStepStore  # noqa: PLC0415 - few steps run long

        return PartialStepStore(self._table, self._documents)

    @cached_property
    def registrations(self) -> Registrations:
        return Registrations(self._table, self._documents)

    @cached_property
    def deletion(self) -> Deletion:
        return Deletion(self._table, self._blobs, self.agents, self.sessions)

    @cached_property
    def responses(self) -> "ResponseStore":
        from stint.store.responses import ResponseStore  # noqa: PLC0415 - see above

        return ResponseStore(self._table, self._documents, self._blobs, self.background)

    @cached_property
    def background(self) -> "BackgroundStore":
        from stint.store.background import BackgroundStore  # noqa: PLC0415 - see above

        return BackgroundStore(self._table, self._documents)

    @cached_property
    def response_leases(self) -> "ResponseLeases":
        from stint.store.response_leases import ResponseLeases  # noqa: PLC0415 - see above

        return ResponseLeases(self._table)

    @cached_property
    def conversations(self) -> "ConversationStore":
        from stint.store.conversations import ConversationStore  # noqa: PLC0415 - see above

        return ConversationStore(self._table, self._documents, self._blobs)

    @cached_property
    def conversation_leases(self) -> "ConversationLeases":
        from stint.store.response_leases import ConversationLeases  # noqa: PLC0415 - see above

        return ConversationLeases(self._table)

    @cached_property
    def files(self) -> "FileStore":
        from stint.store.files import FileStore  # noqa: PLC0415 - see above

        return FileStore(self._table, self._blobs)

    @cached_property
    def containers(self) -> "ContainerStore":
        from stint.store.containers import ContainerStore  # noqa: PLC0415 - see above

        return ContainerStore(self._table, self._blobs)

    @cached_property
    def chat_completions(self) -> "ChatCompletionStore":
        from stint.store.chat_completions import ChatCompletionStore  # noqa: PLC0415 - see above

        return ChatCompletionStore(self._table, self._documents, self._blobs)

    @cached_property
    def uploads(self) -> "UploadStore":
        from stint.store.uploads import UploadStore  # noqa: PLC0415 - see above

        return UploadStore(self._table, self._make_transactions(), self._blobs)

    @cached_property
    def budgets(self) -> "BudgetStore":
        from stint.store.budgets import BudgetStore  # noqa: PLC0415 - see above

        return BudgetStore(self._dynamodb, self._table_name)

    @cached_property
    def usage(self) -> "UsageStore":
        from stint.store.budgets import UsageStore  # noqa: PLC0415 - see above

        return UsageStore(self._table, self.budgets)

    @cached_property
    def stops(self) -> "StopStore":
        from stint.store.run_signals import StopStore  # noqa: PLC0415 - see above

        return StopStore(self._dynamodb, self._table_name)

    def session_line(self, tenant: str, agent_id: str, session_id: str) -> "WaitingLine":
        """Return the requests that wait for a session."""
        from stint.store.waiting_line import WaitingLine, session_line  # noqa: PLC0415 - few requests wait

        return WaitingLine(self._table, self._documents, session_line(tenant, agent_id, session_id))

    def conversation_line(self, tenant: str, conversation_id: str) -> "WaitingLine":
        """Return the requests that wait for a conversation."""
        from stint.store.waiting_line import WaitingLine, conversation_line  # noqa: PLC0415 - few requests wait

        return WaitingLine(self._table, self._documents, conversation_line(tenant, conversation_id))

    def waiting_responses(self, tenant: str) -> "WaitingLine":
        """Return the messages that wait for the conversations of a tenant, without their places."""
        from stint.store import keys  # noqa: PLC0415 - few requests wait
        from stint.store.waiting_line import LineKeys, WaitingLine  # noqa: PLC0415

        return WaitingLine(self._table, self._documents, LineKeys("", keys.waiting_responses(tenant), ""))

    @cached_property
    def run_signals(self) -> "RunSignalStore":
        from stint.store.run_signals import RunSignalStore  # noqa: PLC0415 - few runs last longer than a second

        return RunSignalStore(self._table, self.stops)

    @cached_property
    def idempotency(self) -> "IdempotencyRecords":
        from stint.store.idempotency import IdempotencyRecords  # noqa: PLC0415 - see above

        return IdempotencyRecords(self._table)

    @cached_property
    def requests(self) -> "RequestRecords":
        from stint.store.idempotent_requests import RequestRecords  # noqa: PLC0415 - see above

        return RequestRecords(self._table, self._documents)

    @cached_property
    def response_attempts(self) -> "ResponseAttempts":
        from stint.store.attempts import ResponseAttempts  # noqa: PLC0415 - see above

        return ResponseAttempts(self._table)

    @cached_property
    def creation_attempts(self) -> "CreationAttempts":
        from stint.store.attempts import CreationAttempts  # noqa: PLC0415 - see above

        return CreationAttempts(self._table)

    @cached_property
    def retry_claims(self) -> "RetryClaims":
        from stint.store.attempts import RetryClaims  # noqa: PLC0415 - see above

        return RetryClaims(self._table)

    @cached_property
    def vector_db_names(self) -> "VectorDBNames":
        from stint.store.vector_store_contents import VectorDBNames  # noqa: PLC0415 - see above

        return VectorDBNames(self._table)

    @cached_property
    def signing_keys(self) -> "SigningKeys":
        from stint.store.signing_keys import SigningKeys  # noqa: PLC0415 - see above

        return SigningKeys(self._table)

    @cached_property
    def vector_stores(self) -> "VectorStores":
        from stint.store.vector_stores import VectorStores  # noqa: PLC0415 - see above

        return VectorStores(self._table)

    @cached_property
    def vector_store_documents(self) -> "VectorStoreDocuments":
        from stint.store.vector_store_documents import VectorStoreDocuments  # noqa: PLC0415 - see above

        return VectorStoreDocuments(self._table, self._make_transactions())

    @cached_property
    def document_owners(self) -> "DocumentOwners":
        from stint.store.vector_store_contents import DocumentOwners  # noqa: PLC0415 - few documents belong to end users

        return DocumentOwners(self._table)

    @cached_property
    def document_leases(self) -> "DocumentLeases":
        from stint.store.document_leases import DocumentLeases  # noqa: PLC0415 - see above

        return DocumentLeases(self._table)

    @cached_property
    def entity_links(self) -> "EntityLinks":
        from stint.store.vector_store_contents import EntityLinks  # noqa: PLC0415 - see above

        return EntityLinks(self._table)

    @cached_property
    def file_batches(self) -> "FileBatchStore":
        from stint.store.vector_stores import FileBatchStore  # noqa: PLC0415 - see above

        return FileBatchStore(self._table)

    @cached_property
    def end_users(self) -> "EndUserIndex":
        from stint.store.end_users import EndUserIndex  # noqa: PLC0415 - see above

        return EndUserIndex(self._table)

    @cached_property
    def inbox(self) -> "Inbox":
        from stint.store.objects import Inbox  # noqa: PLC0415 - see above

        return Inbox(self._connect_s3, self._bucket)

    @cached_property
    def vector_store_contents(self) -> "VectorStoreContents":
        from stint.store.vector_store_contents import VectorStoreContents  # noqa: PLC0415 - see above

        return VectorStoreContents(self._blobs)
