"""CPU time of a search in a vector store by the API, in a warm process of the function `knowledge`.

The model server of this package embeds the chunks and the queries. Beside it is the time in which numpy multiplies a
matrix of as many vectors by one, in this process. Linux only.
"""

import asyncio
import contextlib
import time

import numpy as np
from infra.bench.client import Api
from infra.bench.model_server import DIMENSION, running_model_server
from infra.bench.processes import Launcher, RunningFunction, launcher, with_model
from infra.bench.report import Row
from infra.bench.side import cpu_seconds
from infra.local.cloud import Plan, running_cloud, serving_front
from infra.local.event_sources import serving_sources
from infra.local.server import listen

PROCESSES, SEARCHES, WARM_UP, HITS = 3, 20, 10, 10
"""Processes, their searches that are measured, those before them, and the results of each."""
BATCH, OF_DOCUMENT, WORDS_OF_CHUNK = 1_000, 50, 150
"""Chunks of a request that inserts them and of a document, and words of a chunk."""
EMBEDDING_MODEL = "openai/embeddings"
MOST = "At most 10 ms are required for 1,000 chunks."


async def measure_searches(counts: tuple[int, ...]) -> list[Row]:
    """Return the milliseconds of CPU time of searches in stores of so many chunks, and those of numpy's products."""
    async with contextlib.AsyncExitStack() as stack:
        model = stack.enter_context(running_model_server())
        settings = with_model(model.url)
        cloud = await stack.enter_async_context(running_cloud(Plan(settings, shared=True), None, silent))
        await stack.enter_async_context(serving_sources(cloud, silent))
        listener = stack.enter_context(contextlib.closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, silent))
        launch = await stack.enter_async_context(launcher(cloud, settings))
        stores = [await asyncio.to_thread(fill_store, front, count) for count in counts]
        rows = [Row(f"{count:,} chunks, {HITS} hits", "ms", [], [], paired=True) for count in counts]
        for _ in range(PROCESSES):
            for row, store, count in zip(rows, stores, counts, strict=True):
                async with launch.function("knowledge") as function:
                    await measure_process(launch, function, store, row)
                row.theirs.extend(products(count))
    return rows


def silent(subject: str, line: str) -> None:
    """Drop a log line of the cloud."""


def fill_store(front: str, count: int) -> str:
    """Make a vector store with so many chunks, and return its id."""
    api = Api(front)
    store = str(api.post("/v1/vector_stores", {"name": "bench", "embedding_model": EMBEDDING_MODEL})["id"])
    for first in range(0, count, BATCH):
        chunks = [
            {"content": chunk(at), "metadata": {"document_id": f"document-{at // OF_DOCUMENT}"}}
            for at in range(first, first + BATCH)
        ]
        api.post("/v1/vector-io/insert", {"vector_db_id": store, "chunks": chunks})
    api.close()
    return store


def chunk(at: int) -> str:
    return f"Chunk {at}: " + " ".join(f"word{(at * 31 + number * 17) % 9973}" for number in range(WORDS_OF_CHUNK))


async def measure_process(launch: Launcher, function: RunningFunction, store: str, row: Row) -> None:
    """Add the searches of a process to a row, without the first ones."""
    for number in range(WARM_UP + SEARCHES):
        body = {"query": f"Where is word{number}?", "max_num_results": HITS}
        event = launch.event("POST", f"/v1/vector_stores/{store}/search", body)
        before = cpu_seconds(function.pid)
        answer = await function.answer(event)
        spent = cpu_seconds(function.pid) - before
        if answer.count(b'"score"') != HITS:
            raise RuntimeError(f"not {HITS} results: {answer[-500:]!r}")
        if number >= WARM_UP:
            row.ours.append(1_000 * spent)


def products(count: int) -> list[float]:
    """Return the milliseconds in which numpy multiplies so many vectors by one."""
    matrix = np.random.default_rng(count).random((count, DIMENSION), np.float32)
    vector = matrix[0].copy()
    found = []
    for _ in range(WARM_UP + SEARCHES):
        began = time.perf_counter()
        matrix @ vector
        found.append(1_000 * (time.perf_counter() - began))
    return found[WARM_UP:]
