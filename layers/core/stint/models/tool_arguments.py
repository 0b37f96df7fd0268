"""The arguments of earlier tool calls, in the form that providers accept."""

import json
from typing import Any

from stint.domain.tools import ToolCall


def read_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object, whatever the model wrote.

    Converse, vLLM and Ollama refuse a history with arguments that are not a JSON object, which would make the session
    unusable. Such a text is therefore wrapped in an object.
    """
    if isinstance(call.arguments, dict):
        return call.arguments
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"invalid_arguments": call.arguments}
