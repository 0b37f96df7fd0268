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
    from stint.services.background.cancellation import ResponseCancellation
    from stint.services.background.response_admission import ResponseAdmission
    from stint.services.background.waiting_responses import WaitingResponses
    from stint.services.idempotency.creations import Creations
    from stint.services.idempotency.requests import IdempotentRequests
    from stint.services.responses.response_retries import ResponseRetries


@dataclass(frozen=True, slots=True)
class OpenAIServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat.

    `make_inference`, `make_end_users` and
    `make_idempotent_requests` make those of inference, of end users and of idempotency keys once, when first needed;
    `make_response_retries` finds the responses that retries repeat.
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
    make_response_admission: "Callable[[str], ResponseAdmission]"
    make_waiting_responses: "Callable[[], WaitingResponses]"
    make_response_cancellation: "Callable[[], ResponseCancellation]"
    make_inference: "Callable[[], InferenceServices]"
    make_end_users: "Callable[[], EndUserServices]"
    make_idempotent_requests: "Callable[[], IdempotentRequests]"
    make_creations: "Callable[[], Creations]"
    make_response_retries: "Callable[[], ResponseRetries]"
