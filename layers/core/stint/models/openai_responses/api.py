"""OpenAI's Responses API as an API of model servers, in the form that each model accepts."""

import hashlib

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest
from stint.models.json_schemas import read_schema
from stint.models.openai.message_writer import write_json
from stint.models.openai.refused_hints import (
    RefusedFields,
    adapt_request,
    effort_of,
    may_be_adapted,
    refused_fields,
    refuses_minimal,
)
from stint.models.openai.request import CHAT_ONLY
from stint.models.openai_responses.answer import ModelResponseReader
from stint.models.openai_responses.items import ItemWriter
from stint.models.openai_responses.request import ENCRYPTED_REASONING, write_request
from stint.providers.openai.errors import FIELDS, Refusal

REASONING_ITEMS = "reasoning items"


class ResponsesApi:
    """Writes each request in the form that its model accepts, and nothing that a server would store.

    Refused hints are omitted: `verbosity`, reasoning summaries, encrypted reasoning (models that do not reason), a
    temperature of 0. Reasoning that the server can no longer decrypt is omitted, too. `provider` is the id of the
    server; those with the same address may have different keys.
    """

    path = "responses"

    def __init__(self, base_url: str, provider: str = "") -> None:
        self._server = hashlib.sha256(f"{provider}\n{base_url}".encode()).hexdigest()[:16]
        self._items = ItemWriter()
        self._refused = RefusedFields()

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars, and parameters that the API lacks."""
        if request.response_format is not None:
            read_schema(request.response_format)
        for name in CHAT_ONLY:
            if getattr(request.decoding, name) is not None:
                raise InvalidRequest(
                    f"The Responses API of model servers has no {name}. Remove it, or choose a provider that is called "
                    "by Chat Completions.",
                    param=FIELDS.get(name, name),
                )

    def reader(self, request: InferenceRequest) -> ModelResponseReader:
        return ModelResponseReader(self._origin(request))

    def refused_by(self, model: str) -> frozenset[str]:
        """Return what a model is known to refuse."""
        return self._refused.of(model)

    def find_refused(self, request: InferenceRequest, refusal: Refusal, _: frozenset[str]) -> frozenset[str]:
        """Return what a refusal seems to be about; see `ModelApi.find_refused`."""
        if not may_be_adapted(refusal):
            return frozenset()
        return frozenset(refused_fields(request, refusal) | _refused_in(request, refusal))

    def remember_refused(self, model: str, names: frozenset[str]) -> None:
        """Remember what a model refuses. Reasoning that cannot be decrypted belongs to one conversation only."""
        self._refused.add(model, names - {REASONING_ITEMS})

    def write(self, request: InferenceRequest, refused: frozenset[str]) -> bytes:
        """Write the body of a request, without what its model refuses.

        Raises:
            InvalidRequest: the request has what the API lacks, or an image cannot be read.
        """
        self.check(request)
        body = write_json(write_request(adapt_request(request, refused), refused))
        origin = "" if REASONING_ITEMS in refused else self._origin(request)
        items = b",".join(self._items.write(request.messages, origin))
        return b"".join((body[:-1], b',"input":[', items, b"]}"))

    def _origin(self, request: InferenceRequest) -> str:
        return f"{self._server}/{request.model}"


def _refused_in(request: InferenceRequest, refusal: Refusal) -> set[str]:
    words = f"{refusal.param} {refusal.message}".lower()
    is_about_encryption = "encrypted" in f"{refusal.code} {words}"
    is_about_include = refusal.param == "include" and "logprobs" not in words
    is_damaged = refusal.code == "invalid_encrypted_content" or "could not be" in words
    tests = {
        ENCRYPTED_REASONING: is_about_include or (is_about_encryption and "not supported" in words),
        REASONING_ITEMS: is_about_encryption and is_damaged,
        "summary": bool(request.reasoning and request.reasoning.summary) and "summar" in words,
        "minimal": refuses_minimal(effort_of(request), words),
    }
    return {name for name, refused in tests.items() if refused}
