"""Single calls of tools that an earlier request with the same idempotency key may have made."""

from collections.abc import Mapping
from typing import Any

from stint.domain.errors import Conflict
from stint.domain.llama_stack.registrations import Tool, ToolGroup
from stint.services.registry.tools import Tools


async def refuse_repetition(tools: Tools, tool: Tool, group: ToolGroup, provider_data: Mapping[str, Any]) -> None:
    """Refuse to run a tool that may have run, unless it is repeatable.

    Raises:
        Conflict: the tool is not repeatable.
        ToolUnavailable, InvalidRequest: as `Tools.signatures`.
    """
    signatures = await tools.signatures(group, provider_data)
    if any(each.repeatable for each in signatures if each.name == tool.identifier):
        return
    raise Conflict(
        f"The process that handled the first request with this Idempotency-Key ended before its answer was stored. "
        f"Tool {tool.identifier!r} may have run, and is not repeatable, so it was not run again. Check its effect, "
        "and send a new key to run it again.",
        code="outcome_unknown",
    )
