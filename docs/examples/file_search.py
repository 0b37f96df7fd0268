"""File search using only OpenAI's SDK: upload files, put them into a vector store, ask, and read the citations.

pip install openai
python docs/examples/file_search.py http://127.0.0.1:8321
"""

import os
import sys

from openai import OpenAI
from openai.types.responses import FileSearchToolParam

MODEL = "scripted/demo"
TEXTS = {
    "llamas.md": "# Llamas\n\nLlamas live in the Andes of Peru and Bolivia. They hum when they are content.",
    "penguins.md": "# Penguins\n\nPenguins live on the coasts of Antarctica. They dive for fish.",
}


def make_store(client: OpenAI) -> str:
    """Upload the texts, and wait until they can be found."""
    store = client.vector_stores.create(name="Animals")
    for name, text in TEXTS.items():
        file = client.files.create(file=(name, text.encode()), purpose="assistants")
        attributes = {"animal": name.removesuffix("s.md")}
        added = client.vector_stores.files.create_and_poll(file.id, vector_store_id=store.id, attributes=attributes)
        print("file:", name, added.status)
    return store.id


def ask(client: OpenAI, store_id: str) -> None:
    """Ask a question, and print what was searched, found and cited."""
    tool: FileSearchToolParam = {"type": "file_search", "vector_store_ids": [store_id], "max_num_results": 1}
    response = client.responses.create(
        model=MODEL,
        input='Use file search for "Where do llamas live?"',
        tools=[tool],
        include=["file_search_call.results"],
    )
    for item in response.output:
        if item.type == "file_search_call":
            print("queries:", item.queries, "found:", [result.filename for result in item.results or []])
        elif item.type == "message" and item.content[0].type == "output_text":
            for annotation in item.content[0].annotations:
                if annotation.type == "file_citation":
                    print("cites:", annotation.filename, "at", annotation.index)


def search(client: OpenAI, store_id: str) -> None:
    """Search the store without a model."""
    only: dict[str, str] = {"type": "eq", "key": "animal", "value": "penguin"}
    found = client.vector_stores.search(store_id, query="where they live", filters=only)  # type: ignore[arg-type]
    for result in found:
        print("search:", result.filename, result.content[0].text.splitlines()[-1])


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8321"
    client = OpenAI(base_url=f"{url}/v1", api_key=os.environ.get("STINT_API_KEY", "none"))
    store_id = make_store(client)
    ask(client, store_id)
    search(client, store_id)


if __name__ == "__main__":
    main()
