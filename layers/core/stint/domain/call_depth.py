"""The depth of a request: how many calls of agents have led to it. A client's own request has depth 0.

An agent whose tool leads to another agent may reach itself, directly or over another server. No agent sees that from
its own configuration, so each call says how deep it is, and a run that is too deep is refused:

    a request with the header            has that depth; above MAX_CALL_DEPTH, its runs are refused
    a request without it                 has depth 0
    a tool call of a run at depth n      says n + 1: in the header (HTTP and MCP), in `_meta` (MCP), in the client
                                         context (Lambda)
    a run that waits, is resumed, or     has the depth of the request that it comes from, which is stored with its
    that the worker runs                 caller (`Principal.call_depth`), and in the header of a turn

A server in between has to pass the header on. What it leaves out, it hides from Stint.
"""

from stint.domain.errors import CallTooDeep, InvalidRequest
from stint.domain.limits import MAX_CALL_DEPTH

DEPTH_HEADER = "Stint-Call-Depth"
DEPTH_KEY = "stint/call-depth"
"""The key of a request's `_meta` in MCP, and of its metadata in A2A."""

MOST = 999
"""The largest number that is read as a depth. A larger one is a mistake."""


def read_depth(value: object, where: str) -> int:
    """Read a depth: digits, or a number of JSON. `where` is the header or the field. Raises InvalidRequest."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MOST)):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST:
        return value
    message = (
        f"{where} must be one whole number from 0 to {MOST}: how many calls of agents have led to this request. Send "
        "the number of the call that your server answers, or leave it out."
    )
    raise InvalidRequest(message, code="invalid_call_depth", param=where)


def refuse_depth(depth: int) -> CallTooDeep:
    """Make the error for a run that is too deep."""
    return CallTooDeep(
        f"This run would be call {depth} in a row from one agent to the next: at most {MAX_CALL_DEPTH} are allowed. "
        "Probably an agent reaches itself by its tools, directly or over another server. Do not repeat the call: "
        "remove the tool that leads back to the agent."
    )
