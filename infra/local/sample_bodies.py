"""The bodies of the requests that make the samples."""

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

QUESTION = {"role": "user", "content": "What is the weather in Oslo?"}
