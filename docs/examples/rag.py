"""Questions about documents, using only llama-stack-client: vector db, rag-tool, and an agent that searches.

pip install llama-stack-client==0.2.12 fire requests    # it imports the last two but does not declare them
python docs/examples/rag.py http://127.0.0.1:8321
"""

import logging
import os
import sys
import uuid

from llama_stack_client import Agent, LlamaStackClient, RAGDocument

logging.disable(logging.INFO)

FACTS = {
    "maverick": "Llama 4 Maverick is a model with 128 experts and 17 billion active parameters.",
    "guanaco": "Guanacos are wild relatives of the llama. They run up to 56 km/h.",
    "alpaca": "Alpacas are bred for their wool, and hum when they are curious.",
}
TEMPLATE = "Result {index}\nContent: {chunk.content}\nMetadata: {metadata}\n"


def answer_questions(base_url: str) -> None:
    client = LlamaStackClient(base_url=base_url, api_key=os.environ.get("STINT_API_KEY"))
    model = next(each.identifier for each in client.models.list() if each.model_type == "llm")
    provider = next(each for each in client.providers.list() if each.api == "vector_io")
    vector_db_id = f"facts-{uuid.uuid4()}"
    client.vector_dbs.register(
        vector_db_id=vector_db_id,
        provider_id=provider.provider_id,
        embedding_model="all-MiniLM-L6-v2",
        embedding_dimension=384,
    )
    documents = [
        RAGDocument(document_id=name, content=text, mime_type="text/plain", metadata={"source": "facts"})
        for name, text in FACTS.items()
    ]
    client.tool_runtime.rag_tool.insert(documents=documents, vector_db_id=vector_db_id, chunk_size_in_tokens=512)

    print("-- rag_tool.query")
    result = client.tool_runtime.rag_tool.query(
        vector_db_ids=[vector_db_id],
        content="How many experts has Maverick?",
        query_config={"max_chunks": 1, "chunk_template": TEMPLATE},
    )
    print(result.content[1].text.strip())

    print("-- an agent that searches")
    args = {"vector_db_ids": [vector_db_id], "query_config": {"max_chunks": 1, "chunk_template": TEMPLATE}}
    ask(client, model, args, 'Ask knowledge_search {"query": "How fast do guanacos run?"}')

    print("-- an agent that retrieves before it answers")
    ask(client, model, args | {"retrieve": "before_inference"}, "Why are alpacas bred, and when do they hum?")
    client.vector_dbs.unregister(vector_db_id=vector_db_id)


def ask(client: LlamaStackClient, model: str, args: dict[str, object], question: str) -> None:
    agent = Agent(
        client,
        model=model,
        instructions="Answer from the documents.",
        tools=[{"name": "builtin::rag/knowledge_search", "args": args}],
    )
    session_id = agent.create_session("facts")
    turn = agent.create_turn([{"role": "user", "content": question}], session_id=session_id, stream=False)
    for step in turn.steps:
        print(step.step_type)
        if step.step_type == "tool_execution":
            print(" ", step.tool_responses[0].content[1].text.splitlines()[1])
        if step.step_type == "memory_retrieval":
            print(" ", step.inserted_context[1].text.splitlines()[1])


if __name__ == "__main__":
    answer_questions(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8321")
