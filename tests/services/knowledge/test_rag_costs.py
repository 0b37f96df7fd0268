"""Write units and objects of turns with long documents, as docs/knowledge.md counts them."""

from typing import Any

import pytest
from tests.script_model import said, script
from tests.services.knowledge.rag_fixture import RAGFixture
from tests.store.conftest import Cloud

from stint.services.turns.session_documents import INLINE_CHARACTERS

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
SEARCH: Any = {"name": "builtin::rag/knowledge_search", "args": {"vector_db_ids": ["facts"]}}
LONG = "Pumas eat guanacos. " * (INLINE_CHARACTERS // 20 + 1)


@pytest.fixture
def rag(cloud: Cloud, tenant: str) -> RAGFixture:
    return RAGFixture(cloud, tenant, script())


async def cost_of(rag: RAGFixture, **request: Any) -> tuple[float, int]:
    """Return the write units and the stored objects of a turn."""
    rag.cloud.forget()
    await rag.fixture.turn("How many experts has Maverick?", **request)
    return sum(rag.cloud.units[name] for name in WRITES), rag.cloud.calls["PutObject"]


async def test_a_long_document_adds_nine_write_units_to_the_first_turn_and_six_to_later_ones(rag: RAGFixture) -> None:
    document = {"content": LONG, "mime_type": "text/plain"}
    await rag.fixture.open(toolgroups=[SEARCH])
    rag.model.answers[:] = [said("128"), said("128")]

    first, second = await cost_of(rag, documents=[document]), await cost_of(rag, documents=[document])

    assert (first, second) == ((13, 1), (10, 1))
