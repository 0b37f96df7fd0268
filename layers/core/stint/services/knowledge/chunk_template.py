"""The template of a chunk in the context: text with placeholders, which are replaced once and not evaluated."""

import re
from collections.abc import Mapping
from typing import Any

from stint.domain.errors import InvalidRequest

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
MAX_CONTEXT_LENGTH = 1_000_000
METADATA_FIELD = re.compile(r"(?:chunk\.)?metadata\[([^\[\]]+)\]")


def fill_chunk_template(template: str, index: int, text: str, metadata: Mapping[str, Any]) -> str:
    """Return the text of a chunk in the context.

    The placeholders are `{index}`, `{chunk.content}`, `{metadata}`, and `{metadata[KEY]}`, also with `chunk.` before
    it; `{{` and `}}` are braces.

    Raises:
        InvalidRequest: the template has another placeholder, the metadata of the chunk lacks a key, or the text is
            longer than a context may be.
    """
    size = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal size
        value = value_of(found)
        # Counted while the text is made: a placeholder that occurs a thousand times would fill the memory first.
        size += len(value)
        refuse_long(size)
        return value

    def value_of(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0][0]
        match name:
            case "index":
                return str(index)
            case "chunk.content":
                return text
            case "metadata" | "chunk.metadata":
                return str(dict(metadata))
        field = METADATA_FIELD.fullmatch(name)
        if field is None:
            raise unknown(f"{{{name}}}")
        if field[1] not in metadata:
            raise unusable(f"uses the metadata key {field[1]!r}, which a chunk that was found does not have")
        return str(metadata[field[1]])

    return PLACEHOLDER.sub(replace, template)


def refuse_long(size: int) -> None:
    """Raise InvalidRequest for a context of too many characters."""
    if size > MAX_CONTEXT_LENGTH:
        raise unusable(
            f"makes a context of more than {MAX_CONTEXT_LENGTH:,} characters. Use each placeholder once, and lower "
            "max_chunks or max_tokens_in_context"
        )


def unknown(placeholder: str) -> InvalidRequest:
    return unusable(
        f"has the unknown placeholder {placeholder[:100]}. The placeholders are {{index}}, {{chunk.content}}, "
        "{metadata} and {metadata[KEY]}; write {{ and }} for braces"
    )


def unusable(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The chunk_template {problem}.", code="invalid_chunk_template", param="query_config.chunk_template"
    )
