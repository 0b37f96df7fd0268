"""Queries of graph banks: documents that name entities, and those that share others with them."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set

from stint.dataclasses import dataclass
from stint.domain.entities import MOST_NAMED, entities_of, phrases_of
from stint.domain.retrieval import FoundChunk
from stint.domain.vector_stores import InsertedText, StoredContent
from stint.store.parallel import map_concurrently
from stint.store.store import Store
from stint.store.stored_documents import StoredDocument

MOST_DOCUMENTS = 500
"""Maximum documents of an entity that a query names which are compared."""

MOST_LINKS, MOST_LINKED = 20, 100
"""Maximum entities that lead from the documents of a query to others, and documents of each which are compared."""

MOST_READ = 100
"""Maximum documents with the named entities, and maximum documents one link away, whose records are read."""


@dataclass(frozen=True, slots=True)
class GraphSearch:
    """Queries of a tenant's graph banks."""

    tenant: str
    store: Store

    async def find(self, store_id: str, names: Sequence[str], text: str, most: int) -> list[FoundChunk]:
        """Return the documents of entities, then those one link away, each ranked by the entities that it shares.

        Without names, the entities are those of the bank that a text names.
        """
        named = entities_of(names, MOST_NAMED) or await self.recognize(store_id, text)
        if not named:
            return []
        direct = await self.read_sharing(store_id, set(named), MOST_DOCUMENTS, frozenset())
        links = Counter(entity for document, _ in direct for entity in entities_in(document) if entity not in named)
        chosen = [entity for entity, _ in sorted(links.items(), key=lambda link: (-link[1], link[0]))[:MOST_LINKS]]
        linked: Sequence[tuple[StoredDocument, int]] = []
        if chosen and len(direct) < most:
            known = frozenset(document.key for document, _ in direct)
            linked = await self.read_sharing(store_id, set(chosen), MOST_LINKED, known)
        scored = [(document, float(shared)) for document, shared in direct]
        # Below any document that has a named entity, however many it shares.
        scored += [(document, shared / (len(chosen) + 1)) for document, shared in linked]
        return await self.read_texts(store_id, scored[:most])

    async def recognize(self, store_id: str, text: str) -> list[str]:
        """Return the entities of a bank that a text names, the longest first."""
        known = await self.store.entity_links.find_known(self.tenant, store_id, phrases_of(text))
        return known[:MOST_NAMED]

    async def read_sharing(
        self, store_id: str, entities: Set[str], most: int, known: Set[str]
    ) -> list[tuple[StoredDocument, int]]:
        """Return documents with the number of the entities that each names, the most first. `known` are left out."""
        found = await self.store.entity_links.find_documents(self.tenant, store_id, sorted(entities), most)
        shared = Counter(key for keys in found for key in keys if key not in known)
        keys = sorted(shared, key=lambda key: (-shared[key], key))[:MOST_READ]
        records = await self.store.vector_store_documents.find(self.tenant, store_id, keys)
        counted = ((record, len(entities & set(entities_in(record)))) for record in records.values())
        ranked = [(record, count) for record, count in counted if count and record.status == "completed"]
        return sorted(ranked, key=lambda each: (-each[1], each[0].settings.document_id))

    async def read_texts(self, store_id: str, scored: Sequence[tuple[StoredDocument, float]]) -> list[FoundChunk]:
        """Return the texts of documents. One that is deleted meanwhile is left out."""

        async def read(each: tuple[StoredDocument, float]) -> FoundChunk | None:
            document, score = each
            text = await read_inserted_text(self.store, document)
            return None if text is None else FoundChunk(store_id, document.settings.document_id, score, text)

        return [chunk for chunk in await map_concurrently(read, scored) if chunk is not None]


def entities_in(document: StoredDocument) -> Iterable[str]:
    return document.settings.entities or ()


async def read_inserted_text(store: Store, document: StoredDocument) -> str | None:
    """Return the text of a document that was inserted as one; None for others."""
    content = document.settings.content
    if not isinstance(content, StoredContent) or content.type != "text":
        return None
    return InsertedText.model_validate_json(await store.vector_store_contents.get(content)).text
