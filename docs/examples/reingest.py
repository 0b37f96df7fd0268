"""Ingest all files of all vector stores again, with their attributes and chunking, after their index was lost.

pip install openai
STINT_API_KEY=stk_... python docs/examples/reingest.py https://abc123.execute-api.eu-west-1.amazonaws.com/prod
"""

import os
import sys

from openai import OpenAI
from openai.types import StaticFileChunkingStrategyObjectParam
from openai.types.vector_stores import VectorStoreFile


def chunking_of(file: VectorStoreFile) -> StaticFileChunkingStrategyObjectParam | None:
    chunking = file.chunking_strategy
    if chunking is None or chunking.type != "static":
        return None
    sizes = chunking.static
    return {
        "type": "static",
        "static": {
            "max_chunk_size_tokens": sizes.max_chunk_size_tokens,
            "chunk_overlap_tokens": sizes.chunk_overlap_tokens,
        },
    }


def files_of(client: OpenAI, store_id: str) -> list[VectorStoreFile]:
    return list(client.vector_stores.files.list(store_id))


def ingest_again(client: OpenAI, store_id: str, file: VectorStoreFile) -> None:
    """Remove a file from its store, and add it with the same settings."""
    client.vector_stores.files.delete(file.id, vector_store_id=store_id)
    attributes, chunking = file.attributes or {}, chunking_of(file)
    if chunking:
        client.vector_stores.files.create(store_id, file_id=file.id, attributes=attributes, chunking_strategy=chunking)
    else:
        client.vector_stores.files.create(store_id, file_id=file.id, attributes=attributes)


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("Name the base URL of the stack, without /v1: python docs/examples/reingest.py URL")
    client = OpenAI(base_url=f"{sys.argv[1]}/v1", api_key=os.environ.get("STINT_API_KEY", "none"))
    listed = [(store.id, file) for store in client.vector_stores.list() for file in files_of(client, store.id)]
    files = [(store_id, file) for store_id, file in listed if file.id.startswith("file-")]
    for store_id, file in files:
        ingest_again(client, store_id, file)
    print(f"{len(files)} files are being ingested again")
    if others := len(listed) - len(files):
        print(f"{others} documents have no file: insert them again, or put their objects into the inbox again")


if __name__ == "__main__":
    main()
