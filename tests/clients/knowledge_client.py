"""Files and vector stores with a client: `python knowledge_client.py ogx_client OgxClient`."""

import os
import sys
import time
from importlib import import_module

module, name = sys.argv[1:]
client = getattr(import_module(module), name)(base_url=os.environ["STINT_URL"], api_key=os.environ["STINT_API_KEY"])
CHUNK = {
    "chunk_id": "c1",
    "chunk_metadata": {"document_id": "d1"},
    "content": "Alpacas hum.",
    "embedding": [1.0] + [0.0] * 383,
    "embedding_dimension": 384,
    "embedding_model": "words-384",
}

print(list(client.files.list()), list(client.responses.list(model="none/such")))
print(list(client.vector_stores.list()))
file = client.files.create(file=("llamas.txt", b"Llamas live in Peru."), purpose="assistants")
store = client.vector_stores.create(name="animals", file_ids=[file.id])
while client.vector_stores.files.retrieve(vector_store_id=store.id, file_id=file.id).status == "in_progress":
    time.sleep(0.2)
found = client.vector_stores.search(vector_store_id=store.id, query="llamas")
print(found.search_query, found.data[0].content[0].text)
client.vector_io.insert(vector_store_id=store.id, chunks=[CHUNK])
chunk = client.vector_io.query(vector_store_id=store.id, query="alpacas hum", params={"max_chunks": 1}).chunks[0]
print(chunk.chunk_metadata.document_id, chunk.embedding_dimension)
client.vector_stores.delete(vector_store_id=store.id)
client.files.delete(file_id=file.id)
