"""The bodies of the requests that make the samples."""

from base64 import encodebytes
from hashlib import shake_256

from infra.local.sample_ids import VECTOR_DB

from stint.domain.llama_stack.agents import AgentConfig

CONFIG = AgentConfig.model_validate(
    {
        "model": "scripted/demo",
        "instructions": "Answer briefly.",
        "name": "sample of events/",
        "enable_session_persistence": True,
        "client_tools": [
            {
                "name": "get_weather",
                "description": "Returns the weather in a city.",
                "parameters": [{"name": "city", "parameter_type": "str", "description": "Name of the city."}],
            }
        ],
    }
)

# A Lambda function of docs/examples/tools, which the local cloud runs unless TOOLS names another template.
BOILING_POINT = {
    "name": "get_boiling_point",
    "description": "Returns the boiling point of a liquid.",
    "parameters": {
        "type": "object",
        "properties": {
            "liquid": {"type": "string", "description": "Name of the liquid."},
            "celsius": {"type": "boolean", "description": "Degrees Celsius (the default) or Fahrenheit."},
        },
        "required": ["liquid"],
    },
    "function": "get-boiling-point",
}
MESSAGE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "My name is Ada."}]}

VECTOR_DB_REGISTRATION = {"vector_db_id": VECTOR_DB, "embedding_model": "all-MiniLM-L6-v2", "embedding_dimension": 384}
INSERTED_DOCUMENTS = {
    "vector_db_id": VECTOR_DB,
    "documents": [
        {
            "document_id": "llamas",
            "content": "Llamas live in the Andes.",
            "mime_type": "text/plain",
            "metadata": {"source": "facts"},
        }
    ],
    "chunk_size_in_tokens": 512,
}
INSERTED_CHUNKS = {
    "vector_db_id": VECTOR_DB,
    "chunks": [
        {
            "content": "Alpacas hum when they are curious.",
            "metadata": {"document_id": "alpacas", "source": "facts"},
        }
    ],
}
"""What the events insert, too. The same insertion again needs no worker, which would not run beside an event."""

QUESTION = {"role": "user", "content": "What is the weather in Oslo?"}

# Lines that hardly compress, too many for an item of the table, so that they are stored in the bucket. The scripted
# model counts each as a word, so its tokens are plausible.
LONG_MESSAGE = {"role": "user", "content": f"say: Thank you\n{encodebytes(shake_256().digest(320_000)).decode()}"}
