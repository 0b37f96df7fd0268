"""The settings of memory banks as vector stores keep them."""

from pydantic import ValidationError

from stint.october_2024.schemas.memory import (
    BankDefinition,
    BankSettings,
    CreatedBank,
    GraphBank,
    KeyValueBank,
    KeywordBank,
    VectorBank,
)
from stint.store.vector_stores import StoredVectorStore

BANK = "memory_bank"
"""Key of a vector store's metadata for the settings of a bank, as JSON. A store without it is a vector bank."""


class StoredBank(BankSettings):
    """The settings of a bank as they are stored. `name` and `url` are those of client 0.0.40."""

    provider_id: str = ""
    name: str = ""
    url: str | None = None


def to_stored(bank: BankDefinition) -> StoredBank:
    if isinstance(bank, GraphBank):
        return StoredBank(type="graph", provider_id=bank.provider_id, model=bank.model)
    if not isinstance(bank, VectorBank):
        return StoredBank(type=bank.type, provider_id=bank.provider_id)
    return StoredBank(
        type="vector",
        provider_id=bank.provider_id,
        embedding_model=bank.embedding_model,
        chunk_size_in_tokens=bank.chunk_size_in_tokens,
        overlap_size_in_tokens=bank.overlap_size_in_tokens,
    )


def read_stored(stored: StoredVectorStore) -> StoredBank:
    """Return the settings of the bank of a vector store. A caller may have replaced the metadata."""
    settings = stored.settings
    try:
        found = StoredBank.model_validate_json(settings.metadata.get(BANK, "{}"))
    except ValidationError:
        found = StoredBank()
    return found.model_copy(
        update={
            "embedding_model": found.embedding_model or settings.embedding.name,
            "provider_id": found.provider_id or settings.provider_id or "",
        }
    )


def name_of(stored: StoredVectorStore) -> str:
    return stored.settings.identifier or stored.id


def to_definition(stored: StoredVectorStore) -> BankDefinition:
    """Return the definition of a bank."""
    bank, identifier = read_stored(stored), name_of(stored)
    match bank.type:
        case "keyword":
            return KeywordBank(type="keyword", identifier=identifier, provider_id=bank.provider_id)
        case "keyvalue":
            return KeyValueBank(type="keyvalue", identifier=identifier, provider_id=bank.provider_id)
        case "graph":
            return GraphBank(type="graph", identifier=identifier, provider_id=bank.provider_id, model=bank.model)
        case "vector":
            size, overlap = bank.chunk_size_in_tokens, bank.overlap_size_in_tokens
            return VectorBank(
                identifier=identifier,
                provider_id=bank.provider_id,
                embedding_model=bank.embedding_model,
                chunk_size_in_tokens=size,
                overlap_size_in_tokens=size // 4 if overlap is None else overlap,
            )


def to_created(bank_id: str, bank: StoredBank) -> CreatedBank:
    """Return a bank in the form of client 0.0.40."""
    config = BankSettings(
        type=bank.type,
        embedding_model=bank.embedding_model,
        chunk_size_in_tokens=bank.chunk_size_in_tokens,
        overlap_size_in_tokens=bank.overlap_size_in_tokens,
        model=bank.model,
    )
    return CreatedBank(bank_id=bank_id, name=bank.name or bank_id, config=config, url=bank.url)
