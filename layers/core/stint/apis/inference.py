"""The use cases of one tenant that the routes of inference call."""

from stint.dataclasses import dataclass
from stint.services.inference.chat.stored import StoredChats
from stint.services.inference.completions import TextCompletions
from stint.services.inference.inference import ModelInference


@dataclass(frozen=True, slots=True)
class InferenceServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat."""

    inference: ModelInference
    completions: TextCompletions
    stored_chats: StoredChats
    heartbeat_seconds: float
