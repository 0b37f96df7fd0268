"""Files that vector stores ingest."""

from tests.faults.api import Api, Body
from tests.faults.knowledge_creations import make_file
from tests.faults.scenario import LATER, Finding, Findings, Scenario

ENDED = ("completed", "failed", "cancelled")


class FileIngestion(Scenario):
    """A file is attached to a vector store; the worker ingests it."""

    name = "ingest-file"
    has_work = True

    def prepare(self, api: Api) -> None:
        self.file = make_file(api)
        self.store = f"/v1/vector_stores/{api.make('/v1/vector_stores', {'name': 'Animals'})['id']}"

    def act(self, api: Api) -> None:
        self.reply = api.post(f"{self.store}/files", {"file_id": self.file})

    def read_files(self, api: Api) -> list[Body]:
        """Return the files of the store when the worker has done what it can.

        The tasks of a request that is not answered were sent before its files were stored.
        """
        for _ in range(3):
            self.cloud.work_off(LATER, redeliver=True)
        return list(api.read(f"{self.store}/files")["data"])

    def check(self, api: Api) -> Findings:
        files = self.read_files(api)
        if self.reply.ok and not files:
            yield Finding("lost", "an attached file")
        if len(files) > 1:
            yield Finding("doubled", "an attached file")
        for file in files:
            if file["status"] not in ENDED:
                yield Finding("stuck", f"a file that is {file['status']}")
            if file["status"] == "completed":
                yield from self._check_search(api)

    def _check_search(self, api: Api) -> Findings:
        hits = api.make(f"{self.store}/search", {"query": "Llamas"})["data"]
        if len(hits) != 1:
            yield Finding("doubled" if hits else "lost", f"the file is found {len(hits)} times")


class FileBatchIngestion(FileIngestion):
    """Two files are attached as a batch."""

    name = "ingest-batch"

    def prepare(self, api: Api) -> None:
        super().prepare(api)
        self.other = make_file(api)

    def act(self, api: Api) -> None:
        self.reply = api.post(f"{self.store}/file_batches", {"file_ids": [self.file, self.other]})

    def check(self, api: Api) -> Findings:
        files = self.read_files(api)
        stuck = [file["status"] for file in files if file["status"] not in ENDED]
        if stuck:
            yield Finding("stuck", f"files of a batch: {stuck}")
        if self.reply.ok and len(files) != 2:
            yield Finding("lost", f"{len(files)} files of a batch")


INGESTIONS: list[type[Scenario]] = [FileIngestion, FileBatchIngestion]
