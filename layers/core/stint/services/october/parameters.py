"""Parameters of tools of October 2024."""

from collections.abc import Mapping

from stint.domain.llama_stack.october_2024_agents import OctoberParameter
from stint.domain.tools import ToolParameter

BUILT_IN = {
    "brave_search": ("query", "The query to search for"),
    "wolfram_alpha": ("query", "The question to compute"),
    "photogen": ("query", "A description of the image"),
    "code_interpreter": ("code", "Python code to run"),
}
"""The built-in tools of October 2024 with their parameter and its description."""


def to_parameters(parameters: Mapping[str, OctoberParameter]) -> list[ToolParameter]:
    """Convert the parameters of a function."""
    return [
        ToolParameter(
            name=name,
            parameter_type=each.param_type,
            description=each.description or "",
            required=each.required,
            default=each.default,
        )
        for name, each in parameters.items()
    ]
