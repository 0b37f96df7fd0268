"""The store of responses and conversations as a whole; only the functions that serve them load it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from stint.store.background import BackgroundStore
from stint.store.blobs import Blobs
from stint.store.conversation_leases import ConversationLeases
from stint.store.conversations import ConversationStore
from stint.store.documents import Documents
from stint.store.idempotency import IdempotencyRecords
from stint.store.responses import Responses
from stint.store.signing_keys import SigningKeys
from stint.store.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class ResponseStore:
    responses: Responses
    background: BackgroundStore
    conversations: ConversationStore
    conversation_leases: ConversationLeases
    idempotency: IdempotencyRecords
    signing_keys: SigningKeys

    @classmethod
    def open(cls, dynamodb: "DynamoDBClient", table: str, connect_s3: "Callable[[], S3Client]", bucket: str) -> Self:
        """Compose the store; nothing is sent, and the S3 client is made when the first blob asks for it."""
        records, blobs = Table(dynamodb, table), Blobs(connect_s3, bucket)
        documents = Documents(records, blobs)
        background = BackgroundStore(records, documents)
        responses = Responses(records, documents, blobs, background)
        conversations = ConversationStore(records, documents, blobs)
        return cls(
            responses,
            background,
            conversations,
            ConversationLeases(records),
            IdempotencyRecords(records),
            SigningKeys(records),
        )
