"""The costs of files and uploads, which docs/knowledge.md lists."""

from pathlib import Path
from random import Random

import pytest
from tests.services.worker_fixture import FakeQueue
from tests.store.conftest import Cloud

from stint.domain.openai.uploads import CompleteUpload, CreateUpload
from stint.services.deletions import Deletions
from stint.services.knowledge.files import FileDeletion, Files, NewFile
from stint.services.knowledge.uploads import UploadDeletion, Uploads

TEXT = (Path(__file__).parents[3] / "docs" / "knowledge.md").read_text()
SMALL, LARGE = b"Llamas live in the Andes. " * 20, Random(1).randbytes(100_000)
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
OBJECTS = ("PutObject", "GetObject", "DeleteObject", "ListObjectsV2", "DeleteObjects")


async def detach_nothing(_tenant: str, _file_id: str, _deadline: float) -> bool:
    return True


@pytest.fixture
def deletions(cloud: Cloud) -> Deletions:
    kinds = {
        "file": FileDeletion(cloud.store.files, detach_nothing).delete,
        "upload": UploadDeletion(cloud.store.uploads).delete,
    }
    return Deletions(kinds, FakeQueue().send)  # type: ignore[arg-type]  # a literal of the two kinds


class Counter:
    """Counts what the store has sent since the last line of the table."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        cloud.forget()

    def expect(self, what: str) -> None:
        """Assert that the document has this line: what, write units, read units, requests of S3."""
        units, calls = self.cloud.units, self.cloud.calls
        written = int(sum(units[name] for name in WRITES))
        read = int(sum(units[name] for name in ("GetItem", "Query", "BatchGetItem")))
        objects = sum(calls[name] for name in OBJECTS)
        assert f"| {what} | {written} | {read} | {objects} |" in TEXT, (what, dict(units), dict(calls))
        self.cloud.forget()


async def test_files_cost_what_the_document_says(cloud: Cloud, tenant: str, deletions: Deletions) -> None:
    files = Files(tenant, cloud.store.files, deletions)
    counter = Counter(cloud)

    small = await files.create(NewFile("a.txt", "assistants"), SMALL)
    counter.expect("upload of a file of 520 bytes")
    await (await files.open(small.id)).read()
    counter.expect("its content")
    await files.delete(small.id)
    counter.expect("its deletion")
    large = await files.create(NewFile("a.bin", "assistants"), LARGE)
    counter.expect("upload of a file of 100 KB")
    await (await files.open(large.id)).read()
    counter.expect("its content, from S3")
    await files.list(None, 20, "desc", None)
    counter.expect("list of files, with one")
    await files.delete(large.id)
    counter.expect("its deletion, from S3")


async def test_uploads_cost_what_the_document_says(cloud: Cloud, tenant: str, deletions: Deletions) -> None:
    files = Files(tenant, cloud.store.files, deletions)
    uploads = Uploads(tenant, cloud.store.uploads, cloud.store.files, deletions)
    request = CreateUpload(bytes=len(LARGE) * 2, filename="a", mime_type="text/plain", purpose="assistants")
    counter = Counter(cloud)

    upload = await uploads.create(request)
    counter.expect("start of an upload, and a message of the queue")
    first = await uploads.add_part(upload.id, LARGE)
    counter.expect("each part")
    second = await uploads.add_part(upload.id, LARGE)
    cloud.forget()
    done = await uploads.complete(upload.id, CompleteUpload(part_ids=[first.id, second.id]))
    counter.expect("completion of two parts, without `md5`")
    assert done.file
    await files.delete(done.file.id)
    counter.expect("deletion of that file")
