"""A model's text without the caller's credentials, wherever its pieces break."""

from collections.abc import Iterator
from dataclasses import replace

from stint.domain.inference import ModelChunk, ReasoningChunk, RefusalChunk, TextChunk
from stint.domain.redaction import Redactor, StreamRedactor

Written = TextChunk | RefusalChunk | ReasoningChunk


class ChunkRedactor:
    """Redacts what a model writes: its text, its refusal, its reasoning. Its calls stay as they are.

    Reasoning that was changed loses its signature, which would not fit it any more.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._stream = StreamRedactor(redactor)
        self._kind: type[Written] | None = None
        self._changed = False

    def take(self, chunk: ModelChunk) -> Iterator[ModelChunk]:
        """Yield what can leave when a chunk has come."""
        if not isinstance(chunk, Written):
            yield from self.flush()
            yield chunk
            return
        if type(chunk) is not self._kind:
            yield from self.flush()
            self._kind = type(chunk)
        text = self._stream.feed(chunk.text)
        if isinstance(chunk, ReasoningChunk):
            self._changed = self._changed or self._stream.found
            if chunk.signature or chunk.redacted:
                text += self._stream.flush()
                yield replace(chunk, text=text, signature="" if self._changed else chunk.signature)
                return
        if text:
            yield replace(chunk, text=text)

    def flush(self) -> Iterator[ModelChunk]:
        """Yield what was held back."""
        rest = self._stream.flush()
        if rest and self._kind is not None:
            yield self._kind(text=rest)
        self._kind, self._changed = None, False
