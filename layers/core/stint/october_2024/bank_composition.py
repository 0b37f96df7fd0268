"""Composition of the memory banks of October 2024. It is loaded when the first one is used."""

from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.rag import compose_rag
from stint.bootstrap.vector_stores import compose_vector_stores
from stint.dataclasses import dataclass
from stint.october_2024.bank_queries import BankQueries
from stint.october_2024.banks import MemoryBanks
from stint.october_2024.entity_extraction import EntityExtraction


@dataclass(frozen=True, slots=True)
class BankServices:
    """The use cases of a tenant's memory banks."""

    banks: MemoryBanks
    queries: BankQueries


def compose_banks(tenant: str, parts: KnowledgeParts) -> BankServices:
    """Make the use cases of a tenant."""
    rag = compose_rag(tenant, parts.adapters, parts.store, parts.send)
    stores = compose_vector_stores(tenant, parts)
    settings = parts.adapters.settings
    extraction = EntityExtraction(rag.text_models, settings.default_model)
    banks = MemoryBanks(
        rag.vector_dbs, rag.rag_insertion, stores.documents, settings.embedding_model, extraction=extraction
    )
    return BankServices(banks, BankQueries(banks, stores.search, rag.graph))
