"""The export of an end user's objects, as JSON lines.

An export may be larger than the memory, so it is streamed: a line for each object, followed by lines for what belongs
to it, each as the API returns it. A stream cannot report an error after it has begun. So the last line has the number
of objects, and without it the export is incomplete.

The list of the objects is read page by page while they are exported. One that is deleted meanwhile is left out, or
incomplete; one that is created meanwhile may be missing.
"""

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.end_users import OwnedKind, OwnedObject
from stint.domain.errors import Conflict, NotFound
from stint.domain.openai.stored_chats import CompletionWithInputMessages
from stint.domain.schema import Schema
from stint.domain.vector_stores import StoreUsage
from stint.services.agents.sessions import Sessions
from stint.services.conversations.conversations import Conversations
from stint.services.end_users.end_users import EndUsers
from stint.services.knowledge.store_documents import read_texts
from stint.services.knowledge.vector_stores import to_resource
from stint.services.responses.read import ResponseReader
from stint.store.stored_documents import StoredDocument

PAGE = 100
"""Objects, or items of a conversation, that are read at once."""

Lines = AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class EndUserExport:
    """Reads the objects of end users. The last line has the number of objects, so that a reader can see that it ended.

    An object is one line, and its turns, items and contents follow, a line each. One that is deleted in the meantime
    may be incomplete.
    """

    users: EndUsers
    sessions: Sessions
    responses: ResponseReader
    conversations: Conversations

    async def lines(self, user: str) -> Lines:
        """Yield the lines of an end user's objects."""
        count, after = 0, None
        while True:
            page = await self.users.list(user, after, PAGE)
            for owned in page.data:
                count += 1
                try:
                    async for line in self._readers[owned.kind](owned):
                        yield line
                # Deleted since the page was read.
                except NotFound:
                    continue
            after = page.next
            if after is None:
                break
        # Only after all others, so that it proves that the export is complete.
        yield line_of("end", {"user": user, "objects": count})

    @property
    def _readers(self) -> Mapping[OwnedKind, Callable[[OwnedObject], Lines]]:
        return {
            "session": self._session,
            "response": self._response,
            "conversation": self._conversation,
            "chat_completion": self._chat_completion,
            "file": self._file,
            "upload": self._upload,
            "vector_store": self._vector_store,
            "vector_store_document": self._document,
            "idempotent_request": self._request,
            "container": self._container,
            "vault": self._vault,
        }

    async def _session(self, owned: OwnedObject) -> Lines:
        session, others = await self.sessions.read_pages(owned.agent_id or "", owned.id)
        turns, session.turns, own = session.turns, [], session.vector_db_id
        yield line_of("session", {"agent_id": owned.agent_id}, session)
        for turn in turns:
            yield line_of("turn", {"session_id": owned.id}, turn)
        if others is not None:
            async for page in others:
                for turn in page:
                    yield line_of("turn", {"session_id": owned.id}, turn)
        if own is not None:
            async for line in self._documents(own):
                yield line

    async def _response(self, owned: OwnedObject) -> Lines:
        stored = await self.responses.read(owned.id)
        yield line_of("response", {}, self.responses.to_resource(stored))
        for item in (*stored.header.input, *stored.merged_items):
            yield line_of("input_item", {"response_id": owned.id}, item)

    async def _conversation(self, owned: OwnedObject) -> Lines:
        yield line_of("conversation", {}, await self.conversations.get(owned.id))
        after, more = None, True
        while more:
            page = await self.conversations.list_items(owned.id, after, PAGE, "asc")
            for item in page.data:
                yield line_of("item", {"conversation_id": owned.id}, item)
            after, more = page.last_id, page.has_more

    async def _chat_completion(self, owned: OwnedObject) -> Lines:
        stored = await self.users.store.chat_completions.get(self.users.tenant, owned.id)
        yield line_of("chat_completion", {}, CompletionWithInputMessages.of(stored))

    async def _file(self, owned: OwnedObject) -> Lines:
        stored = await self.users.store.files.open(self.users.tenant, owned.id)
        yield line_of("file", {}, stored.file)
        async for part in self.users.store.files.read(stored):
            yield line_of("file_content", {"file_id": owned.id, "base64": base64.b64encode(part).decode()})

    async def _upload(self, owned: OwnedObject) -> Lines:
        upload = await self.users.store.uploads.get(self.users.tenant, owned.id)
        yield line_of("upload", {}, upload.describe())

    async def _container(self, owned: OwnedObject) -> Lines:
        store = self.users.store.containers
        stored = await store.get(self.users.tenant, owned.id)
        yield line_of("container", {}, stored.container)
        for file in stored.files:
            yield line_of("container_file", {"container_id": owned.id}, file.describe(owned.id))
            content = base64.b64encode(await store.read_file(file)).decode()
            yield line_of("container_file_content", {"file_id": file.id, "base64": content})

    async def _vault(self, owned: OwnedObject) -> Lines:
        store = self.users.store.vaults
        yield line_of("vault", {}, (await store.get(self.users.tenant, owned.id)).vault)
        for stored in await store.list_credentials(self.users.tenant, owned.id):
            yield line_of("vault_credential", {}, stored.credential)

    async def _vector_store(self, owned: OwnedObject) -> Lines:
        stored = await self.users.store.vector_stores.get(self.users.tenant, owned.id)
        yield line_of("vector_store", {}, to_resource(stored, stored.usage or StoreUsage()))
        async for line in self._documents(owned.id):
            yield line

    async def _request(self, owned: OwnedObject) -> Lines:
        answer = await self.users.store.requests.find_answer(self.users.tenant, owned.id)
        yield line_of("idempotent_request", {"id": owned.id}, answer)

    async def _documents(self, store_id: str) -> Lines:
        async for found in self.users.store.vector_store_documents.read(self.users.tenant, store_id):
            if not found.deleted:
                yield await self._document_line(store_id, found)

    async def _document(self, owned: OwnedObject) -> Lines:
        store_id = owned.vector_store_id or ""
        found = await self.users.store.vector_store_documents.get(self.users.tenant, store_id, owned.id)
        yield await self._document_line(store_id, found)

    async def _document_line(self, store_id: str, found: StoredDocument) -> bytes:
        """Return the line of a document with its texts. There are none while its file is not ingested."""
        texts: Sequence[str] = ()
        with suppress(Conflict):
            texts = await read_texts(self.users.store.vector_store_contents, found)
        settings = found.settings
        fields = {"vector_store_id": store_id, "document_id": settings.document_id, "metadata": settings.metadata}
        return line_of("vector_store_document", {**fields, "attributes": settings.attributes, "texts": list(texts)})


def line_of(kind: str, fields: Mapping[str, object], data: Schema | None = None) -> bytes:
    """Return a line: its kind, the ids of what it belongs to, and the object as the API returns it."""
    head = json.dumps({"kind": kind, **fields}, ensure_ascii=False).encode()
    return head + b"\n" if data is None else head[:-1] + b', "data": ' + data.to_json() + b"}\n"
