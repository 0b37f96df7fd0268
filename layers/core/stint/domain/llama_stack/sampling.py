"""Llama Stack's sampling parameters."""

from typing import Annotated, Literal

from pydantic import Field

from stint.dataclasses import replace
from stint.domain.inference import Decoding
from stint.domain.schema import Request


class GreedySamplingStrategy(Request):
    type: Literal["greedy"] = "greedy"


class TopPSamplingStrategy(Request):
    type: Literal["top_p"] = "top_p"
    temperature: Annotated[float, Field(gt=0)] | None
    top_p: float | None = 0.95


class TopKSamplingStrategy(Request):
    type: Literal["top_k"] = "top_k"
    top_k: int = Field(ge=1)


SamplingStrategy = Annotated[
    GreedySamplingStrategy | TopPSamplingStrategy | TopKSamplingStrategy, Field(discriminator="type")
]


class SamplingParams(Request):
    """Llama Stack's sampling parameters. `max_tokens` 0 or null leaves the length to the provider."""

    strategy: SamplingStrategy = Field(default_factory=GreedySamplingStrategy)
    max_tokens: Annotated[int, Field(ge=0)] | None = 0
    repetition_penalty: float = 1.0
    stop: list[str] | None = None

    def to_decoding(self) -> Decoding:
        """Return the parameters of a model call. Greedy is temperature 0; values without effect are omitted."""
        decoding = Decoding(
            max_tokens=self.max_tokens or None,
            repetition_penalty=None if self.repetition_penalty == 1.0 else self.repetition_penalty,
            stop=tuple(self.stop) if self.stop else None,
        )
        match self.strategy:
            case GreedySamplingStrategy():
                return replace(decoding, temperature=0.0)
            case TopPSamplingStrategy(temperature=temperature, top_p=top_p):
                return replace(decoding, temperature=temperature, top_p=top_p)
            case TopKSamplingStrategy(top_k=top_k):
                return replace(decoding, top_k=top_k)
