"""Contents of OpenAI's Agents API: texts and images of users and of functions, texts of the model."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from stint.domain.fields import LONG_TEXT, KnownTypes
from stint.domain.limits import MAX_PARTS, MessageLimit, PartLimit
from stint.domain.openai.parts import MAX_IMAGE
from stint.domain.schema import Request, Schema

LongText = Annotated[str, Field(max_length=LONG_TEXT)]


class AgentInputText(Request):
    type: Literal["input_text"] = "input_text"
    text: LongText


class AgentInputImage(Request):
    """An image by its URL (https, http or data)."""

    type: Literal["input_image"] = "input_image"
    image_url: Annotated[str, Field(min_length=1, max_length=MAX_IMAGE)]


REFUSED_PARTS = {
    "input_file": "put the file into a vector store, and give the agent the tool file_search",
    "input_audio": "no provider supports audio",
    "output_text": "only the user's messages can be sent",
}
AgentInputPart = Annotated[
    Annotated[AgentInputText | AgentInputImage, Field(discriminator="type")],
    BeforeValidator(KnownTypes("content part", ("input_text", "input_image"), REFUSED_PARTS)),
]


class AgentInputMessage(Request):
    """A message of the user."""

    type: Literal["message"] = "message"
    role: Literal["user"]
    content: Annotated[list[AgentInputPart], Field(min_length=1)]


def read_input(value: Any) -> Any:
    """Read a string as one message of the user."""
    if isinstance(value, str):
        return [{"role": "user", "content": [{"type": "input_text", "text": value}]}]
    return value


AgentInputMessages = Annotated[list[AgentInputMessage], Field(min_length=1), MessageLimit, PartLimit]
AgentInput = Annotated[
    AgentInputMessages, BeforeValidator(read_input, json_schema_input_type=str | list[AgentInputMessage])
]
"""The input of a session: messages, or a text as the only one."""


def form_of_output(output: Any) -> str:
    return "text" if isinstance(output, str) else "parts"


FunctionOutput = Annotated[
    Annotated[LongText, Tag("text")] | Annotated[list[AgentInputPart], Field(max_length=MAX_PARTS), Tag("parts")],
    Discriminator(form_of_output),
]
"""The result of a function: a text, or texts and images."""


class AgentOutputText(Schema):
    type: Literal["output_text"] = "output_text"
    text: str = ""
