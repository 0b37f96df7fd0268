import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.rag import DEFAULT_CHUNK_TEMPLATE
from stint.services.knowledge.rag_context import fill_chunk_template

METADATA = {"source": "card", "year": 2025, "document_id": "doc-1"}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        (
            DEFAULT_CHUNK_TEMPLATE,
            "Result 3\nContent: Pumas {index}\nMetadata: {'source': 'card', 'year': 2025, 'document_id': 'doc-1'}\n",
        ),
        ("{index}: {chunk.metadata[document_id]}: {chunk.content}\n", "3: doc-1: Pumas {index}\n"),
        ("{{{index}}} {metadata[year]} {chunk.content}", "{3} 2025 Pumas {index}"),
    ],
)
def test_placeholders_are_replaced_once(template: str, filled: str) -> None:
    assert fill_chunk_template(template, 3, "Pumas {index}", METADATA) == filled


@pytest.mark.parametrize(
    "placeholder",
    [
        "{nope}",
        "{}",
        "{chunk.content.__class__}",
        "{chunk.__class__.__init__.__globals__}",
        "{index:>1000000000}",
        "{index!r}",
    ],
)
def test_other_placeholders_are_refused_and_never_evaluated(placeholder: str) -> None:
    with pytest.raises(InvalidRequest, match=r"unknown placeholder .* \{metadata\[KEY\]\}") as refused:
        fill_chunk_template("{index}{chunk.content}" + placeholder, 1, "text", METADATA)

    assert (refused.value.code, refused.value.param) == ("invalid_chunk_template", "query_config.chunk_template")


def test_a_missing_metadata_key_is_named() -> None:
    with pytest.raises(InvalidRequest, match="'author'"):
        fill_chunk_template("{metadata[author]}", 1, "text", METADATA)
