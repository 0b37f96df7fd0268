"""The work of a whole search in a store of 1,000 chunks, from the request to the log line, in calls of functions."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from infra.bench.model_server import ModelServer, running_model_server
from starlette.types import Message, Receive, Scope
from tests.services.call_count import CallCount
from tests.services.knowledge.killable import Death
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.store.conftest import Cloud

from stint.domain.vector_stores import InsertedChunk
from stint.http.app import create_app
from stint.http.routes import vector_stores
from stint.retrieval.embedders.openai import OpenAIEmbeddings
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import Embedder, VectorIndex
from stint.settings import Settings
from stint.store.objects import BucketObjects

MOST_CALLS = 2_750
"""Of Python's functions in the thread of the event loop. Python 3.11 makes 2,600 to 2,700, as the answers arrive."""
DOCUMENTS, OF_DOCUMENT, HITS, SEARCHES = 20, 50, 10, 5


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with running_model_server() as server:
        yield server


class SearchedStore(KnowledgeFixture):
    """A store with a packed index and a server of embeddings, and the function `knowledge` in this event loop."""

    def __init__(self, cloud: Cloud, tenant: str, model_url: str) -> None:
        self.embeddings = OpenAIEmbeddings(model_url)
        super().__init__(cloud, tenant)
        settings = Settings(auth="none")
        self.app = create_app(
            "knowledge",
            vector_stores.router,
            make_services=lambda _: self.services,
            read_settings=lambda: settings,
            buffered=False,
        )

    def make_index(self, _: Death | None) -> VectorIndex:
        return PackedIndex(BucketObjects(self.cloud.objects), Settings().packed_bytes)

    def make_embedder(self) -> Embedder:
        return self.embeddings

    async def fill(self) -> str:
        """Insert the chunks of all documents, and return the id of the store."""
        store_id = await self.create()
        texts = [[f"Chunk {at} of {document}. " * 20 for at in range(OF_DOCUMENT)] for document in range(DOCUMENTS)]
        chunks = {f"{at}": [InsertedChunk(text=text) for text in each] for at, each in enumerate(texts)}
        await self.insertions.insert_chunks(store_id, chunks)
        await self.work()
        return store_id

    async def request(self, store_id: str, query: str) -> None:
        """Search as a caller does."""
        body = json.dumps({"query": query, "max_num_results": HITS}).encode()
        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": f"/v1/vector_stores/{store_id}/search",
            "root_path": "",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"user-agent", b"tests")],
        }
        written: list[bytes] = []

        async def send(message: Message) -> None:
            written.append(message.get("body", b""))

        await self.app(scope, receiving(body), send)
        assert b"".join(written).count(b'"score"') == HITS


def receiving(body: bytes) -> Receive:
    """Return what receives a request, and then nothing more."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    return receive


async def test_a_warm_search_takes_few_calls_and_one_request_to_the_bucket(
    cloud: Cloud, tenant: str, model: ModelServer
) -> None:
    store = SearchedStore(cloud, tenant, model.url)
    store_id = await store.fill()
    await store.request(store_id, "first")
    counts: list[int] = []

    for at in range(SEARCHES):
        cloud.forget()
        with CallCount() as count:
            await store.request(store_id, f"query {at}")
        counts.append(count.calls)
        assert cloud.calls == {"BatchGetItem": 2, "GetItem": 1, "GetObject": 1}
    await store.embeddings.aclose()

    assert min(counts) <= MOST_CALLS
