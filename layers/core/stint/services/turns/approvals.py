"""Approvals of calls in turns: tools that the server runs after its client has approved the call.

    the call                        its state in the log
    waits for approval              the ending of the pause has its id in `unapproved`
    is denied                       the record of the resume has the approval, and a step with a result that says so
    is approved                     the record of the resume has the approval. The call may have been sent from then on
    is answered                     its step follows
    asks its client                 its step has no result, and the ending of the pause has the question and its id in
                                    `asked_inputs`. It goes on as an approved call, with the client's answer

One record has the whole answer of a client, and is stored before anything of it has an effect. A process that dies
after that may have sent the approved calls. So its turn is not continued, but ends as interrupted, and a repeated
resume gets that.

The loop knows calls by their tools. Models repeat the ids of calls, so an approved call is known here by its object.

Between the pause and the resume, anyone may change the agent or a registration. A call that was approved as one tool
must not run as another, or with other args, so the record of the pause has a fingerprint of each tool that asked. If it
differs, the call does not run, and its result says so (docs/decisions.md, entry 153).
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from hashlib import sha256
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.domain.elicitations import AnsweredInput, answer_forms, continue_call, refuse_input
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, ModelMessage
from stint.domain.limits import MAX_APPROVED_CALLS
from stint.domain.llama_stack.turns import ToolApproval
from stint.domain.steps import SafetyViolation
from stint.domain.tools import AskedInput, ElicitedForm, ToolCall, ToolResponse, write_denial
from stint.loop.plan import Plan
from stint.loop.screening import BoundShield, ToolShields
from stint.loop.toolbox import ServerTool, Toolbox
from stint.loop.transcript import Transcript
from stint.services.registry.tool_approvals import names_of
from stint.services.turns.tool_responses import describe_mismatch, shorten
from stint.shields.port import Shield, ShieldProvider, Touchpoint
from stint.tools.masking import mask, mask_url

CHANGED = (
    "The user approved this call, but its tool was changed or removed meanwhile, so it did not run. Call it again."
)
NOT_OF_CALLS = frozenset({"require_approval", "allowed_tools", "timeout", "timeouts"})
"""What the args of a toolgroup may say besides what its calls do."""


@dataclass(frozen=True, slots=True)
class ApprovalToolbox(Toolbox):
    """Tools of which some wait for approval. They are the client's until it has `approved` the call.

    The arguments of an approved call were checked before it waited, and are not checked again.
    """

    approved: tuple[ToolCall, ...] = ()
    inputs: tuple[tuple[ToolCall, AnsweredInput], ...] = ()

    @classmethod
    def of(cls, toolbox: Toolbox) -> "ApprovalToolbox":
        return cls(**{name: getattr(toolbox, name) for name in Toolbox.__dataclass_fields__})

    def is_approved(self, call: ToolCall) -> bool:
        return any(call is each for each in self.approved)

    def find_answered(self, call: ToolCall) -> AnsweredInput | None:
        """Return the client's answers to what a call has asked; None if it has asked nothing."""
        return next((answered for each, answered in self.inputs if each is call), None)

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


def approve_calls(plan: Plan, calls: Sequence[ToolCall], inputs: Sequence[tuple[ToolCall, AnsweredInput]] = ()) -> Plan:
    """Return the plan of a run that begins with approved calls, before which the client may have said nothing."""
    toolbox = replace(ApprovalToolbox.of(plan.toolbox), approved=tuple(calls), inputs=tuple(inputs))
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


def answer_questions(
    asked: Mapping[str, AskedInput], calls: Sequence[ToolCall], decided: Mapping[str, ToolApproval]
) -> list[tuple[ToolCall, AnsweredInput]]:
    """Return the calls that have asked, with the client's answers: also a refusal, which their servers get, too.

    Raises InvalidRequest if an answer does not fit, or a call has one that has asked nothing.
    """
    for call_id, approval in decided.items():
        check_input(asked[call_id].forms if call_id in asked else None, approval)
    answered = []
    for call in calls:
        if (question := asked.get(call.call_id)) is not None and call.call_id in decided:
            approval = decided[call.call_id]
            answered.append((call, continue_call(question, approval.input, accept=approval.approve)))
    return answered


def check_input(forms: Mapping[str, ElicitedForm] | None, approval: ToolApproval) -> None:
    """Check the input of an approval. `forms` are None if its call has asked nothing. Raises InvalidRequest."""
    if forms is not None:
        answer_forms(forms, approval.input, accept=approval.approve)
    elif approval.input is not None:
        raise refuse_input(f"the call {approval.call_id[:100]!r} has asked for none, so its approval has no input")


def fingerprint_tools(toolbox: Toolbox, names: Set[str]) -> dict[str, str]:
    """Return the fingerprints of tools by their names: of what runs their calls, without credentials and limits."""
    return {name: fingerprint(tool) for name in sorted(names) if (tool := toolbox.server.get(name)) is not None}


def show_args(toolbox: Toolbox, names: Set[str]) -> dict[str, dict[str, Any]] | None:
    """Return the args of tools, which replace arguments of the model, for whoever approves. Credentials are masked."""
    tools = {name: tool for name in sorted(names) if (tool := toolbox.server.get(name)) is not None and tool.args}
    return {name: mask(dict(tool.args)) for name, tool in tools.items()} or None


def fingerprint(tool: ServerTool) -> str:
    """Return a hash of what decides about the effect of a tool's call, besides the model's arguments."""
    group = tool.toolgroup
    config = {name: value for name, value in group.config.items() if name not in NOT_OF_CALLS}
    named = [each for each in config.pop("tools", ()) if isinstance(each, dict) and each.get("name") in names_of(tool)]
    endpoint = mask_url(group.mcp_endpoint, endpoint=True) if group.mcp_endpoint else None
    parts = [group.toolgroup_id, group.provider_id, endpoint, *names_of(tool), mask([config, named, dict(tool.args)])]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def find_changed(calls: Sequence[ToolCall], asked: Mapping[str, str], toolbox: Toolbox) -> list[ToolCall]:
    """Return the calls whose tools are no longer those that asked for approval."""
    names = {call.tool_name for call in calls} & asked.keys()
    known = fingerprint_tools(toolbox, names)
    return [call for call in calls if call.tool_name in names and known.get(call.tool_name) != asked[call.tool_name]]


def refuse_changed(call: ToolCall) -> ToolResponse:
    return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=CHANGED, metadata={"error": True})


def deny(call: ToolCall, approval: ToolApproval) -> ToolResponse:
    """Return the result of a call that the client has denied."""
    said, metadata = write_denial(approval.reason), {"error": True}
    return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=said, metadata=metadata)
