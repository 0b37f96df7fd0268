"""Each POST that creates something for search: files, uploads, vector stores, vector dbs."""

from typing import Any, ClassVar

from tests.faults.api import Api, Body
from tests.faults.creation_scenarios import CreationScenario
from tests.faults.scenario import Finding, Findings, Scenario

FILE = ("facts.txt", b"Llamas live in the Andes.")


def make_file(api: Api) -> str:
    return str(api.make("/v1/files", None, files={"file": FILE}, data={"purpose": "assistants"})["id"])


class FileCreation(CreationScenario):
    name = "create-file"
    path, records = "/v1/files", r"#file\."
    options: ClassVar[dict[str, Any]] = {"files": {"file": FILE}, "data": {"purpose": "assistants"}}

    def request(self) -> tuple[str, Body | None]:
        return self.path, None


class VectorStoreCreation(CreationScenario):
    name = "create-vector-store"
    path, records = "/v1/vector_stores", r"#vector_store\."
    body: ClassVar[Body] = {"name": "Animals"}


class UploadCreation(CreationScenario):
    name = "create-upload"
    path, records = "/v1/uploads", r"#upload:.*\|meta"
    body: ClassVar[Body] = {"bytes": 5, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}


class UploadCompletion(CreationScenario):
    """The parts of an upload become a file."""

    name = "complete-upload"
    records = r"#file\."

    def prepare(self, api: Api) -> None:
        upload = api.make("/v1/uploads", UploadCreation.body)["id"]
        part = api.make(f"/v1/uploads/{upload}/parts", None, files={"data": ("part", b"Hello")})
        self.upload, self.part = upload, part["id"]

    def request(self) -> tuple[str, Body | None]:
        return f"/v1/uploads/{self.upload}/complete", {"part_ids": [self.part]}


class VectorDBCreation(CreationScenario):
    name = "create-vector-db"
    path, records, id_field = "/v1/vector-dbs", r"#vector_db\|", "identifier"
    body: ClassVar[Body] = {
        "vector_db_id": "animals",
        "embedding_model": "hashed/words-384",
        "embedding_dimension": 384,
    }


class PartCreation(CreationScenario):
    name = "create-part"
    records = r"#upload:.*\|part"
    options: ClassVar[dict[str, Any]] = {"files": {"data": ("part", b"Hello")}}

    def prepare(self, api: Api) -> None:
        self.upload = api.make("/v1/uploads", UploadCreation.body)["id"]

    def request(self) -> tuple[str, Body | None]:
        return f"/v1/uploads/{self.upload}/parts", None


class BatchCreation(CreationScenario):
    """A file batch of a vector store."""

    name = "create-batch"
    records = r"\|batch:"

    def prepare(self, api: Api) -> None:
        self.file = make_file(api)
        self.store = api.make("/v1/vector_stores", {"name": "Animals"})["id"]

    def request(self) -> tuple[str, Body | None]:
        return f"/v1/vector_stores/{self.store}/file_batches", {"file_ids": [self.file]}

    def check(self, api: Api) -> Findings:
        yield from super().check(api)
        self.cloud.work_off()
        counts = api.read(f"/v1/vector_stores/{self.store}")["file_counts"]
        if (counts["completed"], counts["total"]) != (1, 1):
            yield Finding("stuck", f"the file of a batch: {counts}")


class ContainerCreation(CreationScenario):
    """A container with a copy of a file."""

    name = "create-container"
    path, records = "/v1/containers", r"#container\."

    def prepare(self, api: Api) -> None:
        self.file = make_file(api)

    def request(self) -> tuple[str, Body | None]:
        return self.path, {"name": "Work", "file_ids": [self.file]}


class ContainerFileCreation(CreationScenario):
    """An upload into a container, whose record lists its files."""

    name = "create-container-file"
    records = r"#container\."
    options: ClassVar[dict[str, Any]] = {"files": {"file": FILE}}

    def prepare(self, api: Api) -> None:
        self.container = f"/v1/containers/{api.make('/v1/containers', {'name': 'Work'})['id']}"

    def request(self) -> tuple[str, Body | None]:
        return f"{self.container}/files", None

    def check(self, api: Api) -> Findings:
        yield from super().check(api)
        files = api.read(f"{self.container}/files")["data"]
        if len(files) != 1:
            yield Finding("doubled" if files else "lost", f"{len(files)} files of a container")
        for file in files:
            if not api.get(f"{self.container}/files/{file['id']}/content").ok:
                yield Finding("lost", "the content of a file of a container")


KNOWLEDGE: list[type[Scenario]] = [
    FileCreation,
    VectorStoreCreation,
    UploadCreation,
    PartCreation,
    UploadCompletion,
    BatchCreation,
    VectorDBCreation,
    ContainerCreation,
    ContainerFileCreation,
]
