"""Conversion of the memory tool of October 2024 to the search in vector dbs."""

from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.memory_retrieval import CustomQueryGeneratorConfig, MemoryBankSelection
from stint.domain.tools import AgentToolGroupWithArgs
from stint.october_2024.schemas.agents import (
    BankConfig,
    CustomGeneratorData,
    CustomQueryGenerator,
    GraphBankConfig,
    KeyValueBankConfig,
    LLMQueryGenerator,
    MemoryToolDefinition,
    QueryGeneratorConfig,
)
from stint.tools.port import RAG, REMOTE_EXECUTION


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
