"""Documents of turns: those that are too long for the model are in the session's own vector db, or files for code."""

from collections.abc import Callable, Sequence
from typing import Protocol

from stint.dataclasses import dataclass, replace
from stint.documents.document_reader import DocumentReader
from stint.domain.content import Document, DocumentText
from stint.loop.plan import Plan
from stint.loop.toolbox import ServerTool
from stint.services.turns.retrieval import ToolRetriever, make_retriever
from stint.services.turns.session_opener import OpenSession
from stint.tools.port import CODE_PROVIDER, RAG_RUNTIME

INLINE_CHARACTERS = 32_000
"""Maximum characters of a document that the model sees whole, if the agent can search in the others."""

INDEXED = (
    "This document has {characters:,} characters, which are not shown. Find what you need of it with the tool {tool}; "
    "its document_id is {document_id!r}."
)


class SessionVectorDBs(Protocol):
    """The vector dbs of sessions."""

    async def create(self, session_id: str, vector_db_id: str) -> None:
        """Create the vector db of a session, unless it exists, or the session was deleted."""
        ...

    async def insert(self, vector_db_id: str, documents: Sequence[tuple[str, DocumentText]], deadline: float) -> None:
        """Insert documents by their ids. When this returns, they can be found.

        Raises:
            InvalidRequest: a document cannot be ingested. The message has the reason.
            DeadlineExceeded: the worker still ingests documents.
        """
        ...


@dataclass(frozen=True, slots=True)
class SessionDocuments:
    """Reads the documents of a tenant's turns, and indexes long ones. `make_vector_dbs` is called for the first one."""

    reader: DocumentReader
    make_vector_dbs: Callable[[], SessionVectorDBs]

    async def read(
        self, session: OpenSession, plan: Plan, documents: Sequence[Document], deadline: float
    ) -> tuple[Plan, list[DocumentText]]:
        """Return the plan and the documents of a turn for the model. With a code interpreter they are its files, too.

        Raises:
            InvalidRequest: a document cannot be read. The message names it.
            StintError: see `index`.
        """
        if not documents:
            return plan, []
        if find_tool(plan, CODE_PROVIDER) is None:
            return await self.index(session, plan, await self.reader.read(documents), deadline)
        from stint.services.turns.code_files import CodeFiles  # noqa: PLC0415 - few turns have files for code

        files = CodeFiles(session, documents)
        texts = await self.reader.read(documents, files.originals)
        plan, shown = await self.index(session, plan, texts, deadline)
        return plan, [*files.shorten(shown, INLINE_CHARACTERS), await files.store()]

    async def index(
        self, session: OpenSession, plan: Plan, documents: list[DocumentText], deadline: float
    ) -> tuple[Plan, list[DocumentText]]:
        """Return the plan and the documents of a turn, in which notes have the places of long documents.

        They are indexed only if the plan has the search in vector dbs. All are, and have no notes, if the model cannot
        search, but gets what is retrieved.

        Raises:
            StintError: see `SessionVectorDBs.insert`. The session is unchanged but for its vector db.
        """
        hidden = plan.retriever if isinstance(plan.retriever, ToolRetriever) and plan.retriever.hidden else None
        tool = hidden.tool if hidden else find_tool(plan, RAG_RUNTIME)
        turn_id = session.keeper.lease.turn_id
        long = {
            f"turn-{turn_id}-document-{place}": document
            for place, document in enumerate(documents, 1)
            if len(document.text) > INLINE_CHARACTERS or (hidden and document.text.strip())
        }
        if tool is None or not long:
            return plan, documents
        vector_dbs = self.make_vector_dbs()
        vector_db_id = await self.open(session, vector_dbs)
        await vector_dbs.insert(vector_db_id, list(long.items()), deadline)
        if hidden:
            return replace(plan, retriever=replace(hidden, toolbox=replace(hidden.toolbox, session=session.caller))), []
        notes = {id(document): name for name, document in long.items()}
        shown = [
            document if id(document) not in notes else note_of(document, notes[id(document)], tool.signature.name)
            for document in documents
        ]
        toolbox = replace(plan.toolbox, session=session.caller)
        return replace(plan, toolbox=toolbox, retriever=make_retriever(toolbox)), shown

    async def open(self, session: OpenSession, vector_dbs: SessionVectorDBs) -> str:
        """Return the vector db of a session, which is made first if it has none.

        The session names it before it exists, so that the session's deletion finds it, or prevents its creation.

        Raises:
            Interrupted: the session was deleted, or taken over by another request.
        """
        lease = session.keeper.lease
        vector_db_id = f"vs_{lease.session_id.replace('-', '')}"
        if lease.vector_db_id is None:
            await lease.add_vector_db(vector_db_id)
        await vector_dbs.create(lease.session_id, vector_db_id)
        return vector_db_id


def find_tool(plan: Plan, provider_id: str) -> ServerTool | None:
    """Return the tool of a provider, if the model has it."""
    tools = plan.toolbox.server.values()
    return next((each for each in tools if each.toolgroup.provider_id == provider_id), None)


def note_of(document: DocumentText, document_id: str, tool: str) -> DocumentText:
    """Return the note that has the place of an indexed document."""
    text = INDEXED.format(characters=len(document.text), tool=tool, document_id=document_id)
    return DocumentText(text=text, mime_type=document.mime_type)
