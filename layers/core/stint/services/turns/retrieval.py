"""Retrieval of context before the first model call of a turn, by a call of the search tool.

So arguments, redaction, limits and errors are those of a call by the model, and the loop knows no vector db. The
context is a message that stays in the history, so that all processes see the same. The model may search further.
"""

from collections.abc import Sequence
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.documents.marker import DOCUMENT
from stint.domain.content import TextContentItem, text_of
from stint.domain.errors import InvalidRequest
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, ModelMessage, UserInput
from stint.domain.tools import ToolCall
from stint.loop.retrieval import RetrievedContext
from stint.loop.screening import ToolShields
from stint.loop.toolbox import ServerTool, Toolbox
from stint.tools.outcomes import head_of
from stint.tools.port import MEMORY_BANKS, RAG_RUNTIME

RETRIEVE = "retrieve"
BEFORE_INFERENCE, ONLY_BEFORE_INFERENCE = "before_inference", "only_before_inference"


@dataclass(frozen=True, slots=True)
class ToolRetriever:
    """Retrieves context with one of the toolbox's tools. If it is `hidden`, the model cannot call the tool."""

    toolbox: Toolbox
    tool: ServerTool
    hidden: bool = False

    @property
    def tool_name(self) -> str:
        return self.tool.signature.name

    @property
    def shields(self) -> ToolShields:
        return self.toolbox.shields.get(self.tool_name, ToolShields())

    async def retrieve(self, messages: Sequence[ModelMessage], key: str, /) -> RetrievedContext:
        """Search for the user's last messages. There is no context without a text."""
        named, texts = self.vector_db_ids(), last_texts(messages)
        if not texts:
            return RetrievedContext(named, "")
        query: Any = " ".join(texts)
        if MEMORY_BANKS in self.tool.args:  # whose query generator has the messages
            query = [TextContentItem(text=text).model_dump() for text in texts]
        call = ToolCall(call_id=f"call_{new_id()}", tool_name=self.tool.signature.name, arguments={"query": query})
        outcome = await self.toolbox.invoke(call, key)
        return RetrievedContext(named, head_of(outcome.content, self.toolbox.result_bytes))

    def vector_db_ids(self) -> list[str]:
        """Return the names of the vector dbs that are searched, with the session's own last."""
        given, session = self.tool.args.get("vector_db_ids"), self.toolbox.session
        named = [str(name) for name in given] if isinstance(given, list) else []
        own = session.vector_db_id if session else None
        return named if own is None or own in named else [*named, own]


def make_retriever(toolbox: Toolbox) -> ToolRetriever | None:
    """Return the retriever of a toolbox, if the arguments of its search ask for one.

    Raises:
        InvalidRequest: the argument `retrieve` has another value than `before_inference`, or the calls of the search
            wait for approval.
    """
    for tool in toolbox.server.values():
        wanted = tool.args.get(RETRIEVE) if tool.toolgroup.provider_id == RAG_RUNTIME else None
        if wanted is not None and tool.signature.name in toolbox.approvals:
            raise InvalidRequest(
                f"The calls of {tool.signature.name!r} wait for approval, so its args cannot have {RETRIEVE!r}. Only "
                "calls by the model can wait. Remove one of them.",
                code="approval_not_possible",
                param="toolgroups",
            )
        if wanted in (BEFORE_INFERENCE, ONLY_BEFORE_INFERENCE):
            return ToolRetriever(toolbox, tool, hidden=wanted == ONLY_BEFORE_INFERENCE)
        if wanted is not None:
            raise InvalidRequest(
                f"Toolgroup {tool.toolgroup.toolgroup_id!r} has an unknown value of {RETRIEVE!r} in its args. Use "
                f"{BEFORE_INFERENCE!r} or {ONLY_BEFORE_INFERENCE!r}, or remove it to let the model search.",
                param="toolgroups",
            )
    return None


def without_hidden(toolbox: Toolbox, retriever: ToolRetriever | None) -> Toolbox:
    """Return the toolbox that the model gets."""
    if retriever is None or not retriever.hidden:
        return toolbox
    return replace(toolbox, server={name: tool for name, tool in toolbox.server.items() if tool != retriever.tool})


def last_texts(messages: Sequence[ModelMessage]) -> list[str]:
    """Return the texts of the user's messages since the model's last answer, without documents."""
    words: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AssistantAnswer):
            break
        if isinstance(message, UserInput):
            words.insert(0, text_of(message.content))
    return [text for text in words if text and not text.startswith(DOCUMENT)]
