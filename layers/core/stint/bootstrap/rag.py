"""Composition of vector dbs and of the retrieval of context. Functions load it when the first one is used."""

from collections.abc import Callable
from functools import cache

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import make_registry, model_access
from stint.dataclasses import dataclass
from stint.documents.document_reader import DocumentReader
from stint.domain.tasks import SendTask
from stint.services.deletions import delete_named_store
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.expired_stores import ExpiredStores
from stint.services.knowledge.graph import GraphSearch
from stint.services.knowledge.insertions import Insertions
from stint.services.knowledge.memory_retrieval import MemoryRetrieval, SessionStores
from stint.services.knowledge.query_generator import QueryGenerator
from stint.services.knowledge.rag import RAG
from stint.services.knowledge.rag_insertion import RAGInsertion
from stint.services.knowledge.search import Search
from stint.services.knowledge.tasks import IngestionTasks
from stint.services.knowledge.text_models import TextModels
from stint.services.knowledge.vector_dbs import VectorDBs
from stint.services.knowledge.vector_io import VectorIO
from stint.services.registry.tools import Tools
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class RAGServices:
    """The use cases of a tenant's vector dbs."""

    vector_dbs: VectorDBs
    vector_io: VectorIO
    rag: RAG
    rag_insertion: RAGInsertion
    session_stores: SessionStores
    graph: GraphSearch
    text_models: TextModels


def compose_rag(
    tenant: str, adapters: Adapters, store: Store, send: SendTask, get_tools: Callable[[], Tools] | None = None
) -> RAGServices:
    """Make the use cases of a tenant. `send` sends tasks to the worker, which ingests and deletes documents.

    `get_tools` returns the tools that write queries; without it, none can.
    """
    get_registry = cache(lambda: make_registry(tenant, adapters.settings, adapters.router, store))

    text_models = TextModels(adapters.router, get_registry)
    queries = QueryGenerator(text_models, get_tools)
    reader = DocumentReader(adapters.fetch, adapters.check_url, adapters.document_limits)
    models = EmbeddingModels(adapters.embedders, get_registry, model_access(tenant, adapters.settings))
    delete_store = delete_named_store(tenant, store, send)
    search = Search(tenant, store, lambda: adapters.vector_index, models, expired=ExpiredStores(tenant, store, send))
    insertions = Insertions(tenant, store, IngestionTasks(tenant, send))
    vector_dbs = VectorDBs(tenant, store, models, adapters.settings.vector_indexes, delete_store=delete_store)
    graph = GraphSearch(tenant, store)
    retrieval = MemoryRetrieval(search, queries, vector_dbs, graph)
    return RAGServices(
        vector_dbs=vector_dbs,
        vector_io=VectorIO(vector_dbs, search),
        rag=RAG(search, queries, vector_dbs.resolve, retrieval.retrieve),
        rag_insertion=RAGInsertion(vector_dbs, insertions, reader),
        session_stores=SessionStores(tenant, store, models, insertions),
        graph=graph,
        text_models=text_models,
    )
