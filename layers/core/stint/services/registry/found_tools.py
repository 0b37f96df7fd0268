"""Choice among the tools that have a name, outside a turn."""

from collections.abc import Collection, Sequence

from stint.domain.errors import InvalidRequest, NotFound, StintError, ToolUnauthorized, ToolUnavailable, UnresolvableURL
from stint.domain.llama_stack.registrations import Tool

BUILT_IN = "builtin::"
"""The beginning of the identifiers of built-in toolgroups."""


def choose_tool(name: str, found: Sequence[Tool], configured: Collection[str]) -> Tool:
    """Return the only tool found. One of a built-in toolgroup comes first, whatever other servers list.

    `configured` has the identifiers of the configured toolgroups.

    Raises:
        NotFound: there is none.
        InvalidRequest: there are several, and none or more than one is built in.
    """
    own = [tool for tool in found if tool.toolgroup_id.startswith(BUILT_IN) and tool.toolgroup_id in configured]
    found = own or found
    if not found:
        raise NotFound("Tool", name)
    if len(found) > 1:
        names = " or ".join(repr(f"{tool.toolgroup_id}/{tool.identifier}") for tool in found)
        raise InvalidRequest(
            f"Several toolgroups have a tool {name!r}. Use {names}.", code="ambiguous_tool", param="tool_name"
        )
    return found[0]


def tool_not_found(name: str, failures: Sequence[StintError]) -> StintError:
    """Make the error for a tool that may be in a toolgroup that does not answer."""
    kinds: tuple[type[StintError], ...] = (ToolUnauthorized, UnresolvableURL, InvalidRequest)
    kind = next((kind for kind in kinds if all(isinstance(each, kind) for each in failures)), ToolUnavailable)
    reasons = "; ".join(failure.message for failure in failures)
    return kind(f"No reachable toolgroup has a tool {name!r}, and these are not reachable: {reasons}")
