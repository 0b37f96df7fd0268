"""Insertions into vector dbs and memory banks. Their requests wait until the worker has ingested what they send."""

import threading
from typing import ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.creation_scenarios import KEY
from tests.faults.knowledge_creations import VectorDBCreation
from tests.faults.scenario import LATER, Finding, Findings, Scenario

WAIT_SECONDS = 0.1
TEXT = "Llamas live in the Andes."


class InsertionScenario(Scenario):
    """A document is inserted. A request without an answer may be repeated, also with its idempotency key."""

    path: ClassVar[str]
    body: ClassVar[Body]
    query: ClassVar[tuple[str, Body]] = ("/v1/vector-io/query", {"vector_db_id": "animals", "query": "Llamas"})
    headers: ClassVar[dict[str, str]] = KEY
    most_deaths, most_errors = 2, 2

    def prepare(self, api: Api) -> None:
        api.make(VectorDBCreation.path, VectorDBCreation.body)

    def act(self, api: Api) -> None:
        self.reply = Reply()
        sent = {"headers": self.headers}
        caller = threading.Thread(target=api.post, args=(self.path, self.body, self.reply), kwargs=sent)
        caller.start()
        while caller.is_alive():
            self.cloud.work_off(observed=True)
            if self.cloud.undelivered:
                self.cloud.work_off(LATER, redeliver=True)
            caller.join(WAIT_SECONDS)

    def check(self, api: Api) -> Findings:
        for _ in range(3):
            self.cloud.work_off(LATER, redeliver=True)
        if not self.reply.ok:
            yield from self._check_repetition(api)
        path, body = self.query
        chunks = api.make(path, body)["chunks"]
        if len(chunks) != 1:
            yield Finding("doubled" if chunks else "lost", f"the document is found {len(chunks)} times")

    def _check_repetition(self, api: Api) -> Findings:
        failed = self.reply
        self.act(api)
        if not self.reply.ok:
            yield Finding(
                "stuck", f"the repeated insertion: {self.reply.status} {self.reply.text[:200]} ({failed.status})"
            )


class ChunkInsertion(InsertionScenario):
    name = "insert-chunks"
    path = "/v1/vector-io/insert"
    body: ClassVar[Body] = {
        "vector_db_id": "animals",
        "chunks": [{"content": TEXT, "metadata": {"document_id": "llamas"}}],
    }


class DocumentInsertion(InsertionScenario):
    name = "insert-documents"
    path = "/v1/tool-runtime/rag-tool/insert"
    body: ClassVar[Body] = {
        "vector_db_id": "animals",
        "documents": [{"document_id": "llamas", "content": TEXT, "mime_type": "text/plain", "metadata": {}}],
        "chunk_size_in_tokens": 128,
    }


class OctoberInsertion(InsertionScenario):
    """A document is inserted into a memory bank, without a key."""

    name = "october-insertion"
    path = "/memory/insert"
    body: ClassVar[Body] = {
        "bank_id": "facts",
        "documents": [{"document_id": "llamas", "content": TEXT, "metadata": {}}],
    }
    query = ("/memory/query", {"bank_id": "facts", "query": "Llamas"})
    headers: ClassVar[dict[str, str]] = {}

    def prepare(self, api: Api) -> None:
        api.make("/memory_banks/register", {"memory_bank": {"identifier": "facts"}})


INSERTIONS: list[type[Scenario]] = [ChunkInsertion, DocumentInsertion, OctoberInsertion]
