"""The arguments of earlier tool calls, in the form that providers accept."""

from typing import Any

from stint.domain.json_text import parse_json
from stint.domain.tools import ToolCall


def read_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object, whatever the model wrote.

    Converse, vLLM and Ollama refuse a history with arguments that are not a JSON object, which would make the session
    unusable. Such a text is therefore wrapped in an object, and so is one that is nested too deeply, or has numbers or
    characters that JSON lacks.
    """
    if isinstance(call.arguments, dict):
        return call.arguments
    try:
        arguments = parse_json(call.arguments or "{}")
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"invalid_arguments": call.arguments}
