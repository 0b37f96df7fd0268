"""Embeddings of a small model whose weights are inside the package wordllama: offline, in this process.

It needs no key, network or server. Loading takes a while, so the files are read by the first call, in a thread, and a
lock keeps concurrent calls from reading them twice.
"""

import asyncio
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stint.domain.errors import InvalidRequest, ModelError
from stint.retrieval.dimensions import LOCAL
from stint.retrieval.port import Embeddings, Vector

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


class LocalEmbeddings:
    """The model `wordllama-256`: the mean of the vectors of a text's tokens, which were learned from a language model.

    It knows synonyms, but no order of words, and mostly English. A vector can be cut to 128 or 64 components. A text
    without tokens has a zero vector. The files are read directly: the package itself imports an HTTP client and
    configures logging, and looks for its tokenizer on the network.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: tuple[Any, npt.NDArray[np.float16]] | None = None

    def dimension(self, model_id: str) -> int:
        """Return the dimension of a model; see the port."""
        if model_id not in LOCAL:
            raise InvalidRequest(
                f"Embedding model 'local/{model_id}' does not exist. Write local/{next(iter(LOCAL))}.",
                code="model_not_found",
                param="model",
            )
        return LOCAL[model_id][0]

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",  # noqa: ARG002 - both are embedded alike
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts, in a thread; see the port."""
        dimension = dimensions or self.dimension(model_id)
        if dimension not in LOCAL[model_id]:
            supported = ", ".join(map(str, LOCAL[model_id]))
            raise InvalidRequest(
                f"Embedding model {model_id!r} has no {dimension} dimensions. It supports {supported}.",
                param="dimensions",
            )
        return await asyncio.to_thread(self._embed, texts, dimension)

    def _embed(self, texts: Sequence[str], dimension: int) -> Embeddings:
        with self._lock:
            self._loaded = self._loaded or load()
        tokenizer, weights = self._loaded
        tokens = [encoded.ids for encoded in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        return Embeddings([embed_tokens(ids, weights, dimension) for ids in tokens], sum(map(len, tokens)))


def load() -> "tuple[Any, npt.NDArray[np.float16]]":
    """Read the tokenizer and the vectors of the tokens.

    Raises:
        ModelError: the packages are not installed.
    """
    try:
        from safetensors.numpy import load_file  # noqa: PLC0415 - an optional package
        from tokenizers import Tokenizer  # noqa: PLC0415
    except ImportError as error:
        raise ModelError("The local embedding model is not installed. Run: make run EMBEDDINGS=local") from error
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ModelError("The local embedding model is not installed. Run: make run EMBEDDINGS=local")
    package = Path(spec.origin).parent
    tokenizer = Tokenizer.from_file(str(package / TOKENIZER))
    # The file of the tokenizer has limits that would cut long texts.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, load_file(package / WEIGHTS)["embedding.weight"]


def embed_tokens(ids: Sequence[int], weights: "npt.NDArray[np.float16]", dimension: int) -> Vector:
    """Return the normalised mean of the vectors of tokens."""
    import numpy as np  # noqa: PLC0415 - in the environment of the optional package

    if not ids:
        return [0.0] * dimension
    mean = weights[list(ids), :dimension].mean(axis=0, dtype=np.float32)
    length = float(np.linalg.norm(mean))
    vector: Vector = (mean / length if length else mean).tolist()
    return vector
