"""Options of a response: text format, reasoning, and included fields.

The objects of OpenAI's Responses API.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool

from stint.domain.fields import KnownTypes, Omitted, SupportedValues, refusal
from stint.domain.inference import ReasoningSettings, Summary, Verbosity
from stint.domain.schema import Request


class PlainText(Request):
    type: Literal["text"] = "text"


class JsonObject(Request):
    """The text is a JSON object, which the instructions describe."""

    type: Literal["json_object"] = "json_object"


def read_schema(schema: Any) -> Any:
    """Read a missing schema as that of any object."""
    return {"type": "object"} if schema is None else schema


class JsonSchema(Request):
    """The text is JSON of this schema, or any object if the client omits it."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    type: Literal["json_schema"] = "json_schema"
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")] = "response"
    description: str | None = None
    json_schema: Annotated[
        dict[str, Any], BeforeValidator(read_schema), Field(alias="schema", validate_default=True, default=None)
    ]
    strict: StrictBool = False


TextFormat = Annotated[
    Annotated[PlainText | JsonObject | JsonSchema, Field(discriminator="type")],
    BeforeValidator(
        KnownTypes(
            "text format",
            ("text", "json_object", "json_schema"),
            {"grammar": "no provider supports it", "python": "no provider validates it"},
        )
    ),
]


class TextOptions(Request):
    """The format of the text. `verbosity` is a hint, passed on to models that support it."""

    format: TextFormat = Field(default_factory=PlainText)
    verbosity: Omitted[Verbosity] = None


class ReasoningRequest(ReasoningSettings):
    """`generate_summary` is an older name of `summary`."""

    generate_summary: Annotated[Omitted[Summary], Field(exclude=True)] = None
    context: Annotated[
        Omitted[str],
        SupportedValues(("auto",), "Only auto is supported: reasoning is sent with its items"),
        Field(exclude=True),
    ] = None
    mode: Annotated[Omitted[str], SupportedValues(("standard",), "Only standard is supported"), Field(exclude=True)] = (
        None
    )

    def to_settings(self) -> ReasoningSettings | None:
        """Return the stored settings; None if nothing is set."""
        summary = self.summary or self.generate_summary
        return ReasoningSettings(effort=self.effort, summary=summary) if self.effort or summary else None


class StreamOptions(Request):
    """`include_obfuscation` pads the deltas of a stream, so that their sizes reveal nothing. The default is off."""

    model_config = ConfigDict(extra="forbid")

    include_obfuscation: StrictBool = False


REFUSED_INCLUDES = {
    "message.output_text.logprobs": "responses have no log probabilities, use POST /v1/chat/completions",
    "web_search_call.results": "use web_search_call.action.sources",
}


def check_include(value: Any) -> Any:
    if isinstance(value, str) and value in REFUSED_INCLUDES:
        raise refusal(f"Including {value} is not supported: {REFUSED_INCLUDES[value]}.")
    return value


Include = Annotated[
    Literal[
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "file_search_call.results",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
    ],
    BeforeValidator(check_include),
]
"""Values of `include`. Images of messages are always included; the computer belongs to refused tools."""
