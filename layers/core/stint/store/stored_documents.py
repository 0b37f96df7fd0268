"""Documents of vector stores as their records have them.

`stint.store.document_leases` tells what leases and generations are for.
"""

import time
from collections.abc import Mapping
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.vector_stores import (
    DocumentSettings,
    DocumentStatus,
    IngestionProgress,
    LastError,
    StoredContent,
    is_same,
)
from stint.store import keys
from stint.store.items import Item
from stint.store.records import is_live


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of a vector store, by its `key`."""

    key: str
    """The id of its file, or of the document of a vector db."""
    status: DocumentStatus
    """`doc_status` of the record. Marks and expiry do not change it."""
    created_at: int
    """In seconds since 1970."""
    settings: DocumentSettings
    """How it is divided, and its attributes."""
    batch_id: str | None = None
    """The file batch that added it last."""
    generation: str | None = None
    """That of the chunks that searches find; None if there are none."""
    generations: Mapping[str, int] = field(default_factory=dict)
    """All generations whose chunks may be in the index, with their numbers of chunks."""
    usage_bytes: int = 0
    """Bytes of its chunks in the index, of the generation that searches find."""
    last_error: LastError | None = None
    """Why its ingestion failed."""
    lease_until: int | None = None
    """The end of the lease, in milliseconds since 1970; None if no process has it."""
    queued_at: int = 0
    """When its task was last sent, in seconds since 1970."""
    requeues: int = 0
    """How often readers have sent its task again since it was added or continued."""
    text: StoredContent | None = None
    """What was extracted from a file."""
    progress: IngestionProgress | None = None
    """That of an ingestion which another attempt continues."""
    unindexed: bool = False
    """Whether the index may have other attributes than the settings."""
    expired: bool = False
    """Whether its file has expired, so that the document counts as deleted, although it is not marked yet."""
    deleted: bool = False
    """Whether it does not exist for readers: it is marked, or `expired`."""
    deleted_at: int | None = None
    """When it was marked, or its deletion was last sent to the worker, in seconds since 1970."""
    end_users: str = ""
    """The hashes of the end users to whom it belongs, with spaces."""

    @property
    def held(self) -> bool:
        """Return whether a process writes chunks of the document now."""
        return self.lease_until is not None and self.lease_until > time.time() * 1000

    @property
    def is_unstarted(self) -> bool:
        """Return whether the document is in progress, and no worker has begun it since it was sent."""
        return self.status == "in_progress" and self.lease_until is None and self.progress is None

    def is_ingested_with(self, settings: DocumentSettings) -> bool:
        """Return whether the document has these settings, and is completed or in progress."""
        return self.status in ("in_progress", "completed") and is_same(self.settings, settings)

    @property
    def outdated(self) -> Mapping[str, int]:
        """Return the generations that searches ignore."""
        kept = None if self.deleted else self.generation
        return {name: count for name, count in self.generations.items() if name != kept}


def to_text(generations: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{count}" for name, count in generations.items())


def to_generations(text: str) -> dict[str, int]:
    pairs = (each.partition(":") for each in text.split())
    return {name: int(count) for name, _, count in pairs}


def to_document(item: Item) -> StoredDocument:
    error: Any = item.get("last_error")
    settings = DocumentSettings.model_validate_json(item["settings"])
    # The file has an end, and no process that would mark its documents at that moment.
    expired = settings.expires_at is not None and settings.expires_at <= time.time()
    return StoredDocument(
        key=item["sk"].removeprefix(keys.DOCUMENTS),
        status=item["doc_status"],
        created_at=item["created_at"],
        settings=settings,
        batch_id=item.get("batch_id"),
        generation=item.get("generation"),
        generations=to_generations(item.get("generations", "")),
        usage_bytes=item.get("usage_bytes", 0),
        last_error=LastError.model_validate_json(error) if error else None,
        lease_until=item.get("lease_until"),
        queued_at=item.get("queued_at", 0),
        requeues=item.get("requeues", 0),
        text=StoredContent.model_validate_json(item["doc_text"]) if "doc_text" in item else None,
        progress=IngestionProgress.model_validate_json(item["progress"]) if "progress" in item else None,
        unindexed="unindexed" in item,
        expired=expired and is_live(item),
        deleted=expired or not is_live(item),
        deleted_at=item.get("deleted_at"),
        end_users=item.get("end_users", ""),
    )
