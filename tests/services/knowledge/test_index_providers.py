"""Vector dbs in two indexes of one stack."""

import pytest
from tests.script_model import script
from tests.services.knowledge.list_index import ListIndex
from tests.services.knowledge.rag_fixture import RAGFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest


@pytest.fixture
def second() -> ListIndex:
    return ListIndex()


@pytest.fixture
def rag(cloud: Cloud, tenant: str, second: ListIndex) -> RAGFixture:
    return RAGFixture(cloud, tenant, script(), second)


async def test_each_vector_db_is_in_the_index_that_it_names(rag: RAGFixture, second: ListIndex) -> None:
    here, there = await rag.register("here"), await rag.register("there", provider_id="s3-vectors")
    again = await rag.register("there", provider_id="s3-vectors")
    await rag.insert("here", {"a": "Llamas live in Peru."})
    await rag.insert("there", {"b": "Llamas eat grass."})
    found = "".join(await rag.query("llamas", "here", "there"))

    assert [here.provider_id, there.provider_id, again.provider_id] == ["packed", "s3-vectors", "s3-vectors"]
    assert (len(rag.index.keys), len(second.keys)) == (1, 1)
    assert "Peru" in found
    assert "grass" in found


async def test_a_vector_db_in_the_second_index_is_deleted_whole(rag: RAGFixture, second: ListIndex) -> None:
    await rag.register("there", provider_id="s3-vectors")
    await rag.insert("there", {"b": "Llamas eat grass."})

    await rag.dbs.unregister("there")
    await rag.finish_deletions()

    assert (rag.rest(), list(second.keys), list(second.indexes)) == ([], [], [])


async def test_another_index_of_a_vector_db_and_one_that_the_stack_lacks_are_refused(
    rag: RAGFixture,
) -> None:
    await rag.register("here")

    with pytest.raises(Conflict, match="exists in the index 'packed'"):
        await rag.register("here", provider_id="s3-vectors")
    with pytest.raises(InvalidRequest, match="Use 'packed' or 's3-vectors'"):
        await rag.register("other", provider_id="opensearch")
