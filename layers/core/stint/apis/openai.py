"""The use cases of one tenant that the OpenAI API's routes call."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from stint.apis.tenant import TenantServices
from stint.dataclasses import dataclass
from stint.lazy import Lazy, lazy
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
    from stint.services.background.response_inputs import ResponseInputs
    from stint.services.background.response_requests import ResponseRequests
    from stint.services.responses.response_traces import ResponseTraces


@dataclass(frozen=True)
class OpenAIServices(TenantServices):
    """The use cases. `make_inference` and `make_end_users` make those of inference and of end users once."""

    responses: Responses
    background: Background
    tail: StreamTail
    stored_responses: ResponseReader
    conversations: Conversations
    chat: Chat
    compaction: Compaction
    token_counts: TokenCounts
    make_inference: "Callable[[], InferenceServices]"
    make_end_users: "Callable[[], EndUserServices]"
    service_name: str
    """The name of the service in traces."""

    response_inputs: "ClassVar[Lazy[OpenAIServices, ResponseInputs]]" = lazy(
        "stint.services.background.response_inputs:ResponseInputs",
        lambda self, cls: cls(self.responses, self.stored_responses),
    )
    response_requests: "ClassVar[Lazy[OpenAIServices, ResponseRequests]]" = lazy(
        "stint.services.background.response_requests:ResponseRequests",
        lambda self, cls: cls(self.responses, self.background, self.tail, self.stored_responses),
    )
    response_traces: "ClassVar[Lazy[OpenAIServices, ResponseTraces]]" = lazy(
        "stint.services.responses.response_traces:ResponseTraces",
        lambda self, cls: cls(self.stored_responses, self.service_name),
    )
