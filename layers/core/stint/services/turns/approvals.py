"""Approvals of calls in turns: tools of MCP servers that the server runs after its client has approved the call.

    the call                        its state in the log
    waits for approval              the ending of the pause has its id in `unapproved`
    is denied                       the record of the resume has the approval, and a step with a result that says so
    is approved                     the record of the resume has the approval. The call may have been sent from then on
    is answered                     its step follows

One record has the whole answer of a client, and is stored before anything of it has an effect. A process that dies
after that may have sent the approved calls. So its turn is not continued, but ends as interrupted, and a repeated
resume gets that.

The loop knows calls by their tools. Models repeat the ids of calls, so an approved call is known here by its object.
"""

from collections import Counter
from collections.abc import Sequence, Set

from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, ModelMessage
from stint.domain.limits import MAX_APPROVED_CALLS
from stint.domain.llama_stack.turns import ToolApproval
from stint.domain.steps import SafetyViolation
from stint.domain.tools import ToolCall, ToolResponse, write_denial
from stint.loop.plan import Plan
from stint.loop.screening import BoundShield, ToolShields
from stint.loop.toolbox import Toolbox
from stint.loop.transcript import Transcript
from stint.services.turns.tool_responses import describe_mismatch, shorten
from stint.shields.port import Shield, ShieldProvider, Touchpoint


@dataclass(frozen=True, slots=True)
class ApprovalToolbox(Toolbox):
    """Tools of which some wait for approval. They are the client's until it has `approved` the call.

    The arguments of an approved call were checked before it waited, and are not checked again.
    """

    approved: tuple[ToolCall, ...] = ()

    @classmethod
    def of(cls, toolbox: Toolbox) -> "ApprovalToolbox":
        return cls(**{name: getattr(toolbox, name) for name in Toolbox.__dataclass_fields__})

    def is_approved(self, call: ToolCall) -> bool:
        return any(call is each for each in self.approved)

    def is_run_by_client(self, call: ToolCall) -> bool:
        """Return whether a call is not to be run before the client has answered it."""
        waits = call.tool_name in self.approvals and not isinstance(call.arguments, str)
        return (waits and not self.is_approved(call)) or Toolbox.is_run_by_client(self, call)

    def shields_of(self, call: ToolCall) -> ToolShields:
        """Return the shields of a call that have not seen it."""
        shields = Toolbox.shields_of(self, call)
        return replace(shields, input=()) if self.is_approved(call) else shields


class HeldTranscript(Transcript):
    """The messages of a turn whose approved calls have no results yet. Until they have, these calls stay open.

    `approved` has the calls' ids.
    """

    def __init__(self, transcript: Transcript, approved: Set[str]) -> None:
        super().__init__()
        for name, value in vars(transcript).items():
            setattr(self, name, value)
        self.held = [call for call_id, call in self.open.items() if call_id in approved]

    def close(self) -> None:
        """Answer every open call that does not run."""
        held = {call_id: call for call_id, call in self.open.items() if any(call is each for each in self.held)}
        self.open = {call_id: call for call_id, call in self.open.items() if call_id not in held}
        super().close()
        self.open |= held


@dataclass(slots=True)
class NewMessageShield:
    """A shield that checks what the client has sent, and passes a conversation that ends with the model's answer."""

    provider: ShieldProvider
    asks_model: bool

    def validate(self, shield: Shield) -> None:
        self.provider.validate(shield)

    async def check(
        self, shield: Shield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
    ) -> SafetyViolation | None:
        """Check the last messages; see the port."""
        if isinstance(messages[-1], AssistantAnswer):
            return None
        return await self.provider.check(shield, messages, touchpoint)


def approve_calls(plan: Plan, calls: Sequence[ToolCall]) -> Plan:
    """Return the plan of a run that begins with approved calls, before which the client may have said nothing."""
    toolbox = replace(ApprovalToolbox.of(plan.toolbox), approved=tuple(calls))
    shields = tuple(
        BoundShield(each.shield, NewMessageShield(each.provider, each.provider.asks_model))
        for each in plan.input_shields
    )
    return replace(plan, toolbox=toolbox, input_shields=shields)


def match_approvals(calls: Sequence[ToolCall], approvals: Sequence[ToolApproval]) -> dict[str, ToolApproval]:
    """Return the answers to the calls that wait for approval, by the calls' ids.

    Raises:
        InvalidRequest: ids are missing, unknown or repeated, or too many calls are approved. The message names them.
    """
    wanted = {call.call_id: call for call in calls}
    if problems := describe_mismatch(wanted, Counter(each.call_id for each in approvals)):
        raise InvalidRequest(
            f"Send exactly one of the approvals for each call that waits for approval, and no others. {problems}. "
            f"The turn waits for the approval of: {shorten(list(wanted)) or 'no call'}.",
            code="approvals_mismatch",
            param="approvals",
        )
    if (count := sum(each.approve for each in approvals)) > MAX_APPROVED_CALLS:
        raise InvalidRequest(
            f"At most {MAX_APPROVED_CALLS} approved calls are allowed, not {count:,}. Deny the others.",
            code="too_many_approvals",
            param="approvals",
        )
    by_id = {each.call_id: each for each in approvals}
    return {call_id: by_id[call_id] for call_id in wanted}


def deny(call: ToolCall, approval: ToolApproval) -> ToolResponse:
    """Return the result of a call that the client has denied."""
    said, metadata = write_denial(approval.reason), {"error": True}
    return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=said, metadata=metadata)
