"""Reading of a turn's documents before the turn starts.

Documents become text here, once: later turns read the stored text. Images stay what they are, since models read them;
they are checked here because each later turn of the session would send a broken one again. Whatever cannot be read
refuses the request, before the turn is stored.

A provider fetches the images at URLs. The URLs are checked all the same, because a model server in the operator's
network would otherwise fetch for callers what they cannot reach.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from stint.dataclasses import dataclass, field
from stint.documents.limits import Limits
from stint.documents.reading import Fetch, read_documents
from stint.documents.served import Originals
from stint.domain.content import Content, Document, DocumentText, ImageContentItem, ImageSource, items_of
from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.domain.limits import MAX_IMAGE_URLS, MAX_IMAGES
from stint.models.images import read_image

CheckUrl = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StoredFileContent:
    """The content of a stored file, with its name."""

    filename: str
    body: bytes


ReadFile = Callable[[str, int], Awaitable[StoredFileContent]]
"""A function that reads a stored file of at most so many bytes.

It raises InvalidRequest if there is no such file, or if it cannot be the input of a model."""


async def no_files(_file_id: str, _most_bytes: int) -> StoredFileContent:
    """Raise InvalidRequest, where no files are stored."""
    raise InvalidRequest("Files are not stored here. Send the data itself, or a URL.", code="not_supported")


PlacedImage = tuple[str, ImageSource]
"""An image with the field that has it, such as `input[0].content[1].image_url`."""


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """Converts documents in requests and at URLs to text, and checks images."""

    fetch: Fetch
    check_url: CheckUrl
    limits: Limits = field(default_factory=Limits)
    read_file: ReadFile = no_files

    async def read(self, documents: Sequence[Document], originals: Originals | None = None) -> list[DocumentText]:
        """Return the texts of documents, which are stored for this turn and later ones.

        Those that `originals` keeps may have none.

        Raises:
            InvalidRequest: one of them cannot be read. The message names it.
        """
        if not documents:
            return []
        texts = await read_documents(documents, self.fetch, self.limits, originals=originals)
        pairs = zip(documents, texts, strict=True)
        return [DocumentText(text=text, mime_type=document.mime_type) for document, text in pairs]

    async def check_images(self, images: Iterable[PlacedImage]) -> None:
        """Refuse images that no provider can read, because each later turn of the session would send them again, and
        images at URLs that are not allowed, because a provider in the private network would fetch them.

        Raises:
            InvalidRequest: there are too many, or one is invalid. The message names its location. A host that does not
                resolve is left to the provider.
        """
        urls: set[str] = set()
        for count, (place, source) in enumerate(images):
            with named(place):
                if count == MAX_IMAGES:
                    raise too_many_images(f"{MAX_IMAGES:,} images")
                image = read_image(source)
                # A URL that occurs again is checked once; data was checked by `read_image`.
                if not isinstance(image, str) or image in urls:
                    continue
                urls.add(image)
                if len(urls) > MAX_IMAGE_URLS:
                    raise too_many_images(f"{MAX_IMAGE_URLS} URLs of images")
                with suppress(UnresolvableURL):
                    await self.check_url(image)


@contextmanager
def named(place: str) -> Iterator[None]:
    """Set the field of an image in its errors."""
    try:
        yield
    except InvalidRequest as error:
        raise InvalidRequest(f"{place}: {error.message}", code=error.code, param=place) from error


def too_many_images(limit: str) -> InvalidRequest:
    return InvalidRequest(
        f"A request may have at most {limit}. Send the others in another request.", code="too_many_images"
    )


def images_of(field: str, contents: Iterable[Content]) -> Iterator[PlacedImage]:
    """Yield the images of a field's contents, with locations such as `messages[0].content[1].image.data`."""
    for place, content in enumerate(contents):
        for index, item in enumerate(items_of(content)):
            if isinstance(item, ImageContentItem):
                where = f"{field}[{place}].content" + (f"[{index}]" if isinstance(content, list) else "")
                yield f"{where}.image.{'data' if item.image.url is None else 'url.uri'}", item.image
