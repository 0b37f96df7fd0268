"""The args of an MCP toolgroup's registration."""

from typing import Annotated

from pydantic import Field, ValidationError

from stint.dataclasses import replace
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.schema import Request
from stint.domain.validation import describe_faults
from stint.tools.definitions import LONGEST_TIMEOUT
from stint.tools.port import Toolgroup

Seconds = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)]


class McpArgs(Request):
    """The args. `timeout` is in seconds, for one listing or call; `timeouts` has timeouts of single tools by name.

    `repeatable` says whether calls of its tools may be sent again after an interruption. By default the server's hints
    decide.
    """

    timeout: Seconds | None = None
    timeouts: dict[str, Seconds] = Field(default_factory=dict)
    repeatable: bool | None = None

    def timeout_of(self, tool_name: str) -> float | None:
        """Return the timeout of a call; None if the registration has none."""
        return self.timeouts.get(tool_name, self.timeout)

    def apply(self, tools: list[ToolSignature]) -> list[ToolSignature]:
        """Return the listed tools as the registration has them."""
        if self.repeatable is None:
            return tools
        return [replace(tool, repeatable=self.repeatable) for tool in tools]


def read_args(toolgroup: Toolgroup) -> McpArgs:
    """Read a registration's args. Raises InvalidRequest with the location of the error."""
    try:
        return McpArgs.model_validate(toolgroup.config)
    except ValidationError as error:
        message = f"The args of the toolgroup {toolgroup.toolgroup_id!r} are malformed: {describe_faults(error)}"
        raise InvalidRequest(message, param="args") from None
