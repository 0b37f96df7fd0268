"""The tools of a run: the client's, the server's, and the results of calls.

A call's name is resolved once, when the answer is read, because a model may use another name of a built-in tool. All
that follows (who runs the call, approval, shields, limits) is decided by the resolved name. Before a provider sees a
call of the server's, its arguments are checked: the model may set those that the tool declares, the agent all others.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from traceback import format_tb
from typing import TYPE_CHECKING, Any

from stint.dataclasses import dataclass, field
from stint.domain.content import Content
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.inference import ToolSignature
from stint.domain.limits import MAX_SERVER_TOOLS
from stint.domain.tools import GENERATED_IMAGE, AskedInput, ToolCall, ToolResponse
from stint.loop.result_budget import SPENT, ResultBudget
from stint.loop.screening import BoundShield, ToolShields, merge_shields
from stint.loop.tool_timeout import run_with_grace
from stint.tools.outcomes import failure, head_of, size_of, too_large
from stint.tools.port import (
    ATTACHMENTS,
    CallerSession,
    Invocation,
    Toolgroup,
    ToolOutcome,
    ToolProvider,
)

if TYPE_CHECKING:  # few runs call a tool that has a schema to check, or asks
    from stint.domain.elicitations import AnsweredInput
    from stint.json_schema.document import SchemaDocument

logger = logging.getLogger(__name__)

NO_SHIELDS = ToolShields()

STRUCTURED = 4
"""Factor for the bytes of a structured result, which take that many times the CPU time of a text's."""

StoreResult = Callable[[Content], Awaitable[str]]
"""A function that stores a result that is too long for the model, and returns its key in the blob store."""

Inspect = Callable[[ToolOutcome], Awaitable[ToolOutcome]]
"""A function that returns an outcome, or another one in its place if a shield blocks it."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that the server runs. `args` come from the agent or the turn, and override the model's arguments.

    `alias` is another name by which models call it.
    """

    signature: ToolSignature
    toolgroup: Toolgroup
    provider: ToolProvider
    args: Mapping[str, Any] = field(default_factory=dict)
    alias: str | None = None


class InputAsked(Exception):
    """A call is not finished: the server of its tool asks the client."""

    def __init__(self, asked: AskedInput) -> None:
        super().__init__("The server of a tool asks the client.")
        self.asked = asked


def refuse_too_many(tools: Collection[object], param: str, advice: str) -> None:
    """Raise InvalidRequest if servers list more tools than the limit."""
    if len(tools) > MAX_SERVER_TOOLS:
        message = f"The servers list {len(tools)} tools; at most {MAX_SERVER_TOOLS} can be sent to a model. {advice}"
        raise InvalidRequest(message, code="too_many_tools", param=param)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """All tools of a run by name. Calls have these names: an alias is replaced when an answer is read."""

    client: Mapping[str, ToolSignature] = field(default_factory=dict)
    """The tools that the client runs."""
    server: Mapping[str, ServerTool] = field(default_factory=dict)
    """The tools that the server runs."""
    provider_data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The caller's keys for tools."""
    result_bytes: int = 256_000
    """Maximum bytes of a result that a model gets. The whole result is stored as a blob."""
    approvals: frozenset[str] = frozenset()
    """The tools that the server runs only after the client has approved the call."""
    session: CallerSession | None = None
    """The session of a turn; None elsewhere."""
    shields: Mapping[str, ToolShields] = field(default_factory=dict)
    """The shields of tools by their names."""
    documents: dict[str, "SchemaDocument | None"] = field(default_factory=dict, repr=False, compare=False)
    """The schemas that arguments were checked against, by the tools' names."""

    @property
    def signatures(self) -> tuple[ToolSignature, ...]:
        """Return the schemas for the model, with the client's tools first, as in Llama Stack."""
        return (*self.client.values(), *(tool.signature for tool in self.server.values()))

    def is_for_client(self, call: ToolCall) -> bool:
        """Return whether the client runs or approves a call. Calls of unknown tools are answered here."""
        approved = call.tool_name in self.approvals and not isinstance(call.arguments, str)
        return approved or self.is_run_by_client(call)

    def is_run_by_client(self, call: ToolCall) -> bool:
        """Return whether a call is of one of the client's tools."""
        return call.tool_name in self.client and not isinstance(call.arguments, str)

    def is_repeatable(self, call: ToolCall) -> bool:
        """Return whether a call may be sent again, because a second one changes nothing, or no tool runs."""
        tool = self.find_tool(call)
        return tool is None or isinstance(call.arguments, str) or tool.signature.repeatable

    def find_tool(self, call: ToolCall) -> ServerTool | None:
        return self.server.get(call.tool_name)

    @property
    def aliases(self) -> dict[str, str]:
        """Return the names of tools by their aliases. A tool that has the alias as its name comes first."""
        named = ((tool.alias, name) for name, tool in self.server.items())
        return {alias: name for alias, name in named if alias and not (alias in self.server or alias in self.client)}

    def name_of(self, name: str) -> str:
        """Return the name of a tool in this toolbox, given its name or its alias."""
        return self.aliases.get(name, name)

    def shields_of(self, call: ToolCall) -> ToolShields:
        """Return the shields of a call. One whose arguments are no object has none, because no tool runs."""
        named = not isinstance(call.arguments, str) and self.shields.get(call.tool_name)
        return named or NO_SHIELDS

    def shields_of_result(self, name: str) -> tuple[BoundShield, ...]:
        """Return the shields of a result that the client sent. Those of all tools check a tool that is not known."""
        name = self.name_of(name)
        if name in self.client or name in self.server or name in self.shields:
            return self.shields.get(name, NO_SHIELDS).output
        return merge_shields(*(each.output for each in self.shields.values()))

    async def respond(
        self,
        call: ToolCall,
        key: str,
        store_result: StoreResult,
        budget: ResultBudget | None = None,
        inspect: Inspect | None = None,
    ) -> ToolResponse:
        """Return the result of a call. Every failure becomes a result for the model, so that it can continue.

        `key` is unique to the call, see `Invocation`. The call does not run if the `budget` is used up. `inspect` sees
        the outcome before anything of it is stored. Raises InputAsked if the call is not finished.
        """
        budget = budget or ResultBudget()
        outcome = failure(SPENT) if budget.spent else await self.invoke(call, key)
        # Counted before the shields see it: a blocked result has cost its time and memory all the same.
        structured = len(json.dumps(outcome.metadata.get("structured_content")))
        attached = attached_bytes(outcome.metadata)
        budget.count(size_of(outcome.content) + STRUCTURED * structured + attached + outcome.refused)
        if inspect is not None:
            outcome = await inspect(outcome)
        if outcome.asks is not None:
            raise InputAsked(outcome.asks)
        content, metadata = outcome.content, {**outcome.metadata}
        if structured > self.result_bytes:
            metadata.pop("structured_content", None)  # the content is its text form, which is stored whole
        head = content if GENERATED_IMAGE in metadata else head_of(content, self.result_bytes)
        if head is not content:
            metadata["full_result"] = await store_result(content)
        if outcome.error:
            metadata["error"] = True
        return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=head, metadata=metadata or None)

    async def invoke(self, call: ToolCall, key: str) -> ToolOutcome:
        tool = self.find_tool(call)
        if isinstance(call.arguments, str) and (tool is not None or call.tool_name in self.client):
            return failure("The arguments of this call are not a JSON object, so the tool did not run. Call it again.")
        if tool is None or isinstance(call.arguments, str):
            names = ", ".join(signature.name for signature in self.signatures) or "none"
            return failure(f"There is no tool named {call.tool_name!r}. The tools are: {names}.")
        from stint.loop.argument_schemas import refuse_mismatches  # noqa: PLC0415
        from stint.loop.undeclared_arguments import find_undeclared, note_undeclared, refuse_undeclared  # noqa: PLC0415

        given, provider_id = call.arguments, tool.toolgroup.provider_id
        undeclared = find_undeclared(tool.signature, provider_id, [name for name in given if name not in tool.args])
        if refused := refuse_undeclared(tool.signature, provider_id, undeclared):
            return failure(refused)
        declared = {name: value for name, value in given.items() if name not in undeclared}
        # The agent's args come last, so that a model cannot override them.
        arguments = {**declared, **tool.args}
        if refused := refuse_mismatches(tool.signature, provider_id, arguments, tool.args, documents=self.documents):
            return failure(refused)
        outcome = await self.run_tool(tool, call, arguments, key)
        return note_undeclared(outcome, tool.signature, undeclared) if undeclared else outcome

    def find_answered(self, _call: ToolCall) -> "AnsweredInput | None":
        """Return the client's answers to what a call has asked; None if it has asked nothing."""
        return None

    async def run_tool(self, tool: ServerTool, call: ToolCall, arguments: dict[str, Any], key: str) -> ToolOutcome:
        """Run a tool. Every failure becomes an outcome."""
        data, fixed = dict(self.provider_data), frozenset(tool.args)
        name, answered = tool.signature.name, self.find_answered(call)
        invocation = Invocation(name, arguments, call.call_id, data, key, fixed, self.session, answered)
        extra = {"toolgroup_id": tool.toolgroup.toolgroup_id, "tool_name": tool.signature.name}
        try:
            return await run_with_grace(tool.provider.invoke(tool.toolgroup, invocation), extra)
        except StintError as error:
            return too_large(error.message) if error.code == "url_too_large" else failure(error.message)
        except Exception as error:  # noqa: BLE001 - returned to the model; its message may contain a caller's key
            where = "".join(format_tb(error.__traceback__))
            logger.error("A tool failed unexpectedly", extra=extra | {"fault": type(error).__name__, "where": where})
            return failure("The tool failed unexpectedly.")


def attached_bytes(metadata: Mapping[str, Any]) -> int:
    """Return the stored size of the files that a tool made for the user."""
    return len(json.dumps(metadata.get(ATTACHMENTS)))
