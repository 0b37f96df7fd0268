"""A response with one file search, which calls its model twice, compared with the same response without it."""

import asyncio

from infra.bench.client import Api, Turn
from infra.bench.report import Row
from infra.bench.responses import ROUNDS, pairs
from infra.bench.streams import row

DOCUMENTS = 100
QUESTION = 'Use file search for "Where does llama 7 live?"'


async def measure_file_search(front: str) -> list[Row]:
    """Measure a response that searches a store of 100 documents, and calls its model twice, in warm processes."""
    return await asyncio.to_thread(measure, front)


def measure(front: str) -> list[Row]:
    api = Api(front)
    store = str(api.post("/v1/vector_stores", {"name": "bench"})["id"])
    documents = [
        {"document_id": str(number), "content": f"Llama {number} lives in valley {number} of Peru.", "metadata": {}}
        for number in range(DOCUMENTS)
    ]
    api.post("/v1/tool-runtime/rag-tool/insert", {"vector_db_id": store, "documents": documents})
    tool: dict[str, object] = {"type": "file_search", "vector_store_ids": [store]}
    found = pairs(lambda: stream(api, [tool]), lambda: stream(api, []), ROUNDS)
    api.close()
    return [
        row("time to first event", "ms", [[each.first * 1000 for each in pair] for pair in found]),
        row("time to last event", "ms", [[each.end * 1000 for each in pair] for pair in found]),
    ]


def stream(api: Api, tools: list[dict[str, object]]) -> Turn:
    body = {"model": "scripted/demo", "input": QUESTION, "stream": True, "tools": tools}
    turn, received = api.stream("/v1/responses", body)
    if (b"response.file_search_call.completed" in received) is not bool(tools):
        raise RuntimeError(f"no search, or one that was not asked for: {received[-500:]!r}")
    return turn
