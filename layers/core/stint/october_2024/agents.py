"""Conversion of agents of October 2024 to those of 0.2.12.

An agent of October lists definitions of tools; one of 0.2.12 names toolgroups. Who runs a tool decides what it becomes:

    the definition                      becomes
    a function without an endpoint      a client tool
    any with `remote_execution`         an endpoint of one toolgroup that calls them all
    memory                              the toolgroup of retrieval, which the model cannot call
    search, code, images, Wolfram       the server's own toolgroup

Shields of a tool are kept by the tool's name, so two tools must not have the same one. What a stack cannot run is
refused when the agent is made, and not in its first turn.
"""

import json
from collections.abc import Sequence
from typing import Any

from stint.domain.errors import InvalidRequest, NotSupported
from stint.domain.llama_stack.agents import AgentConfig, NewAgentConfig, ToolShieldNames
from stint.domain.llama_stack.memory_retrieval import CustomQueryGeneratorConfig, MemoryBankSelection
from stint.domain.llama_stack.sampling import (
    GreedySamplingStrategy,
    SamplingParams,
    SamplingStrategy,
    TopKSamplingStrategy,
    TopPSamplingStrategy,
)
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs, ToolChoice, ToolConfig, ToolDef
from stint.october_2024.remote_tools import to_endpoint, to_parameters
from stint.october_2024.schemas.agents import (
    BankConfig,
    CodeInterpreterToolDefinition,
    CustomGeneratorData,
    CustomQueryGenerator,
    FunctionCallToolDefinition,
    GraphBankConfig,
    KeyValueBankConfig,
    LLMQueryGenerator,
    MemoryToolDefinition,
    OctoberAgentConfig,
    OctoberSamplingParams,
    PhotogenToolDefinition,
    QueryGeneratorConfig,
    RemoteTool,
    SearchToolDefinition,
    ToolDefinition,
    WolframAlphaToolDefinition,
)
from stint.services.registry.inline_toolgroups import define_toolgroup
from stint.services.registry.selections import as_port
from stint.services.registry.tools import Tools
from stint.tools.port import KNOWLEDGE_SEARCH, QUERY_GENERATOR, RAG, REMOTE_EXECUTION
from stint.tools.secret_references import refuse_references

WEB_SEARCH, WOLFRAM_ALPHA = "builtin::websearch", "builtin::wolfram_alpha"
CODE_INTERPRETER, PHOTOGEN = "builtin::code_interpreter", "builtin::photogen"


def to_agent_config(config: OctoberAgentConfig) -> AgentConfig:
    """Convert the configuration of an agent.

    Raises:
        InvalidRequest: a tool cannot be used as it is defined.
        NotSupported: this server has no such tool.
    """
    toolgroups: list[AgentToolGroup] = []
    client_tools: list[ToolDef] = []
    endpoints: list[dict[str, Any]] = []
    for place, definition in enumerate(config.tools):
        param = f"agent_config.tools[{place}]"
        remote = definition.remote_execution if isinstance(definition, RemoteTool) else None
        if isinstance(definition, RemoteTool) and remote is not None:
            endpoints.append(to_endpoint(definition, remote))
        elif isinstance(definition, FunctionCallToolDefinition):
            client_tools.append(to_client_tool(definition))
        else:
            toolgroups.append(to_toolgroup(definition, param))
    if endpoints:
        toolgroups.append(AgentToolGroupWithArgs(name=REMOTE_EXECUTION, args={"tools": endpoints}))
    return NewAgentConfig(
        model=config.model,
        instructions=config.instructions,
        enable_session_persistence=config.enable_session_persistence,
        sampling_params=to_sampling_params(config.sampling_params),
        input_shields=config.input_shields,
        output_shields=config.output_shields,
        toolgroups=toolgroups,
        client_tools=client_tools,
        tool_config=ToolConfig(tool_choice=to_choice(config), tool_prompt_format=config.tool_prompt_format),
        max_infer_iters=config.max_infer_iters,
        tool_shields=to_tool_shields(config.tools),
    )


async def check_endpoints(config: AgentConfig, definitions: Sequence[ToolDefinition], tools: Tools) -> None:
    """Check the endpoints that an agent's tools call, and that code can be run and images made if tools do.

    Raises:
        InvalidRequest: an endpoint is malformed or not allowed, or two tools have the same name.
        NotSupported: this stack runs no code, or makes no images.
    """
    refuse_repeated(definitions)
    for group in config.toolgroups:
        if isinstance(group, AgentToolGroupWithArgs) and group.name == REMOTE_EXECUTION:
            refuse_references(json.dumps(group.args), "agent_config.tools")
            defined = define_toolgroup(group.args)
            await tools.provider_of(defined).check(as_port(defined))
        elif isinstance(group, AgentToolGroupWithArgs) and group.name == RAG:
            place = next(place for place, each in enumerate(definitions) if isinstance(each, MemoryToolDefinition))
            await check_generator(group, tools, f"agent_config.tools[{place}].{QUERY_GENERATOR}")
        elif group in (CODE_INTERPRETER, PHOTOGEN):
            await tools.select(group)


def refuse_repeated(definitions: Sequence[ToolDefinition]) -> None:
    """Refuse tools with the name of an earlier one, which the model could not distinguish. Raises InvalidRequest."""
    names: set[str] = set()
    for place, definition in enumerate(definitions):
        name, param = name_of(definition), f"agent_config.tools[{place}]"
        if name in names:
            called = definition.type if isinstance(definition, MemoryToolDefinition) else name
            raise InvalidRequest(f"{param}: An earlier tool is {called!r}, too. Define it once.", param=param)
        names.add(name)


async def check_generator(group: AgentToolGroupWithArgs, tools: Tools, param: str) -> None:
    """Check the query generator of the memory tool, which the field `param` names.

    Raises:
        InvalidRequest: it is a custom one that cannot be used.
    """
    config = group.args[QUERY_GENERATOR]
    if config["type"] == "custom":
        from stint.services.knowledge.custom_query_generator import CustomQueries  # noqa: PLC0415 - few agents have one

        found = CustomQueryGeneratorConfig.model_validate(config)
        await CustomQueries(lambda: tools).check(found, param)


def to_choice(config: OctoberAgentConfig) -> ToolChoice:
    """Return the choice of a tool. The model cannot call the memory tool, so it alone cannot be required."""
    callable_tools = [tool for tool in config.tools if not isinstance(tool, MemoryToolDefinition)]
    return ToolChoice(config.tool_choice) if callable_tools else ToolChoice.auto


def to_sampling_params(params: OctoberSamplingParams) -> SamplingParams:
    """Convert sampling parameters. Zero, and the defaults of a strategy, are the provider's."""
    return SamplingParams(
        strategy=to_strategy(params),
        max_tokens=params.max_tokens,
        repetition_penalty=1.0 if params.repetition_penalty is None else params.repetition_penalty,
    )


def to_strategy(params: OctoberSamplingParams) -> SamplingStrategy:
    if params.strategy == "greedy":
        return GreedySamplingStrategy()
    if params.strategy == "top_k" and params.top_k:
        return TopKSamplingStrategy(top_k=params.top_k)
    return TopPSamplingStrategy(temperature=params.temperature or None, top_p=params.top_p or None)


def to_client_tool(definition: FunctionCallToolDefinition) -> ToolDef:
    """Convert a function that the client runs."""
    return ToolDef(
        name=definition.function_name,
        description=definition.description,
        parameters=to_parameters(definition.parameters),
    )


def to_toolgroup(definition: ToolDefinition, param: str) -> AgentToolGroup:
    """Convert a tool that the server runs.

    Raises:
        InvalidRequest: the engine of a search no longer exists.
        NotSupported: this server has no such tool.
    """
    match definition:
        case SearchToolDefinition():
            return to_search(definition, param)
        case MemoryToolDefinition():
            return to_memory(definition, param)
        case CodeInterpreterToolDefinition():
            return CODE_INTERPRETER
        case PhotogenToolDefinition():
            return PHOTOGEN
        case WolframAlphaToolDefinition(api_key=key):
            return AgentToolGroupWithArgs(name=WOLFRAM_ALPHA, args={"api_key": key} if key else {})
        case _:
            raise NotSupported(f"{param}: The tool {definition.type!r} is not supported. Remove it.", param=param)


def to_search(definition: SearchToolDefinition, param: str) -> AgentToolGroupWithArgs:
    """Convert the search. Without a key, the server's own engine and key are used. Raises InvalidRequest."""
    if definition.engine == "bing":
        raise InvalidRequest(
            f"{param}.engine: Microsoft retired the Bing Search API in August 2025. Use the engine brave or tavily.",
            param=f"{param}.engine",
        )
    args = {"api_key": definition.api_key, "engine": definition.engine} if definition.api_key else {}
    return AgentToolGroupWithArgs(name=WEB_SEARCH, args=args)


def to_tool_shields(definitions: Sequence[ToolDefinition]) -> dict[str, ToolShieldNames] | None:
    """Return the shields of tools by the names of the tools; None if no tool has shields."""
    found: dict[str, ToolShieldNames] = {}
    for definition in definitions:
        if definition.input_shields or definition.output_shields:
            name = name_of(definition)
            earlier = found.get(name, ToolShieldNames())
            found[name] = ToolShieldNames(
                input_shields=list(dict.fromkeys([*earlier.input_shields, *definition.input_shields])),
                output_shields=list(dict.fromkeys([*earlier.output_shields, *definition.output_shields])),
            )
    return found or None


def name_of(definition: ToolDefinition) -> str:
    """Return the name of a tool as models and steps have it."""
    if isinstance(definition, FunctionCallToolDefinition):
        return definition.function_name
    return KNOWLEDGE_SEARCH if isinstance(definition, MemoryToolDefinition) else definition.type


def to_memory(definition: MemoryToolDefinition, param: str) -> AgentToolGroupWithArgs:
    """Convert the memory tool. The model cannot call it: context is retrieved before each turn.

    Raises InvalidRequest if the query generator cannot be used.
    """
    banks = [to_selection(bank) for bank in definition.memory_bank_configs]
    return AgentToolGroupWithArgs(
        name=RAG,
        args={
            "retrieve": "only_before_inference",
            "vector_db_ids": [bank.bank_id for bank in banks],
            "memory_banks": [bank.model_dump() for bank in banks],
            "query_generator_config": to_generator(definition.query_generator_config, param),
            "max_tokens_in_context": definition.max_tokens_in_context,
            "max_chunks": definition.max_chunks,
        },
    )


def to_selection(bank: BankConfig) -> MemoryBankSelection:
    """Convert the choice of a bank."""
    return MemoryBankSelection(
        type=bank.type,
        bank_id=bank.bank_id,
        document_ids=bank.keys if isinstance(bank, KeyValueBankConfig) else [],
        entities=bank.entities if isinstance(bank, GraphBankConfig) else [],
    )


def to_custom_generator(data: CustomGeneratorData, param: str) -> dict[str, Any]:
    """Convert a custom query generator. Without a name, it is the toolgroup `query_generator`."""
    if data.url is not None and data.toolgroup is not None:
        raise InvalidRequest(f"{param} has both a url and a toolgroup. Remove one.", param=param)
    if data.url is None:
        named = {"toolgroup": data.toolgroup} if data.toolgroup is not None else {}
        return CustomQueryGeneratorConfig(type="custom", **named).model_dump()
    endpoint = {
        "name": "write_query",
        "url": data.url if isinstance(data.url, str) else data.url.uri,
        "method": "POST",
        "headers": data.headers,
        "timeout": data.timeout,
    }
    args = {"tools": [endpoint]}
    return CustomQueryGeneratorConfig(type="custom", toolgroup=REMOTE_EXECUTION, args=args).model_dump()


def to_generator(config: QueryGeneratorConfig, param: str) -> dict[str, Any]:
    """Convert a query generator. Raises InvalidRequest for one whose template or endpoint cannot be used."""
    param = f"{param}.query_generator_config"
    if isinstance(config, CustomQueryGenerator):
        return to_custom_generator(config.provider_data, f"{param}.provider_data")
    if not isinstance(config, LLMQueryGenerator):
        return {"type": "default", "separator": config.sep}
    from stint.jinja.template import check_template  # noqa: PLC0415 - few agents have a template

    check_template(config.template, f"{param}.template")
    return {"type": "llm", "model": config.model, "template": config.template}
