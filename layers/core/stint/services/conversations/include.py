"""Fields of stored items that are returned only on request."""

from collections.abc import Collection

from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.items import Item, ReasoningItem, WebSearchCall
from stint.domain.openai.stored_responses import ResponseSettings

ENCRYPTED_REASONING = "reasoning.encrypted_content"
SEARCH_SOURCES = "web_search_call.action.sources"
FILE_RESULTS = "file_search_call.results"
CODE_OUTPUTS = "code_interpreter_call.outputs"


def include_fields(item: Item, include: Collection[str]) -> Item:
    """Return an item without the fields that `include` does not name."""
    match item:
        case ReasoningItem(encrypted_content=str()) if ENCRYPTED_REASONING not in include:
            return item.model_copy(update={"encrypted_content": None})
        case WebSearchCall(action=action) if action.sources is not None and SEARCH_SOURCES not in include:
            return item.model_copy(update={"action": action.model_copy(update={"sources": None})})
        case FileSearchCall(results=list()) if FILE_RESULTS not in include:
            return item.model_copy(update={"results": None})
        case CodeInterpreterCall(outputs=list()) if CODE_OUTPUTS not in include:
            return item.model_copy(update={"outputs": None})
    return item


def whole(settings: ResponseSettings) -> ResponseSettings:
    """Return settings with which items have all optional fields."""
    return settings.model_copy(update={"include": [ENCRYPTED_REASONING, SEARCH_SOURCES, FILE_RESULTS, CODE_OUTPUTS]})
