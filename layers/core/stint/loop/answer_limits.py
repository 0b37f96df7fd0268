"""The answer of a model in the form, and within the limits, in which it can be stored.

All readers of answers get the chunks from here, so that whatever is kept of an answer can be read again.
"""

from stint.dataclasses import dataclass, field
from stint.domain.errors import ModelError
from stint.domain.inference import ModelChunk, ToolCallChunk
from stint.domain.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARACTERS
from stint.models.port import characters_of, storable_chunk


@dataclass(slots=True)
class AnswerLimits:
    """The size of an answer so far."""

    characters: int = 0
    calls: set[int] = field(default_factory=set)

    def admit(self, chunk: ModelChunk) -> ModelChunk:
        """Count a chunk, and return it in a storable form. Raises ModelError if the answer is too large."""
        self.characters += characters_of(chunk)
        if self.characters > MAX_ANSWER_CHARACTERS:
            raise ModelError(
                f"The model's answer has more than {MAX_ANSWER_CHARACTERS:,} characters, the maximum. Limit its tokens."
            )
        if isinstance(chunk, ToolCallChunk):
            self.calls.add(chunk.index)
            if len(self.calls) > MAX_ANSWER_CALLS:
                raise ModelError(f"The model's answer has more than {MAX_ANSWER_CALLS:,} tool calls, the maximum.")
        return storable_chunk(chunk)
