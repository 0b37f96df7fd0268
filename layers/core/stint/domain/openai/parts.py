"""Parts of the content of a message or the output of a call.

The objects of OpenAI's Responses API. Indexes into texts count characters (Unicode code points), not bytes.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt, model_validator

from stint.domain.fields import LONG_TEXT, KnownTypes, Omitted, SupportedValues, invalid
from stint.domain.openai.prompt_cache import CacheBreakpointHint
from stint.domain.schema import Request

MAX_IMAGE = 20_971_520
MAX_FILE = 33_554_432
"""Maximum characters of an image's URL and of a file's base64 data, as in Open Responses."""

Text = Annotated[str, Field(max_length=LONG_TEXT)]


class InputText(Request):
    type: Literal["input_text"] = "input_text"
    text: Text
    prompt_cache_breakpoint: CacheBreakpointHint = None


FileId = Annotated[str, Field(min_length=1, max_length=200)]


class InputImage(Request):
    """An image by its URL (https, http or data), or a stored file.

    `detail` is a hint, passed on to providers that support it.
    """

    type: Literal["input_image"] = "input_image"
    file_id: Omitted[FileId] = None
    image_url: Annotated[str, Field(max_length=MAX_IMAGE)] | None = None
    detail: Literal["low", "high", "auto"] = "auto"
    prompt_cache_breakpoint: CacheBreakpointHint = None

    @model_validator(mode="after")
    def require_one_source(self) -> "InputImage":
        if (self.image_url is None) == (self.file_id is None):
            raise invalid("An image needs either image_url or file_id, not both.")
        return self


class InputFile(Request):
    """A file by its URL, a stored file, or `file_data`: a data URL, or base64.

    The type of base64 is in the extension of `filename`, that of a stored file in its name.
    """

    type: Literal["input_file"] = "input_file"
    filename: Omitted[str] = None
    file_data: Omitted[Annotated[str, Field(max_length=MAX_FILE)]] = None
    file_url: Omitted[str] = None
    file_id: Omitted[FileId] = None
    detail: Annotated[
        Omitted[str], SupportedValues(("auto",), "Only auto is supported: files are read as text"), Field(exclude=True)
    ] = None
    prompt_cache_breakpoint: CacheBreakpointHint = None

    @model_validator(mode="after")
    def require_one_source(self) -> "InputFile":
        if sum(source is not None for source in (self.file_data, self.file_url, self.file_id)) != 1:
            raise invalid("A file needs exactly one of file_data, file_url and file_id.")
        return self


class UrlCitation(Request):
    """The source of the characters from `start_index` to `end_index` of a text."""

    type: Literal["url_citation"] = "url_citation"
    url: str
    start_index: Annotated[StrictInt, Field(ge=0)]
    end_index: Annotated[StrictInt, Field(ge=0)]
    title: str


class FileCitation(Request):
    """The file that supports the text before `index`, in characters (Unicode code points)."""

    type: Literal["file_citation"] = "file_citation"
    index: Annotated[StrictInt, Field(ge=0)]
    file_id: str
    filename: str = ""


class ContainerFileCitation(Request):
    """The file of a container that the characters from `start_index` to `end_index` of a text name."""

    type: Literal["container_file_citation"] = "container_file_citation"
    container_id: str
    file_id: str
    filename: str = ""
    start_index: Annotated[StrictInt, Field(ge=0)]
    end_index: Annotated[StrictInt, Field(ge=0)]


Annotation = Annotated[
    Annotated[UrlCitation | FileCitation | ContainerFileCitation, Field(discriminator="type")],
    BeforeValidator(
        KnownTypes(
            "annotation",
            ("url_citation", "file_citation", "container_file_citation"),
            {"file_path": "it is an annotation of the Assistants API"},
        )
    ),
]


class OutputText(Request):
    """A model's text. `logprobs` are kept if a client sends them; those of models are not read."""

    type: Literal["output_text"] = "output_text"
    text: Text
    annotations: list[Annotation] = Field(default_factory=list)
    logprobs: list[dict[str, Any]] = Field(default_factory=list)


class RefusalPart(Request):
    """A model's refusal."""

    type: Literal["refusal"] = "refusal"
    refusal: Text


class SummaryText(Request):
    type: Literal["summary_text"] = "summary_text"
    text: Text


class ReasoningText(Request):
    type: Literal["reasoning_text"] = "reasoning_text"
    text: Text


REFUSED_PARTS = {
    "input_audio": "no provider supports audio",
    "input_video": "no provider supports video",
    "computer_screenshot": "the computer tool is not supported",
}
INPUT_PARTS = ("input_text", "input_image", "input_file")
OUTPUT_PARTS = ("output_text", "refusal")

InputPart = Annotated[
    Annotated[InputText | InputImage | InputFile, Field(discriminator="type")],
    BeforeValidator(KnownTypes("content part", INPUT_PARTS, REFUSED_PARTS)),
]
MessagePart = Annotated[
    Annotated[InputText | InputImage | InputFile | OutputText | RefusalPart, Field(discriminator="type")],
    BeforeValidator(KnownTypes("content part", INPUT_PARTS + OUTPUT_PARTS, REFUSED_PARTS)),
]
OutputPart = Annotated[OutputText | RefusalPart, Field(discriminator="type")]
