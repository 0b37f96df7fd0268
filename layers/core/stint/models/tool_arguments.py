"""The arguments of earlier tool calls, as providers take them back."""

import json
from typing import Any

from stint.domain.tools import ToolCall


def read_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Give a call's arguments as an object, whatever the model wrote.

    Converse, vLLM and Ollama refuse a history with arguments that are no JSON object, which would end the session; so
    such a text is handed back inside an object.
    """
    if isinstance(call.arguments, dict):
        return call.arguments
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"invalid_arguments": call.arguments}
