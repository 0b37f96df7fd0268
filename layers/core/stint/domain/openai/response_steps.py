"""Steps of a response as the API returns them: its model calls, its tool calls, and its compactions, with their times.

They are derived from the records of the log, like the output. Output items have no times, and one step may have several
items or none.
"""

from typing import Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Schema, Timestamp
from stint.domain.steps import StepUsage

StepKind = Literal["model_call", "tool_call", "compaction"]


class ResponseStep(Schema):
    """A step of a response.

    `completed_at` is null for the one in which the response failed or was cancelled. `item_ids` are the output items
    that the step added. `error` is the tool's message for the model, or the error in which the response failed.
    `first_token_ms` are the milliseconds from the request of a model call to its first token, if they were measured,
    and `usage` its tokens and dollars, if the provider counted them.
    """

    id: str
    object: Literal["response.step"] = "response.step"
    type: StepKind
    started_at: Timestamp
    completed_at: Timestamp | None = None
    first_token_ms: Omitted[int] = None
    usage: Omitted[StepUsage] = None
    tool_name: Omitted[str] = None
    call_id: Omitted[str] = None
    item_ids: list[str] = Field(default_factory=list)
    error: Omitted[str] = None


class ResponseStepList(ListObject[ResponseStep]):
    """The steps of a response."""
