"""What the scripted model thinks before it answers, signed so that a change of it shows."""

import hashlib
import re
from collections.abc import Iterable

from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, InferenceRequest, ModelChunk, ModelMessage, ReasoningChunk
from stint.models.scripted.directives import Directives

PIECE = re.compile(r"\S+\s*|\s+")
MARK = "scripted-"


def think(request: InferenceRequest, directives: Directives) -> list[ModelChunk]:
    """Give the reasoning word by word, the signature with the last one; nothing when none is asked for."""
    effort = request.reasoning.effort if request.reasoning is not None else None
    by_itself = "The user wants an answer, so I give one." if effort not in (None, "none") else ""
    text = directives.thinks if directives.thinks is not None else by_itself
    *pieces, last = PIECE.findall(text) or [""]
    return [*map(ReasoningChunk, pieces), ReasoningChunk(last, signature=sign(text))] if text else []


def sign(text: str) -> str:
    """Make the signature of a text."""
    return MARK + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def check_thoughts(messages: Iterable[ModelMessage]) -> None:
    """Refuse thoughts that do not fit their signature, as the providers that sign theirs do; others are let through.

    Raises:
        InvalidRequest: the reasoning of an earlier answer was changed.
    """
    for message in messages:
        if not isinstance(message, AssistantAnswer) or message.reasoning is None:
            continue
        signature = message.reasoning.signature
        if signature.startswith(MARK) and signature != sign(message.reasoning.text):
            raise InvalidRequest("The reasoning of an earlier answer was changed: send it back as it came.")
