"""The items of searches, of the web and in vector stores."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from stint.domain.content import TextContentItem, items_of
from stint.domain.json_text import parse_json
from stint.domain.openai.file_search import MAX_QUERIES, FileSearchCall, FileSearchResult
from stint.domain.openai.items import Item, Message, WebSearchAction, WebSearchCall, WebSearchSource
from stint.domain.openai.parts import FileCitation, OutputText
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.conversations.include import FILE_RESULTS, SEARCH_SOURCES
from stint.services.responses.hosted_tools import FILE_SEARCHES, WEB_SEARCH, HostedTools
from stint.tools.port import RESULTS

NO_RESULTS = "The search results are not stored in this conversation."


def open_search(
    call: ToolCall, hosted: HostedTools, next_id: Callable[[str], str]
) -> WebSearchCall | FileSearchCall | None:
    """Return the item of a search that starts; None if the call is no search."""
    if not isinstance(call.arguments, dict):
        return None
    if call.tool_name == WEB_SEARCH and hosted.searches:
        query = str(call.arguments.get("query", ""))
        action = WebSearchAction(query=query, queries=[query])
        return WebSearchCall(id=next_id("ws"), status="in_progress", action=action)
    if call.tool_name in FILE_SEARCHES and hosted.searches_files:
        return FileSearchCall(id=next_id("fs"), status="in_progress", queries=queries_of(call.arguments))
    return None


def queries_of(arguments: dict[str, Any]) -> list[str]:
    """Return the queries of a file search, whatever the model wrote."""
    first, further = arguments.get("query"), arguments.get("queries") or []
    queries = [*([first] if first else []), *(further if isinstance(further, list) else [further])]
    return [str(query) for query in queries[:MAX_QUERIES]]


def finish_web_search(item: WebSearchCall, response: ToolResponse, include: Iterable[str]) -> WebSearchCall:
    sources = None
    if SEARCH_SOURCES in include:
        texts = [item.text for item in items_of(response.content)[:1] if isinstance(item, TextContentItem)]
        sources = [] if failed(response) else pages_of("".join(texts))
    action = item.action.model_copy(update={"sources": sources})
    return item.model_copy(update={"status": status_of(response), "action": action})


def pages_of(result: str) -> list[WebSearchSource]:
    """Return the pages that a search found; none if its result was cut."""
    try:
        found: Any = parse_json(result)
        return [WebSearchSource(url=hit["url"]) for hit in found["top_k"]]
    except (ValueError, KeyError, TypeError):
        return []


def finish_file_search(item: FileSearchCall, response: ToolResponse, include: Iterable[str]) -> FileSearchCall:
    results = results_of(response) if FILE_RESULTS in include else None
    return item.model_copy(update={"status": status_of(response), "results": results})


def results_of(response: ToolResponse) -> list[FileSearchResult]:
    """Return what a file search found."""
    texts = [item.text for item in items_of(response.content)[1:] if isinstance(item, TextContentItem)]
    return [
        FileSearchResult(**result, text=text.partition("\n")[2].removesuffix("\n"))
        for result, text in zip(found_by(response), texts, strict=False)
    ]


def sources_of(response: ToolResponse) -> dict[str, str]:
    """Return the names of the files that a search found, by their ids."""
    return {result["file_id"]: result["filename"] for result in found_by(response)}


def files_in(items: Iterable[Item]) -> dict[str, str]:
    """Return the names of the files that items have found or cited, by their ids."""
    files: dict[str, str] = {}
    for item in items:
        if isinstance(item, FileSearchCall):
            files |= {result.file_id: result.filename for result in item.results or ()}
        elif isinstance(item, Message):
            noted = [note for part in item.content if isinstance(part, OutputText) for note in part.annotations]
            files |= {note.file_id: note.filename for note in noted if isinstance(note, FileCitation)}
    return files


def found_by(response: ToolResponse) -> list[dict[str, Any]]:
    return (response.metadata or {}).get(RESULTS) or []


def status_of(response: ToolResponse) -> Literal["completed", "failed"]:
    return "failed" if failed(response) else "completed"


def failed(response: ToolResponse) -> bool:
    return bool((response.metadata or {}).get("error"))


def urls_of(item: WebSearchCall) -> str:
    """Return the sources of a search for the model. The pages' contents are in no item."""
    return "\n".join(source.url for source in item.action.sources or ()) or NO_RESULTS


def chunks_of(item: FileSearchCall) -> str:
    """Return the results of a file search for the model, with their markers, if the item has them."""
    if not item.results:
        return NO_RESULTS
    from stint.services.responses.citations import can_be_cited, marker_of  # noqa: PLC0415 - few responses search files
    from stint.tools.knowledge.file_search import CITE  # noqa: PLC0415

    lines = []
    for place, each in enumerate(item.results, 1):
        marker = f", cite as {marker_of(each.file_id)}" if can_be_cited(each.file_id) else ""
        lines.append(f"[{place}] {each.filename or each.file_id}{marker}\n{each.text}\n")
    return "".join(lines) + CITE


def without_markers(text: str) -> str:
    """Return a text without the markers of files, because a response after a compaction does not know their names."""
    if "<|" not in text:
        return text
    from stint.services.responses.citations import cite  # noqa: PLC0415 - few conversations search files

    return cite(text, {}).text
