"""The scripted model's reasoning, with a signature that detects changes."""

import hashlib
import re
from collections.abc import Iterable

from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, InferenceRequest, ModelChunk, ModelMessage, ReasoningChunk
from stint.models.scripted.directives import Directives

PIECE = re.compile(r"\S+\s*|\s+")
MARK = "scripted-"


def think(request: InferenceRequest, directives: Directives) -> list[ModelChunk]:
    """Yield the reasoning word by word, with the signature at the end; nothing if none is requested."""
    effort = request.reasoning.effort if request.reasoning is not None else None
    by_itself = "The user wants an answer, so I give one." if effort not in (None, "none") else ""
    text = directives.thinks if directives.thinks is not None else by_itself
    *pieces, last = PIECE.findall(text) or [""]
    return [*map(ReasoningChunk, pieces), ReasoningChunk(last, signature=sign(text))] if text else []


def sign(text: str) -> str:
    """Return the signature of a text."""
    return MARK + hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def check_thoughts(messages: Iterable[ModelMessage]) -> None:
    """Refuse reasoning that does not match its signature, as real providers do. Reasoning without one passes.

    Raises:
        InvalidRequest: the reasoning of an earlier answer was changed.
    """
    for message in messages:
        if not isinstance(message, AssistantAnswer) or message.reasoning is None:
            continue
        signature = message.reasoning.signature
        if signature.startswith(MARK) and signature != sign(message.reasoning.text):
            raise InvalidRequest("The reasoning of an earlier answer was changed. Send it back unchanged.")
