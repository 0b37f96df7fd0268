"""Redaction of the caller's credentials in a model's chunks."""

from collections.abc import Iterator

from stint.dataclasses import replace
from stint.domain.inference import Finished, ModelChunk, ReasoningChunk, RefusalChunk, TextChunk
from stint.domain.redaction import Redactor, StreamRedactor

Written = TextChunk | RefusalChunk | ReasoningChunk


class ChunkRedactor:
    """Redacts a model's text, refusal and reasoning. Calls are unchanged. Log probabilities are omitted, because their
    tokens are the text.

    Changed reasoning loses its signature, which would no longer be valid. Late signatures refer to places in the whole
    answer, so they leave at its end, and only if nothing was changed.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._stream = StreamRedactor(redactor)
        self._kind: type[Written] | None = None
        self._changed = self._found = False
        self._late: list[ReasoningChunk] = []

    def redact_chunk(self, chunk: ModelChunk) -> Iterator[ModelChunk]:
        """Yield the chunks that can leave after a chunk."""
        if isinstance(chunk, ReasoningChunk) and chunk.late:
            self._late.append(chunk)
            return
        if not isinstance(chunk, Written):
            yield from self.flush()
            if isinstance(chunk, Finished) and not self._found:
                yield from self._late
            yield chunk
            return
        if type(chunk) is not self._kind:
            yield from self.flush()
            self._kind = type(chunk)
        text = self._stream.feed(chunk.text)
        self._changed = self._changed or self._stream.found
        self._found = self._found or self._changed
        if isinstance(chunk, ReasoningChunk) and (chunk.signature or chunk.redacted):
            text += self._stream.flush()
            yield replace(chunk, text=text, signature="" if self._changed else chunk.signature)
        elif text:
            yield TextChunk(text) if isinstance(chunk, TextChunk) else replace(chunk, text=text)

    def flush(self) -> Iterator[ModelChunk]:
        """Yield the buffered rest."""
        rest = self._stream.flush()
        if rest and self._kind is not None:
            yield self._kind(text=rest)
        self._kind, self._changed = None, False
