"""The store as a whole: what the services are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

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
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class Store:
    agents: AgentStore
    sessions: SessionStore
    session_leases: SessionLeases
    turns: TurnStore
    deletion: Deletion
    registrations: Registrations

    @classmethod
    def open(cls, dynamodb: "DynamoDBClient", table: str, connect_s3: "Callable[[], S3Client]", bucket: str) -> Self:
        """Compose the store; nothing is sent, and the S3 client is made when the first blob asks for it."""
        records, blobs = Table(dynamodb, table), Blobs(connect_s3, bucket)
        documents = Documents(records, blobs)
        agents, sessions = AgentStore(records, documents), SessionStore(records, documents)
        deletion = Deletion(records, blobs, agents, sessions)
        turns, registrations = TurnStore(records, documents), Registrations(records, documents)
        return cls(agents, sessions, SessionLeases(records), turns, deletion, registrations)
