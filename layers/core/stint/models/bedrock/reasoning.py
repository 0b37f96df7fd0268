"""Reasoning in Converse: each family's parameters, and the reasoning of earlier answers.

Claude signs each block of its reasoning, and refuses calls without the blocks before them. Stint has one text for each
answer, so `ReasoningReader` joins the blocks, and keeps their places in the signature, and `write_reasoning` cuts them.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest, Reasoning, ReasoningChunk, ReasoningOptions
from stint.domain.tools import ToolChoice

Block = dict[str, Any]

EFFORT = "reasoning.effort"
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 24576}
"""Budgets of reasoning tokens of Claude's earlier models; 1024 is their minimum."""
LEAST_BUDGET = 1024
# "Extended thinking" and "Adaptive thinking", Amazon Bedrock User Guide.
UNTHINKING = re.compile(r"claude-(?:v\d|instant|3-(?!7))")
BUDGETED = re.compile(r"claude-(?:3-7|(?:opus|sonnet|haiku)-4-(?:[015]-)?\d{8})")
UNASKED = re.compile(r"claude-(?:opus|sonnet|haiku)-4-[678](?!\d)")
"""Claude's models with adaptive thinking that reason only on request."""
ALWAYS = re.compile(r"claude-(?:fable|mythos)")


def will_reason(request: InferenceRequest) -> bool:
    """Return whether a Claude or Nova model will reason, so that the request may contain its earlier reasoning."""
    effort = effort_of(request)
    if "anthropic." in request.model and effort is None:
        return not any(family.search(request.model) for family in (UNTHINKING, BUDGETED, UNASKED))
    return effort not in (None, "none") and ("anthropic." in request.model or "amazon.nova" in request.model)


def effort_of(request: InferenceRequest) -> str | None:
    """Return the requested effort. Raises InvalidRequest if it does not exist."""
    effort = (request.reasoning or ReasoningOptions()).effort
    if effort is not None and effort not in EFFORTS:
        raise InvalidRequest(f"reasoning.effort must be one of {', '.join(EFFORTS)}, not {effort!r}.", param=EFFORT)
    return effort


def write_effort(request: InferenceRequest) -> tuple[Block, str | None]:
    """Return the model's own fields for an effort, and the effort for Converse's output configuration.

    Claude's earlier models have a budget of tokens; its later ones have efforts, and a summary on request. Nova has
    three efforts. gpt-oss takes the effort by its name.

    Raises:
        InvalidRequest: the model lacks the effort, or cannot combine it with the request's other parameters.
    """
    effort = effort_of(request)
    model = request.model
    if effort is None:
        return {}, None
    if "anthropic." in model:
        return _claude_fields(request, effort)
    if effort == "none":
        return {}, None
    if "amazon.nova-2" in model:
        known = {"minimal": "low", "xhigh": "high", "max": "high"}.get(effort, effort)
        return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": known}}, None
    if "openai.gpt" in model:
        return {"reasoning_effort": effort}, None
    raise InvalidRequest(
        f"Bedrock's Converse has no reasoning effort for model {model!r}. Remove the effort.", param=EFFORT
    )


def _claude_fields(request: InferenceRequest, effort: str) -> tuple[Block, str | None]:
    model = request.model
    if effort == "none":
        if ALWAYS.search(model):
            raise InvalidRequest(f"Model {model!r} always reasons. Set the effort to low.", param=EFFORT)
        by_itself = not any(family.search(model) for family in (UNTHINKING, BUDGETED, UNASKED))
        return ({"thinking": {"type": "disabled"}} if by_itself else {}), None
    if UNTHINKING.search(model):
        raise InvalidRequest(f"Model {model!r} does not reason. Remove the effort.", param=EFFORT)
    _refuse_beside_thinking(request)
    if BUDGETED.search(model):
        return {"thinking": {"type": "enabled", "budget_tokens": _budget(request, effort)}}, None
    thinking = {"type": "adaptive"}
    if request.reasoning is not None and request.reasoning.summary:
        thinking["display"] = "summarized"
    return {"thinking": thinking}, "low" if effort == "minimal" else effort


def _refuse_beside_thinking(request: InferenceRequest) -> None:
    """Refuse parameters that Claude lacks while it reasons ("Extended thinking", Amazon Bedrock User Guide)."""
    decoding = request.decoding
    if decoding.temperature not in (None, 1.0):
        raise InvalidRequest(
            "Claude accepts no temperature while it reasons. Remove temperature or the effort.", param="temperature"
        )
    if decoding.top_k is not None:
        raise InvalidRequest(
            "Claude accepts no top_k while it reasons. Remove top_k or the effort.", param="sampling_params"
        )
    if request.tools and request.tool_choice not in (ToolChoice.auto, ToolChoice.none):
        raise InvalidRequest(
            "Claude cannot be forced to call a tool while it reasons. Remove tool_choice or the effort.",
            param="tool_choice",
        )


def _budget(request: InferenceRequest, effort: str) -> int:
    """Return the budget of reasoning tokens: at most half of the answer's tokens, which include them."""
    longest = request.decoding.max_tokens
    if longest is None:
        return BUDGETS[effort]
    if longest <= LEAST_BUDGET:
        raise InvalidRequest(
            f"Claude reasons with at least {LEAST_BUDGET} tokens, but its answer may have {longest}. Raise the limit "
            "or remove the effort.",
            param=EFFORT,
        )
    return max(min(BUDGETS[effort], longest // 2), LEAST_BUDGET)


class ReasoningReader:
    """Reads the reasoning blocks of one answer into chunks that can be joined and split again.

    All signatures but the first begin with the position of their text in the joined text, as `\\n{place}:`. All
    redacted blocks but the first begin with a line break.
    """

    def __init__(self) -> None:
        self._starts: dict[int, int] = {}
        self._length = 0
        self._signed: set[int] = set()
        self._redacted = False

    def read(self, block: int, delta: Block) -> ReasoningChunk:
        """Read one delta of a block."""
        text, signature = str(delta.get("text") or ""), str(delta.get("signature") or "")
        start = self._starts.setdefault(block, self._length)
        self._length += len(text)
        if signature and block not in self._signed:
            signature = f"\n{start}:{signature}" if self._signed else signature
            self._signed.add(block)
        return ReasoningChunk(text, signature, self._encode(delta.get("redactedContent") or b""))

    def _encode(self, content: bytes) -> str:
        if not content:
            return ""
        encoded = base64.b64encode(content).decode()
        encoded, self._redacted = f"\n{encoded}" if self._redacted else encoded, True
        return encoded


def write_reasoning(reasoning: Reasoning | None) -> list[Block]:
    """Write the reasoning of an answer unchanged. Claude refuses an answer with calls without it.

    Reasoning of another provider is omitted. It has no signature, or that of reasoning items (see
    `stint.models.openai_responses.reasoning`), which is JSON.
    """
    if reasoning is None or "{" in reasoning.signature:
        return []
    blocks: list[Block] = [
        {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}
        for text, signature in _signed_texts(reasoning)
    ]
    for encoded in reasoning.redacted.split():
        try:
            blocks.append({"reasoningContent": {"redactedContent": base64.b64decode(encoded, validate=True)}})
        except binascii.Error as error:
            raise InvalidRequest("The reasoning of an earlier answer was changed. Send it back unchanged.") from error
    return blocks


def _signed_texts(reasoning: Reasoning) -> Iterator[tuple[str, str]]:
    """Split the joined texts; see `ReasoningReader`."""
    if not reasoning.signature:
        return
    first, *others = reasoning.signature.split("\n")
    marked = [other.partition(":") for other in others]
    signatures = [first, *(signature for _, _, signature in marked)]
    starts = [0, *(int(place) if place.isdecimal() else 0 for place, _, _ in marked)]
    for start, end, signature in zip(starts, [*starts[1:], len(reasoning.text)], signatures, strict=True):
        yield reasoning.text[start:end], signature
