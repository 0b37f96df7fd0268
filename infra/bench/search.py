"""`python -m infra.bench.search`: writes to a packed vector store, and searches in a small and a large one.

The stores are in the local engine. A cold search is the first one of a process; the process and its client exist. Warm
searches by vector are also compared with numpy alone, which multiplies a matrix of the same size by the vector: those
of the index, and those of the API (`searches.py`).
"""

import asyncio
import random
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from infra.bench.report import Row, render
from infra.bench.searches import MOST, measure_searches
from infra.local.engine import Engine

from stint.aws.environment import AwsEnvironment
from stint.aws.s3_reader import S3Object, S3Reader
from stint.domain.retrieval import SearchMode
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import Entry, IndexQuery
from stint.settings import Settings
from stint.store.bucket import Bucket
from stint.store.objects import BucketObjects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

DIMENSION, WORDS_OF_CHUNK, VOCABULARY = 1_024, 150, 30_000
SMALL, LARGE, BATCH = 1_000, 20_000, 100
RUNS, PAIRS = 5, 20
HELD = Settings().packed_bytes
MODES: tuple[SearchMode, ...] = ("vector", "keyword", "hybrid")


def chunks(count: int) -> Iterator[list[Entry]]:
    """Yield random chunks in batches, as a worker writes them: 150 words, frequent ones more often."""
    chance = random.Random(count)  # noqa: S311 - the same ones in each run
    words = [f"word{at}" for at in range(VOCABULARY)]
    weights = [1 / (at + 1) for at in range(VOCABULARY)]
    for first in range(0, count, BATCH):
        batch = []
        for at in range(first, first + BATCH):
            vector = [chance.uniform(-1, 1) for _ in range(DIMENSION)]
            text = " ".join(chance.choices(words, weights, k=WORDS_OF_CHUNK))
            document = f"file-{at // 50:06}"
            batch.append(Entry(f"{document}:g:{at:06}", vector, text, document, "g"))
        yield batch


def query(mode: SearchMode) -> IndexQuery:
    vector = [random.Random(at).uniform(-1, 1) for at in range(DIMENSION)]  # noqa: S311 - see above
    return IndexQuery(10, mode, vector, "word3 word40 word500 word6000")


class CountedReader(S3Reader):
    """A reader of a bucket that counts its requests."""

    requests = 0

    async def get(self, key: str, *, part: str = "", known: str = "") -> S3Object | None:
        self.requests += 1
        return await super().get(key, part=part, known=known)


class Bench:
    """Measurements of one bucket, whose `reader` counts the requests of searches."""

    def __init__(self, s3: "S3Client", bucket: str, environment: AwsEnvironment) -> None:
        self.reader = CountedReader(environment, bucket)
        self._objects = BucketObjects(Bucket(bucket, lambda: s3, lambda: self.reader))

    def process(self) -> PackedIndex:
        """Return the index of a process that has read nothing."""
        return PackedIndex(self._objects, HELD)

    async def write(self, name: str, count: int) -> float:
        """Write a store, and return the seconds that the index took."""
        index, seconds = self.process(), 0.0
        await index.create(name, DIMENSION)
        for batch in chunks(count):
            began = time.perf_counter()
            await index.upsert(name, batch)
            seconds += time.perf_counter() - began
        return seconds

    async def search(self, name: str, mode: SearchMode) -> Mapping[str, list[float]]:
        """Return milliseconds and requests of cold searches, and of those after them."""
        measured: dict[str, list[float]] = {each: [] for each in ("cold", "warm", "cold requests", "warm requests")}
        for _ in range(RUNS):
            index = self.process()
            for state in ("cold", "warm"):
                before = self.reader.requests
                began = time.perf_counter()
                await index.query(name, query(mode))
                measured[state].append(1_000 * (time.perf_counter() - began))
                measured[f"{state} requests"].append(self.reader.requests - before)
        return measured

    async def beside_numpy(self, name: str, count: int) -> Row:
        """Return the milliseconds of warm searches by vector, and of the product of as many vectors alone."""
        index, asked = self.process(), query("vector")
        matrix = np.random.default_rng(count).random((count, DIMENSION), np.float32)
        vector = np.array(asked.vector, np.float32)
        await index.query(name, asked)
        row = Row(f"{count:,} chunks, warm", "ms", [], [], paired=True)
        for _ in range(PAIRS):
            began = time.perf_counter()
            await index.query(name, asked)
            searched = time.perf_counter()
            matrix @ vector
            row.ours.append(1_000 * (searched - began))
            row.theirs.append(1_000 * (time.perf_counter() - searched))
        return row


def rows_of(mode: str, large: Mapping[str, list[float]], small: Mapping[str, list[float]]) -> list[Row]:
    units = {"cold": "ms", "warm": "ms", "cold requests": "", "warm requests": ""}
    return [Row(f"{mode} search, {name}", unit, large[name], small[name]) for name, unit in units.items()]


@contextmanager
def running_bench() -> Iterator[Bench]:
    with Engine() as engine:
        s3 = engine.running.client("s3")
        yield Bench(s3, engine.outputs["BucketName"], AwsEnvironment(engine.running.environment()))
        s3.close()


async def measure_search() -> tuple[float, list[Row], list[Row]]:
    """Return the seconds in which 1,000 chunks are written, and the searches of 20,000 and of 1,000.

    The last rows compare searches with numpy.
    """
    with running_bench() as bench:
        seconds = await bench.write("small", SMALL)
        await bench.write("large", LARGE)
        rows = []
        for mode in MODES:
            rows += rows_of(mode, await bench.search("large", mode), await bench.search("small", mode))
        beside_numpy = [await bench.beside_numpy("small", SMALL), await bench.beside_numpy("large", LARGE)]
    return seconds, rows, beside_numpy


def main() -> int:
    seconds, rows, beside_numpy = asyncio.run(measure_search())
    print(f"1,000 chunks of {DIMENSION} dimensions are written in {seconds:.1f} s, in batches of {BATCH}.")
    print(render(f"Packed index, {HELD // 1_000_000} MB held", "20,000", "1,000", rows))
    print(render("Search by vector", "search", "numpy", beside_numpy))
    if sys.platform == "linux":
        by_api = asyncio.run(measure_searches((SMALL, LARGE)))
        print(render("CPU time of a search by the API, warm", "search", "numpy", by_api))
        print(MOST)
    print(f"\nPeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB, with the random chunks.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
