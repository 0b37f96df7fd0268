"""The documents of a turn, read before the turn begins."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stint.documents.limits import Limits
from stint.documents.reading import Fetch, read_documents
from stint.domain.content import Content, Document, DocumentText, ImageContentItem, ImageSource, items_of
from stint.domain.errors import InvalidRequest, UnresolvableURL
from stint.models.images import read_image

CheckUrl = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns documents into text, whether they were sent along or lie behind a URL, and looks at images."""

    fetch: Fetch
    check_url: CheckUrl
    limits: Limits = field(default_factory=Limits)

    async def read(self, documents: Sequence[Document]) -> list[DocumentText]:
        """Give the texts of documents: what is stored, and what later turns see again.

        Raises:
            InvalidRequest: one of them cannot be read; names it.
        """
        if not documents:
            return []
        texts = await read_documents(documents, self.fetch, self.limits)
        pairs = zip(documents, texts, strict=True)
        return [DocumentText(text=text, mime_type=document.mime_type) for document, text in pairs]

    async def check_images(self, contents: Mapping[str, Content]) -> None:
        """Check the images of contents by their places, such as `messages[0].content`; see `check_image`.

        Raises:
            InvalidRequest: names the field inside the content, such as `messages[0].content[1].image.url.uri`.
        """
        for place, content in contents.items():
            for index, item in enumerate(items_of(content)):
                if isinstance(item, ImageContentItem):
                    where = f"{place}[{index}]" if isinstance(content, list) else place
                    field = "data" if item.image.url is None else "url.uri"
                    await self.check_image(item.image, f"{where}.image.{field}")

    async def check_image(self, source: ImageSource, place: str) -> None:
        """Refuse an image that no provider could read, since each later turn of the session would send it again, or
        one where callers may not reach: a provider in the private network would fetch it.

        Raises:
            InvalidRequest: names `place`. A host that does not resolve is left to the provider.
        """
        try:
            image = read_image(source)
            if isinstance(image, str):
                await self.check_url(image)
        except UnresolvableURL:
            return
        except InvalidRequest as error:
            raise InvalidRequest(f"{place}: {error.message}", code=error.code, param=place) from error
