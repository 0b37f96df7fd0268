"""The dimensions of known embedding models, and the name of Llama Stack's."""

import re

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest

MINILM = "all-MiniLM-L6-v2"
"""The embedding model that Llama Stack's clients, examples and tests name."""

MINILM_DIMENSION = 384
HASHED = re.compile(r"words-([1-9]\d{0,3})")
LARGEST_DIMENSION = 4096
LOCAL = {"wordllama-256": (256, 128, 64)}
"""The dimensions of local models; the default is the first."""
OPENAI = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


def minilm_model(default_model: str) -> str:
    """Return the embedding model that MiniLM stands for: the default one, or the `hashed/` one with its dimension."""
    return f"hashed/words-{MINILM_DIMENSION}" if default_model.startswith("hashed/") else default_model


@dataclass(frozen=True, slots=True)
class BedrockFamily:
    """Models of Bedrock with one form of requests.

    `dimensions` are those that can be requested; the default is the first. `texts` is the maximum of a call, and
    `characters` that of a text, where the service states one.
    """

    pattern: re.Pattern[str]
    dimensions: tuple[int, ...]
    texts: int = 1
    characters: int | None = None
    takes_dimensions: bool = True


BEDROCK = (
    BedrockFamily(re.compile(r"amazon\.titan-embed-text-v2"), (1024, 512, 256), characters=50_000),
    BedrockFamily(re.compile(r"amazon\.titan-embed-(?:g1-)?text-(?:v1|0\d)"), (1536,), takes_dimensions=False),
    BedrockFamily(re.compile(r"cohere\.embed-v4"), (1536, 1024, 512, 256), texts=96),
    BedrockFamily(re.compile(r"cohere\.embed-\w+-v3"), (1024,), texts=96, characters=2048, takes_dimensions=False),
)


def hashed_dimension(model_id: str) -> int:
    """Return the dimension in the id of a model of hashed words. Raises InvalidRequest for another id."""
    match = HASHED.fullmatch(model_id)
    if match is None or int(match[1]) > LARGEST_DIMENSION:
        raise InvalidRequest(
            f"Embedding model 'hashed/{model_id}' does not exist. Write hashed/words-N, where N is the dimension, "
            f"1 to {LARGEST_DIMENSION}.",
            code="model_not_found",
            param="model",
        )
    return int(match[1])


def bedrock_family(model_id: str) -> BedrockFamily:
    """Return the family of a model or inference profile. Raises InvalidRequest if it is not one of Titan or Cohere."""
    for family in BEDROCK:
        if family.pattern.search(model_id):
            return family
    raise InvalidRequest(
        f"Embedding model 'bedrock/{model_id}' is not supported. Use one of amazon.titan-embed-text or cohere.embed.",
        code="model_not_found",
        param="model",
    )


def known_dimension(kind: str, model_id: str) -> int | None:
    """Return the dimension of a model of a kind of provider; None if only its provider knows it."""
    try:
        match kind:
            case "hashed":
                return hashed_dimension(model_id)
            case "local":
                return LOCAL[model_id][0] if model_id in LOCAL else None
            case "bedrock":
                return bedrock_family(model_id).dimensions[0]
            case _:
                return OPENAI.get(model_id)
    except InvalidRequest:
        return None
