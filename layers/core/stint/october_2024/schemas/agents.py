"""Agents of the API of October 2024: their configuration and their tools.

In this API an agent declares its tools in full, where 0.2.12 names toolgroups. `stint.october_2024.agents` converts
a configuration to that of 0.2.12, and the importer converts those of files.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from stint.domain.content import URL
from stint.domain.entities import EntityNames
from stint.domain.limits import MAX_INFER_ITERS, ToolLimit
from stint.domain.llama_stack.rag import MAX_CHUNKS, MAX_TEMPLATE_LENGTH, MAX_VECTOR_DBS
from stint.domain.schema import Request
from stint.october_2024.schemas.memory import refuse_comma

ToolChoiceOfOctober = Literal["auto", "required"]


class OctoberSamplingParams(Request):
    """Sampling parameters. Zero is the provider's default."""

    strategy: Literal["greedy", "top_p", "top_k"] = "greedy"
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    top_p: Annotated[float, Field(ge=0)] | None = 0.95
    top_k: Annotated[int, Field(ge=0)] | None = 0
    max_tokens: Annotated[int, Field(ge=0)] | None = 0
    repetition_penalty: float | None = 1.0


class RestAPIExecutionConfig(Request):
    """The endpoint that runs a tool. The URL is a string, or an object with a `uri`."""

    url: URL
    method: Literal["GET", "POST", "PUT", "DELETE"]
    params: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Any] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def read_string(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("url"), str):
            return {**data, "url": {"uri": data["url"]}}
        return data


class ToolDefinitionCommon(Request):
    input_shields: list[str] = Field(default_factory=list)
    output_shields: list[str] = Field(default_factory=list)


class RemoteTool(ToolDefinitionCommon):
    """A tool that an endpoint can run in place of the server or the client."""

    remote_execution: RestAPIExecutionConfig | None = None


class SearchToolDefinition(RemoteTool):
    type: Literal["brave_search"]
    api_key: str
    engine: Literal["bing", "brave", "tavily"] = "brave"


class WolframAlphaToolDefinition(RemoteTool):
    type: Literal["wolfram_alpha"]
    api_key: str


class PhotogenToolDefinition(RemoteTool):
    type: Literal["photogen"]


class CodeInterpreterToolDefinition(RemoteTool):
    type: Literal["code_interpreter"]
    enable_inline_code_execution: bool = True


class OctoberParameter(Request):
    """A parameter of a function. `param_type` is free text, such as `str` or `string`."""

    param_type: str
    description: str | None = None
    required: bool = True
    default: Any | None = None


class FunctionCallToolDefinition(RemoteTool):
    """A function that the client runs, unless an endpoint does."""

    type: Literal["function_call"]
    function_name: str
    description: str
    parameters: dict[str, OctoberParameter]


BankId = Annotated[str, AfterValidator(refuse_comma)]


class VectorBankConfig(Request):
    type: Literal["vector"]
    bank_id: BankId


class KeyValueBankConfig(Request):
    """`keys` are the ids of the documents."""

    type: Literal["keyvalue"]
    bank_id: BankId
    keys: Annotated[list[str], Field(max_length=100)] = Field(default_factory=list)


class KeywordBankConfig(Request):
    type: Literal["keyword"]
    bank_id: BankId


class GraphBankConfig(Request):
    """`entities` name those whose documents are retrieved. Without them, they are those that the query names."""

    type: Literal["graph"]
    bank_id: BankId
    entities: EntityNames = Field(default_factory=list)


BankConfig = Annotated[
    VectorBankConfig | KeyValueBankConfig | KeywordBankConfig | GraphBankConfig, Field(discriminator="type")
]


class DefaultQueryGenerator(Request):
    """The query is the text of the messages, joined by a separator."""

    type: Literal["default"] = "default"
    sep: Annotated[str, Field(max_length=100)] = " "


class LLMQueryGenerator(Request):
    """A model writes the query. The template is its prompt."""

    type: Literal["llm"]
    model: str
    template: Annotated[str, Field(max_length=MAX_TEMPLATE_LENGTH)]


class CustomGeneratorData(Request):
    """The writer of the queries: an endpoint at a `url`, or the tool of a registered `toolgroup`."""

    url: URL | str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    timeout: Annotated[float, Field(gt=0, le=30)] = 30
    toolgroup: str | None = None


class CustomQueryGenerator(Request):
    """A function or an endpoint writes the query."""

    type: Literal["custom"]
    provider_data: CustomGeneratorData = Field(default_factory=CustomGeneratorData)


QueryGeneratorConfig = Annotated[
    DefaultQueryGenerator | LLMQueryGenerator | CustomQueryGenerator, Field(discriminator="type")
]


class MemoryToolDefinition(ToolDefinitionCommon):
    """Retrieval of context before the model is called."""

    type: Literal["memory"]
    memory_bank_configs: Annotated[list[BankConfig], Field(max_length=MAX_VECTOR_DBS)] = Field(default_factory=list)
    query_generator_config: QueryGeneratorConfig = Field(default_factory=DefaultQueryGenerator)
    max_tokens_in_context: Annotated[int, Field(ge=0)] = 4096
    max_chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)] = 10


ToolDefinition = Annotated[
    SearchToolDefinition
    | WolframAlphaToolDefinition
    | PhotogenToolDefinition
    | CodeInterpreterToolDefinition
    | FunctionCallToolDefinition
    | MemoryToolDefinition,
    Field(discriminator="type"),
]


class OctoberAgentConfig(Request):
    """The configuration of an agent."""

    model: str
    instructions: str
    enable_session_persistence: bool
    sampling_params: OctoberSamplingParams = Field(default_factory=OctoberSamplingParams)
    input_shields: list[str] = Field(default_factory=list)
    output_shields: list[str] = Field(default_factory=list)
    tools: Annotated[list[ToolDefinition], ToolLimit] = Field(default_factory=list)
    tool_choice: ToolChoiceOfOctober = "auto"
    tool_prompt_format: Literal["json", "function_tag", "python_list"] | None = None
    max_infer_iters: int = Field(default=10, ge=0, le=MAX_INFER_ITERS)


class OctoberAgentCreateRequest(Request):
    agent_config: OctoberAgentConfig


class OctoberAgentName(Request):
    agent_id: str
