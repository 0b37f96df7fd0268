"""Messages that wait for their session or conversation."""

from stint.dataclasses import dataclass
from stint.domain.fields import Omitted
from stint.domain.run_outcome import ErrorInfo
from stint.domain.schema import Schema, Timestamp


class WaitingMessage(Schema):
    """A request that waits, as JSON. `creator` is its caller as in the context of a request, without a credential.

    `expires_at` is the end of its response, which counts from the acceptance. `lenient`: a call in the context may have
    no result (`CreateResponse.for_llama_stack`).
    """

    body: str
    accepted_at: Timestamp
    creator: Omitted[dict[str, str]] = None
    end_user: Omitted[str] = None
    expires_at: Omitted[int] = None
    lenient: Omitted[bool] = None


@dataclass(frozen=True, slots=True)
class WaitingPlace:
    """A place in line. `sender` is set if the running run of the same caller may take the message.

    `alive`: a request waits for the message. `fingerprint` and `retry_count` are those of its latest attempt.
    """

    message_id: str
    alive: bool = True
    sender: str = ""
    fingerprint: str = ""
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class MessageState:
    """A message as it is stored.

    `run_id` is the run that was started for it. `merged_into` is the run that has taken it. Either may have died before
    it stored the message itself.
    """

    message: WaitingMessage
    run_id: str | None = None
    merged_into: str | None = None
    cancelled: bool = False
    error: ErrorInfo | None = None

    @property
    def claimed_by(self) -> str | None:
        """Return the run that has claimed the message."""
        return self.run_id or self.merged_into

    @property
    def is_over(self) -> bool:
        """Return whether the message was claimed or cancelled, or has failed."""
        return self.cancelled or self.error is not None or self.claimed_by is not None
