"""The files and images in items. A file is read once, when its item is added.

  part                        becomes a text                              checked
  file: data, URL or file id  its text, with its name if it was stored    its type and size, as a document of a turn
  image: file id              a data URL                                  its content
  image: data or URL          nothing: it stays in the item               its content, or its URL

The texts of an item are stored beside it, in the order of its parts. So `parts_of` and `is_read` decide which text
belongs to which part, when texts are written and when they are read (`distribute_texts`).
"""

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TypeGuard
from urllib.parse import unquote, urlsplit

from stint.dataclasses import dataclass
from stint.documents.document_reader import DocumentReader
from stint.documents.mime_types import GENERIC, parse_mime_type, type_of_name
from stint.documents.reading import read_documents
from stint.documents.served import DocumentData, InlineDocument, Originals
from stint.domain.content import URL, Document, ImageSource, image_at
from stint.domain.errors import InvalidRequest
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.input_items import InputItem
from stint.domain.openai.items import FunctionCallOutput, Item, Message
from stint.domain.openai.parts import InputFile, InputImage, MessagePart
from stint.models.images import InlineImage, read_image
from stint.tools.code_interpreter.files import make_name

ANY_TYPE = "application/octet-stream"

HAS_FILE = "The code interpreter has this file as {}."
NO_TEXT = "Its text is not shown."


async def read_files(
    reader: DocumentReader,
    items: Sequence[Item | InputItem],
    field: str = "input",
    originals: Originals | None = None,
) -> list[list[str]]:
    """Return the texts of each item's files, in the order of its parts. Files by URL are fetched.

    The text of a stored image is a data URL. Files that `originals` keeps have names in it, also in their texts.

    Raises:
        InvalidRequest: a file cannot be read, or the files are too long together. The message names the location below
            `field`, such as `input[0].content[1]`.
    """
    placed = [(index, place, part) for index, place, part in parts_of(items, field) if is_read(part)]
    texts = await read_parts(reader, [(place, part) for _, place, part in placed], originals)
    read: list[list[str]] = [[] for _ in items]
    for (index, _, _), text in zip(placed, texts, strict=True):
        read[index].append(text)
    return read


def is_read(part: MessagePart) -> TypeGuard[InputFile | InputImage]:
    """Return whether a part has a text that is read once: a file, or a stored image."""
    return isinstance(part, InputFile) or (isinstance(part, InputImage) and part.file_id is not None)


async def read_parts(
    reader: DocumentReader, parts: Sequence[tuple[str, InputFile | InputImage]], originals: Originals | None = None
) -> list[str]:
    """Return the texts of files, and stored images as data URLs. Raises as `read_files` does."""
    files = {place: part for place, part in parts if isinstance(part, InputFile)}
    texts: dict[str, str] = {}
    if files:
        documents = [source_of(reader, place, part, originals) for place, part in files.items()]
        read = await read_documents(documents, reader.fetch, reader.limits, list(files), originals=originals)
        names = {
            place: document.name
            for place, document in zip(files, documents, strict=True)
            if isinstance(document, FileDocument)
        }
        if originals is not None:
            read = name_files(
                originals,
                [part.filename or names.get(place, "") or part.file_url or "" for place, part in files.items()],
                read,
            )
        texts = {place: with_name(names.get(place, ""), text) for place, text in zip(files, read, strict=True)}
    for place, part in parts:
        if isinstance(part, InputImage):
            texts[place] = await read_image_file(reader, place, part.file_id or "")
    return [texts[place] for place, _ in parts]


@dataclass(slots=True)
class FileDocument:
    """A stored file that is read as a document. Its `name` is known once it is read, unless the request has another.

    `any_type`: its type may be one that cannot be read.
    """

    reader: DocumentReader
    place: str
    part: InputFile
    name: str = ""
    any_type: bool = False

    async def __call__(self) -> DocumentData:
        stored = await self.reader.read_file(self.part.file_id or "", self.reader.limits.data_url_bytes)
        filename = self.part.filename or stored.filename
        kind = type_of_name(filename)
        if not kind and not self.any_type:
            raise unknown_type(self.place, filename)
        self.name = "" if self.part.filename else stored.filename
        return InlineDocument(kind or ANY_TYPE, stored.body)


def source_of(
    reader: DocumentReader, place: str, part: InputFile, originals: Originals | None = None
) -> Document | FileDocument:
    any_type = originals is not None
    if part.file_id is None:
        return document_of(place, part, any_type=any_type)
    return FileDocument(reader, place, part, any_type=any_type)


def with_name(name: str, text: str) -> str:
    """Add the name of a stored file to its text."""
    return f"File {name}:\n{text}" if name else text


async def read_image_file(reader: DocumentReader, place: str, file_id: str) -> str:
    """Return a stored image as a data URL. Raises InvalidRequest if it is no image."""
    with at_place(place):
        stored = await reader.read_file(file_id, reader.limits.data_url_bytes)
        image = read_image(ImageSource(data=base64.b64encode(stored.body).decode()))
    return image.data_url if isinstance(image, InlineImage) else image


@contextmanager
def at_place(place: str) -> Iterator[None]:
    """Add the location of a part to errors."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(f"{place}: {error.message}", code=error.code, param=place) from error


async def check_images(reader: DocumentReader, items: Iterable[Item | InputItem], field: str = "input") -> None:
    """Refuse the images that `DocumentReader.check_images` refuses. The message names the location below `field`."""
    parts = parts_of(items, field)
    await reader.check_images(
        (f"{place}.image_url", image_at(part.image_url, "auto"))
        for _, place, part in parts
        if isinstance(part, InputImage) and part.image_url is not None
    )


def parts_of(items: Iterable[Item | InputItem], field: str) -> Iterator[tuple[int, str, MessagePart]]:
    """Return the content parts of items, each with its item's index and its own location."""
    for index, item in enumerate(items):
        match item:
            case Message(content=parts):
                yield from ((index, f"{field}[{index}].content[{place}]", part) for place, part in enumerate(parts))
            case FunctionCallOutput(output=list(parts)):
                yield from ((index, f"{field}[{index}].output[{place}]", part) for place, part in enumerate(parts))


def distribute_texts(items: Sequence[Item], texts: Iterable[str]) -> list[StoredItem]:
    """Distribute the texts of all files, in order, to their items."""
    left = iter(texts)
    files = Counter(index for index, _, part in parts_of(items, "") if is_read(part))
    return [StoredItem(item=item, texts=list(islice(left, files[index]))) for index, item in enumerate(items)]


def document_of(place: str, part: InputFile, *, any_type: bool = False) -> Document:
    """Convert a file to a document.

    Its type is in its data URL, or else in its name or the server's response. `any_type`: it may be unknown.

    Raises:
        InvalidRequest: the type is unknown.
    """
    named = type_of_name(part.filename or "")
    if part.file_url is not None:
        return Document(content=URL(uri=part.file_url), mime_type=named)
    data = part.file_data or ""
    url = data if data[:5].lower() == "data:" else f"data:application/octet-stream;base64,{data}"
    stated = url[5:].partition(",")[0].partition(";")[0].strip().lower()
    # The type in a data URL is the sender's own statement. Without one the name decides.
    if stated not in GENERIC:
        return Document(content=URL(uri=url), mime_type="")
    if stated and not named and not any_type:
        raise unknown_type(place, part.filename)
    return Document(content=URL(uri=url), mime_type=named)


def unknown_type(place: str, filename: str | None) -> InvalidRequest:
    fault = f"the filename {filename[:80]!r} has no known extension" if filename else "there is no filename"
    return InvalidRequest(
        f"{place}: {fault}. Use an extension that can be read (.txt, .md, .html, .pdf, .json, ..), or a data URL with "
        "the type, such as data:application/pdf;base64,...",
        code="unsupported_document",
        param=place,
    )


def name_files(originals: Originals, wanted: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Name the files that are kept, and return the texts with these names. `wanted` are names or URLs."""
    read = list(texts)
    for index, raw in sorted(originals.bodies.items()):
        is_url = wanted[index][:8].lower().startswith(("http://", "https://"))
        name = unquote(urlsplit(wanted[index]).path) if is_url else wanted[index]
        media_type = parse_mime_type(raw.content_type).essence
        originals.names[index] = make_name(name, f"file-{index + 1}", media_type, list(originals.names.values()))
        note = HAS_FILE.format(json.dumps(originals.names[index], ensure_ascii=False))
        read[index] = f"{note} {NO_TEXT}" if index in originals.errors else f"{note}\n{texts[index]}"
    return read
