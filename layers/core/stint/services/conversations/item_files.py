"""The files and images in items. A file is read once, when its item is added."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from stint.documents.mime_types import GENERIC, type_of_name
from stint.documents.reading import read_documents
from stint.domain.content import URL, Document, image_at
from stint.domain.errors import InvalidRequest
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.input_items import InputItem
from stint.domain.openai.items import FunctionCallOutput, Item, Message
from stint.domain.openai.parts import InputFile, InputImage, MessagePart
from stint.services.document_reader import DocumentReader


async def read_files(
    reader: DocumentReader, items: Sequence[Item | InputItem], field: str = "input"
) -> list[list[str]]:
    """Return the texts of each item's files, in the order of its input_file parts. Files by URL are fetched.

    Raises:
        InvalidRequest: a file cannot be read, or the files are too long together. The message names the location below
            `field`, such as `input[0].content[1]`.
    """
    placed = [(index, place, part) for index, place, part in parts_of(items, field) if isinstance(part, InputFile)]
    texts = await read_parts(reader, [(place, part) for _, place, part in placed])
    read: list[list[str]] = [[] for _ in items]
    for (index, _, _), text in zip(placed, texts, strict=True):
        read[index].append(text)
    return read


async def read_parts(reader: DocumentReader, parts: Sequence[tuple[str, InputFile]]) -> list[str]:
    """Return the texts of files. Raises as `read_files` does."""
    if not parts:
        return []
    documents = [document_of(place, part) for place, part in parts]
    return await read_documents(documents, reader.fetch, reader.limits, [place for place, _ in parts])


async def check_images(reader: DocumentReader, items: Iterable[Item | InputItem], field: str = "input") -> None:
    """Refuse the images that `DocumentReader.check_images` refuses. The message names the location below `field`."""
    parts = parts_of(items, field)
    await reader.check_images(
        (f"{place}.image_url", image_at(part.image_url, "auto"))
        for _, place, part in parts
        if isinstance(part, InputImage)
    )


def parts_of(items: Iterable[Item | InputItem], field: str) -> Iterator[tuple[int, str, MessagePart]]:
    """Return the content parts of items, each with its item's index and its own location."""
    for index, item in enumerate(items):
        match item:
            case Message(content=parts):
                yield from ((index, f"{field}[{index}].content[{place}]", part) for place, part in enumerate(parts))
            case FunctionCallOutput(output=list(parts)):
                yield from ((index, f"{field}[{index}].output[{place}]", part) for place, part in enumerate(parts))


def share_out(items: Sequence[Item], texts: Iterable[str]) -> list[StoredItem]:
    """Distribute the texts of all files, in order, to their items."""
    left = iter(texts)
    files = Counter(index for index, _, part in parts_of(items, "") if isinstance(part, InputFile))
    return [StoredItem(item=item, texts=list(islice(left, files[index]))) for index, item in enumerate(items)]


def document_of(place: str, part: InputFile) -> Document:
    """Convert a file to a document.

    Its type is in its data URL, or else in its name or the server's response.

    Raises:
        InvalidRequest: the type is unknown.
    """
    named = type_of_name(part.filename or "")
    if part.file_url is not None:
        return Document(content=URL(uri=part.file_url), mime_type=named)
    data = part.file_data or ""
    url = data if data[:5].lower() == "data:" else f"data:application/octet-stream;base64,{data}"
    stated = url[5:].partition(",")[0].partition(";")[0].strip().lower()
    if stated not in GENERIC:
        return Document(content=URL(uri=url), mime_type="")
    if stated and not named:
        raise unknown_type(place, part)
    return Document(content=URL(uri=url), mime_type=named)


def unknown_type(place: str, part: InputFile) -> InvalidRequest:
    fault = f"the filename {part.filename[:80]!r} has no known extension" if part.filename else "there is no filename"
    return InvalidRequest(
        f"{place}: {fault}. Use an extension that can be read (.txt, .md, .html, .pdf, .json, ..), or a data URL with "
        "the type, such as data:application/pdf;base64,...",
        code="unsupported_document",
        param=place,
    )
