"""Conversion of the memory tool of October 2024 to the search in vector dbs."""

from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.memory_retrieval import MemoryBankSelection
from stint.domain.llama_stack.october_2024_agents import (
    BankConfig,
    CustomQueryGenerator,
    GraphBankConfig,
    KeyValueBankConfig,
    LLMQueryGenerator,
    MemoryToolDefinition,
    QueryGeneratorConfig,
)
from stint.domain.tools import AgentToolGroupWithArgs
from stint.services.knowledge.prompt_template import fill_prompt_template

RAG = "builtin::rag"


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


def to_generator(config: QueryGeneratorConfig, param: str) -> dict[str, Any]:
    """Convert a query generator. Raises InvalidRequest for a custom one, and for a template that cannot be used."""
    param = f"{param}.query_generator_config"
    if isinstance(config, CustomQueryGenerator):
        message = f"{param}: This server has no custom query generator. Use default or llm."
        raise InvalidRequest(message, param=param)
    if not isinstance(config, LLMQueryGenerator):
        return {"type": "default", "separator": config.sep}
    try:
        fill_prompt_template(config.template, ["text"])
    except InvalidRequest as error:
        raise InvalidRequest(f"{param}.template: {error.message}", param=f"{param}.template") from error
    return {"type": "llm", "model": config.model, "template": config.template}
