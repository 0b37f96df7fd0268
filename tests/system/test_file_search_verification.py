"""Llama Stack's verification of file search, with the scripted model, against `make run`.

Texts and PDFs are uploaded into a vector store, and a question is asked with and without filters.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from openai import OpenAI
from tests.unit.documents.pdf_files import make_pdf

FACT = "Llama 4 Maverick has 128 experts"
QUESTION = 'Use file search for "How many experts does the Llama 4 Maverick model have?"'
DATES = {
    "us_marketing_q1.txt": 1_672_531_200,
    "us_engineering_q2.txt": 1_680_307_200,
    "eu_marketing_q1.txt": 1_672_531_200,
}


def compare(kind: str, key: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "key": key, "value": value}


def both(kind: str, *filters: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "filters": list(filters)}


def make_store(client: OpenAI, contents: Mapping[str, bytes]) -> str:
    """Upload files into a new store, with the attributes in their names, and return the store's id."""
    store = client.vector_stores.create(name="test_vector_store")
    for name, content in contents.items():
        region, category, *_ = name.split("_")
        date = DATES.get(name, 0)
        attributes: dict[str, str | float | bool] = {"region": region, "category": category, "date": date}
        file = client.files.create(file=(name, content), purpose="assistants")
        added = client.vector_stores.files.create_and_poll(
            file.id, vector_store_id=store.id, attributes=attributes, poll_interval_ms=100
        )
        assert (added.status, added.last_error) == ("completed", None)
    return store.id


def ask(client: OpenAI, store_id: str, **tool: Any) -> tuple[Any, str]:
    """Ask the question, and return the item of the search and the text."""
    tools: Any = [{"type": "file_search", "vector_store_ids": [store_id], **tool}]
    response = client.responses.create(
        model="scripted/demo", input=QUESTION, tools=tools, stream=False, include=["file_search_call.results"]
    )
    output: list[Any] = list(response.output)
    assert [item.type for item in output] == ["file_search_call", "message"]
    assert (output[0].status, output[1].status, output[1].role) == ("completed", "completed", "assistant")
    assert output[0].queries
    return output[0], response.output_text


@pytest.mark.parametrize("name", ["maverick_facts.txt", "maverick_facts.pdf"])
def test_a_text_and_a_pdf_answer_the_question(openai_client: OpenAI, name: str) -> None:
    content = make_pdf(FACT) if name.endswith(".pdf") else FACT.encode()

    call, text = ask(openai_client, make_store(openai_client, {name: content}))

    assert [result.filename for result in call.results] == [name]
    assert FACT.lower() in call.results[0].text.lower()
    assert call.results[0].score > 0
    assert "128 experts" in text


def test_filters_choose_among_files(openai_client: OpenAI) -> None:
    contents = {name: f"{FACT}, says {name}.".encode() for name in DATES}
    store_id = make_store(openai_client, contents)
    us, marketing = compare("eq", "region", "us"), compare("eq", "category", "marketing")
    later = compare("gte", "date", 1_680_000_000)
    expected: list[tuple[dict[str, Any], list[str]]] = [
        (us, ["us_engineering_q2.txt", "us_marketing_q1.txt"]),
        (both("and", us, marketing), ["us_marketing_q1.txt"]),
        (both("or", marketing, later), sorted(DATES)),
        (later, ["us_engineering_q2.txt"]),
        (compare("ne", "region", "us"), ["eu_marketing_q1.txt"]),
        (both("and", us, compare("eq", "category", "sales")), []),
    ]

    for chosen, names in expected:
        call, _ = ask(openai_client, store_id, filters=chosen)
        assert sorted(result.filename for result in call.results) == names, chosen
