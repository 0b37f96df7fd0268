"""Objects that are put into the bucket of a running system, and are found in its vector stores."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.system.background import System, eventually, running_system


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("inbox")) as system:
        yield system


def search(system: System, store_id: str) -> list[tuple[str, str]]:
    """Return the names and texts that a search finds."""
    page = system.client.vector_stores.search(store_id, query="llamas")
    return [(result.filename, result.content[0].text) for result in page.data]


def test_an_object_is_found_until_it_is_deleted(system: System) -> None:
    s3: Any = system.engine.client("s3")
    store_id = system.client.vector_stores.create(name="Animals").id
    place = {"Bucket": system.engine.outputs["BucketName"], "Key": f"inbox/{store_id}/animals/llamas + ä%20.txt"}

    s3.put_object(Body=b"Llamas live in the Andes.", **place)
    found = eventually(lambda: search(system, store_id), bool, 40)
    s3.put_object(Body=b"Llamas hum.", **place)
    replaced = eventually(lambda: search(system, store_id), lambda now: now not in ([], found), 40)
    s3.delete_object(**place)
    deleted = eventually(lambda: search(system, store_id), lambda now: now == [], 40)

    s3.close()
    name = "animals/llamas + ä%20.txt"
    assert (found, replaced, deleted) == ([(name, "Llamas live in the Andes.")], [(name, "Llamas hum.")], [])
    assert "Traceback" not in system.log()
    assert list(system.client.vector_stores.files.list(store_id)) == []
