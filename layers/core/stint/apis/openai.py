"""The use cases of one tenant that the OpenAI API's routes call."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.services.background.background import Background
from stint.services.background.tail import StreamTail
from stint.services.conversations.conversations import Conversations
from stint.services.inference.chat.chat import Chat
from stint.services.responses.compaction import Compaction, TokenCounts
from stint.services.responses.read import ResponseReader
from stint.services.responses.responses import Responses

if TYPE_CHECKING:  # most processes make none of them
    from stint.apis.end_users import EndUserServices
    from stint.apis.inference import InferenceServices
    from stint.services.background.response_requests import ResponseRequests
    from stint.services.idempotency.creations import Creations
    from stint.services.idempotency.requests import IdempotentRequests


@dataclass(frozen=True, slots=True)
class OpenAIServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat.

    `make_inference`, `make_end_users` and
    `make_idempotent_requests` make those of inference, of end users and of idempotency keys once, when first needed.
    """

    responses: Responses
    background: Background
    tail: StreamTail
    stored_responses: ResponseReader
    conversations: Conversations
    chat: Chat
    compaction: Compaction
    token_counts: TokenCounts
    heartbeat_seconds: float
    make_response_requests: "Callable[[], ResponseRequests]"
    make_inference: "Callable[[], InferenceServices]"
    make_end_users: "Callable[[], EndUserServices]"
    make_idempotent_requests: "Callable[[], IdempotentRequests]"
    make_creations: "Callable[[], Creations]"

    @property
    def response_requests(self) -> "ResponseRequests":
        """The requests of responses, whose modules the first one loads."""
        return self.make_response_requests()
