"""Text completions, OpenAI's older API. Each documented field is supported, or refused by its name.

https://platform.openai.com/docs/api-reference/completions
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, model_validator

from stint.domain.fields import Nothing, Omitted, SupportedValues, UnsupportedField, invalid
from stint.domain.inference import Decoding
from stint.domain.limits import EndUserId
from stint.domain.openai.chat import MAX_STOPS, ChatStreamOptions, Penalty, Tokens, read_stop
from stint.domain.openai.chat_output import CompletionUsage
from stint.domain.openai.response_requests import ModelName
from stint.domain.schema import Request, Schema

MAX_CHOICES = 20
"""Maximum completions of a request. Each is a model call."""

NO_LOGPROBS = "Use logprobs of POST /chat/completions"

TextFinish = Literal["stop", "length", "content_filter"]


def read_prompt(prompt: Any) -> Any:
    """Read a string as one prompt, and refuse tokens."""
    prompts = [prompt] if isinstance(prompt, str) else prompt
    if isinstance(prompts, list) and any(isinstance(each, int | list) for each in prompts):
        raise invalid("Tokens are not supported: send the prompt as text.")
    return prompts


class TextCompletionRequest(Request):
    """The body of POST /completions. `best_of` may only be `n`."""

    model: ModelName
    prompt: Annotated[
        list[str],
        Field(min_length=1, max_length=MAX_CHOICES),
        BeforeValidator(read_prompt, json_schema_input_type=str | list[str]),
    ]
    n: Annotated[StrictInt, Field(ge=1, le=MAX_CHOICES)] = 1
    best_of: Omitted[StrictInt] = None
    echo: StrictBool = False
    stream: StrictBool = False
    stream_options: Omitted[ChatStreamOptions] = None
    temperature: Omitted[Annotated[StrictFloat, Field(ge=0, le=2)]] = None
    top_p: Omitted[Annotated[StrictFloat, Field(ge=0, le=1)]] = None
    frequency_penalty: Omitted[Penalty] = None
    presence_penalty: Omitted[Penalty] = None
    max_tokens: Omitted[Tokens] = None
    stop: Annotated[
        Omitted[Annotated[list[str], Field(max_length=MAX_STOPS)]],
        BeforeValidator(read_stop, json_schema_input_type=str | list[str] | None),
    ] = None
    seed: Omitted[StrictInt] = None
    user: Omitted[EndUserId] = None
    logprobs: Annotated[Omitted[StrictBool | StrictInt], SupportedValues((False,), NO_LOGPROBS)] = None
    logit_bias: Annotated[Omitted[dict[str, Any]], SupportedValues(({},), "No provider supports logit_bias")] = None
    suffix: Annotated[Omitted[str], SupportedValues(("",), "Chat models cannot fill in a text before a suffix")] = None
    guided_choice: Annotated[Nothing, UnsupportedField("Use POST /chat/completions with a response_format")] = None
    prompt_logprobs: Annotated[Nothing, UnsupportedField("No provider returns log probabilities of a prompt")] = None

    @model_validator(mode="after")
    def limit_choices(self) -> "TextCompletionRequest":
        if len(self.prompt) * self.n > MAX_CHOICES:
            raise invalid(f"At most {MAX_CHOICES} completions are allowed: send fewer prompts, or a smaller n")
        if self.best_of not in (None, self.n):
            raise invalid("best_of is only supported if it is n, because completions have no log probabilities")
        return self

    @property
    def prompts(self) -> list[str]:
        """Return the prompt of each choice."""
        return [prompt for prompt in self.prompt for _ in range(self.n)]

    def to_decoding(self) -> Decoding:
        """Return the sampling parameters of the model calls."""
        return Decoding(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            frequency_penalty=self.frequency_penalty,
            presence_penalty=self.presence_penalty,
            stop=tuple(self.stop) if self.stop else None,
            seed=self.seed,
        )


class TextChoice(Schema):
    text: str
    index: int
    logprobs: None = None
    finish_reason: TextFinish | None = None


class TextCompletion(Schema):
    """Completions: whole, or a piece of one. `created` is in seconds since 1970."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[TextChoice]
    system_fingerprint: str | None = None
    usage: Omitted[CompletionUsage] = None
